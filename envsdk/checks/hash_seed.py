"""``hash_seed``: another ``PYTHONHASHSEED`` or locale does not change the verdict."""

from __future__ import annotations

from dataclasses import replace

from envsdk.checks.agreement import compare
from envsdk.checks.check import Check, Finding
from envsdk.checks.stage import Scene, Stage, oracle_scene

SEEDS = ("0", "1", "2", "3", "5", "8", "13", "21", "34", "55")
LOCALES = ("C", "C.UTF-8")


async def _examine(stage: Stage) -> Finding:
    scene = await oracle_scene(stage)
    # A Python verifier needs an interpreter of its own for each of them.
    seeds, locales = (SEEDS, LOCALES) if stage.task.spec.verifier.kind == "script" else (SEEDS[:5], LOCALES[:1])
    scenes: dict[str, Scene] = {
        f"PYTHONHASHSEED={seed}": replace(scene, env={"PYTHONHASHSEED": seed}) for seed in seeds
    }
    for name in locales:
        scenes[f"LC_ALL={name}"] = replace(scene, env={"LC_ALL": name, "LANG": name})
    return await compare(stage, scenes, what="hash seed or locale")


CHECK = Check(
    id="hash_seed",
    question="Does the verdict stay the same under another hash seed and another locale?",
    fix="never print, join or index a set; set LC_ALL where you sort or match",
    examine=_examine,
    needs="oracle",
)
