"""``repeat``: runs of the verifier on one state agree."""

from __future__ import annotations

from envsdk.checks.agreement import compare
from envsdk.checks.check import Check, Finding
from envsdk.checks.stage import Stage, oracle_scene


async def repeated(stage: Stage) -> Finding:
    """Whether runs on one state agree, asked once on a stage. Raises `SandboxError`."""

    async def ask() -> Finding:
        scene = await oracle_scene(stage)
        return await compare(stage, {f"run {number}": scene for number in range(2, stage.repeats + 1)}, what="chance")

    return await stage.once("repeat", ask)  # type: ignore[no-any-return]


CHECK = Check(
    id="repeat",
    question="Do runs on one state agree?",
    fix="seed what is random, sort what has no order, wait for what is started: one state has one verdict",
    examine=repeated,
    needs="oracle",
)
