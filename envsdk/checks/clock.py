"""``clock``: another date or time zone does not change the verdict.

The date is moved by a preloaded library, for the verifier alone; file times stay as they are.
"""

from __future__ import annotations

from dataclasses import replace

from envsdk.checks.agreement import compare
from envsdk.checks.check import Check, Finding, not_assessed, undecided
from envsdk.checks.repeat import repeated
from envsdk.checks.scene import Scene
from envsdk.checks.stage import Stage, oracle_scene
from envsdk.checks.surroundings import SHIFTS, ZONES, all_at_once
from envsdk.errors import PrerequisiteError


async def _examine(stage: Stage) -> Finding:
    if (await repeated(stage)).outcome == "fail":
        return not_assessed("runs on one state do not agree: see repeat")
    if (agreed := await all_at_once(stage)) is not None:
        return agreed
    scene = await oracle_scene(stage)
    zones: dict[str, Scene] = {f"TZ={zone}": replace(scene, env={"TZ": zone}) for zone in ZONES}
    shifts = {f"the clock at {shift}": replace(scene, faketime=shift) for shift in SHIFTS}
    try:
        return await compare(stage, {**zones, **shifts}, what="the clock or the time zone")
    except PrerequisiteError as error:
        found = await compare(stage, zones, what="the time zone")
        if found.outcome == "fail":
            return found
        return undecided(f"the time zone does not matter; the date was not tried: {error}", **found.evidence)


CHECK = Check(
    id="clock",
    question="Does the verdict stay the same on another day and in another time zone?",
    fix="give the date in the instruction, take times as UTC, and compare with constants",
    examine=_examine,
    needs="oracle",
)
