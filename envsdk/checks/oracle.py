"""``oracle``: the reference solution earns the full reward."""

from __future__ import annotations

from envsdk.checks.check import (
    MACHINERY,
    Check,
    Finding,
    fails,
    is_full,
    not_assessed,
    passes,
    said,
    shown,
    undecided,
)
from envsdk.checks.stage import Stage
from envsdk.episode.steps import passes_gate


async def _examine(stage: Stage) -> Finding:
    run = await stage.oracle()
    if run is None:
        return not_assessed("the task has no oracle")
    evidence = shown(run.verdict)
    if run.ended is not None and not run.ended.ok:
        tail = (run.ended.stdout + run.ended.stderr)[-800:].decode("utf-8", "replace").strip()
        how = "ran out of time" if run.ended.timed_out else f"ended with {run.ended.exit_code}"
        evidence |= {"oracle_script": how, "oracle_output": tail}
    if run.verdict.code in MACHINERY:
        return undecided(f"could not verify: {run.verdict.code}", **evidence)
    if not is_full(run.verdict, stage.task.spec.verifier):
        return fails(f"the oracle does not pass: {said(run.verdict)}", **evidence)
    opening = stage.opening
    if opening is not None and not opening.is_last and not passes_gate(opening.step, run.verdict):
        return fails(f"the oracle does not pass the step's own gate: {said(run.verdict)}", **evidence)
    return passes(said(run.verdict))


CHECK = Check(
    id="oracle",
    question="Does the reference solution earn the full reward?",
    fix="correct the verifier or the solution; a task nobody can solve teaches nothing",
    examine=_examine,
    runs_verifier=False,
)
