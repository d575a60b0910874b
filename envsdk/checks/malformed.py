"""``malformed``: every artifact as bytes that are no text earns a valid reward below the pass mark."""

from __future__ import annotations

from envsdk.checks.check import Check, Finding, expect_low
from envsdk.checks.scene import Scene
from envsdk.checks.stage import Stage
from envsdk.checks.targets import target_files

BYTES = b"\xff\xfe\x00\x80garbage\xc3\x28\xf0\x28\x8c\x28\x00\r\n\x1b[31m\xed\xa0\x80"


async def _examine(stage: Stage) -> Finding:
    scene = Scene(files=dict.fromkeys(await target_files(stage), BYTES))
    return expect_low(await stage.play(scene), stage.task.spec.verifier, "a submission that is no text")


CHECK = Check(
    id="malformed",
    question="Do bytes that are no text earn a valid reward below the pass mark?",
    fix="take what cannot be read for a wrong answer and write 0: garbage must be graded, not escape as an error",
    examine=_examine,
)
