"""``hash_seed``: another ``PYTHONHASHSEED`` or locale does not change the verdict."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from envsdk.checks.agreement import compare
from envsdk.checks.check import Check, Finding, fails, said
from envsdk.checks.repeat import repeated
from envsdk.checks.scene import Scene
from envsdk.checks.stage import Stage, oracle_scene
from envsdk.checks.surroundings import LOCALES, all_at_once, seeds_for


async def _examine(stage: Stage) -> Finding:
    varies = (await repeated(stage)).outcome == "fail"
    if not varies and (agreed := await all_at_once(stage)) is not None:
        return agreed
    scene = await oracle_scene(stage)
    scenes: dict[str, Scene] = {
        f"PYTHONHASHSEED={seed}": replace(scene, env={"PYTHONHASHSEED": seed}) for seed in await seeds_for(stage)
    }
    for name in LOCALES:
        scenes[f"LC_ALL={name}"] = replace(scene, env={"LC_ALL": name, "LANG": name})
    found = await compare(stage, scenes, what="hash seed or locale")
    if varies and found.outcome != "fail":
        return await _only_under_one_seed(stage, scene, found)
    return found


async def _only_under_one_seed(stage: Stage, scene: Scene, found: Finding) -> Finding:
    """Runs that do not agree by themselves, and do under one seed: then it is the seed, though few seeds show it."""
    scenes = {f"PYTHONHASHSEED=0, run {n}": replace(scene, env={"PYTHONHASHSEED": "0"}) for n in range(stage.repeats)}
    words = [said(verdict) for verdict in await asyncio.gather(*map(stage.play, scenes.values()))]
    if len(set(words)) > 1:
        return found
    return fails(f"runs agree only under one hash seed: {words[0]}", runs=dict(zip(scenes, words, strict=True)))


CHECK = Check(
    id="hash_seed",
    question="Does the verdict stay the same under another hash seed and another locale?",
    fix="never print, join or index a set; set LC_ALL where you sort or match",
    examine=_examine,
    needs="oracle",
)
