"""``echo``: giving the instruction back as the answer earns a valid reward below the pass mark."""

from __future__ import annotations

from envsdk.checks.check import Check, Finding, does_not_apply, expect_low
from envsdk.checks.scene import Scene
from envsdk.checks.stage import Stage


async def _examine(stage: Stage) -> Finding:
    spec = stage.task.spec
    if spec.agent.protocol != "answer":
        return does_not_apply("the task asks for work in a box, not for an answer")
    verdict = await stage.play(Scene(files={stage.answer_path: spec.instruction.encode()}))
    return expect_low(verdict, spec.verifier, "the instruction, given back,")


CHECK = Check(
    id="echo",
    question="Does giving the instruction back earn a valid reward below the pass mark?",
    fix="compare the whole answer instead of searching in it",
    examine=_examine,
)
