"""``hash_seed``: another ``PYTHONHASHSEED`` or locale does not change the verdict."""

from __future__ import annotations

from dataclasses import replace

from envsdk.checks.agreement import compare
from envsdk.checks.check import Check, Finding
from envsdk.checks.stage import Scene, Stage, oracle_scene
from envsdk.checks.surroundings import LOCALES, all_at_once, seeds_for


async def _examine(stage: Stage) -> Finding:
    if (agreed := await all_at_once(stage)) is not None:
        return agreed
    scene = await oracle_scene(stage)
    scenes: dict[str, Scene] = {
        f"PYTHONHASHSEED={seed}": replace(scene, env={"PYTHONHASHSEED": seed}) for seed in seeds_for(stage)
    }
    for name in LOCALES:
        scenes[f"LC_ALL={name}"] = replace(scene, env={"LC_ALL": name, "LANG": name})
    return await compare(stage, scenes, what="hash seed or locale")


CHECK = Check(
    id="hash_seed",
    question="Does the verdict stay the same under another hash seed and another locale?",
    fix="never print, join or index a set; set LC_ALL where you sort or match",
    examine=_examine,
    needs="oracle",
)
