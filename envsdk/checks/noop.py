"""``noop``: doing nothing earns a valid reward below the pass mark."""

from __future__ import annotations

from envsdk.checks.check import Check, Finding, expect_low
from envsdk.checks.scene import Scene
from envsdk.checks.stage import Stage


async def _examine(stage: Stage) -> Finding:
    return expect_low(await stage.play(Scene()), stage.task.spec.verifier, "doing nothing")


CHECK = Check(
    id="noop",
    question="Does doing nothing earn a valid reward below the pass mark?",
    fix="judge what was asked for, and write 0 where it is missing: an answer that is absent is a wrong answer",
    examine=_examine,
)
