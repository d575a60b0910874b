"""Run a script verifier in a sandbox: clear, upload the tests, start ``test.sh``, read the reward.

Promises: no reward that lay there before counts, and no tests but the task's own run; what the machinery fails at is
told apart from what the script fails at (``upload_failed``, ``sandbox_lost``). Which sandbox it is, and what the agent
left in it, is `envsdk.verifying.verify`.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Awaitable, Callable, Mapping

from envsdk.episode.record import VerifierEvidence
from envsdk.errors import EnvsdkError, SandboxError, UsageError, VerifierError
from envsdk.files.output import collect
from envsdk.sandboxes.base import ExecResult, Sandbox
from envsdk.spec.environ import resolve_env
from envsdk.spec.model import Task
from envsdk.verifying import clock_shift
from envsdk.verifying.results import RESULTS_DIR, TESTS_DIR, clear_results, fetch_results
from envsdk.verifying.reward import ResultFile, check_exit, parse_results
from envsdk.verifying.verdict import Verdict

TAIL_BYTES = 8 << 10
OUTPUT_CAP_BYTES = 1 << 20
_GONE = "see whether the tests need more memory than the container has, or end processes that are not theirs"
Hook = Callable[[Sandbox], Awaitable[None]]


async def run_script(
    task: Task,
    sandbox: Sandbox,
    *,
    env: Mapping[str, str] | None = None,
    faketime: str | None = None,
    before_start: Hook | None = None,
) -> Verdict:
    """Verify in ``sandbox``, which already holds the end state. Never raises for what a verifier or its box does.

    Raises:
        PrerequisiteError: ``faketime`` is asked for and the library for it cannot be had on this machine.
    """
    start = time.monotonic()
    shift = clock_shift.variables(faketime) if faketime else {}
    verifier = task.spec.verifier
    try:
        variables = {**resolve_env(verifier.env, os.environ), **(env or {}), **shift}
        if faketime:
            library, place = clock_shift.library()
            await sandbox.upload(library, place, user="root")
        await clear_results(sandbox)
        await sandbox.upload(task.root / "tests", TESTS_DIR, user="root")
        ready = f"chmod 755 {TESTS_DIR} {TESTS_DIR}/test.sh && chown {shlex.quote(verifier.user)} {RESULTS_DIR}"
        await sandbox.exec(ready, user="root", cwd="/", timeout_s=30)
        if before_start is not None:
            await before_start(sandbox)
    except (SandboxError, UsageError) as error:
        return _machinery("upload_failed", error, start)
    container = task.spec.verifier.container or task.spec.container
    workdir = container.workdir if container else sandbox.spec.workdir
    began = time.monotonic()
    try:
        ended = await sandbox.exec(
            f"{TESTS_DIR}/test.sh",
            timeout_s=task.spec.budget.verify_s,
            cwd=workdir,
            env=variables,
            user=verifier.user,
            output_cap_bytes=OUTPUT_CAP_BYTES,
        )
        found = [] if ended.timed_out or ended.channel_lost else await fetch_results(sandbox)
    except SandboxError as error:
        return _machinery("sandbox_lost", error, start)
    if ended.channel_lost:
        gone = SandboxError("the verifier's sandbox went away", code="channel_lost", hint=_GONE, where=sandbox.id)
        return _machinery("sandbox_lost", gone, start)
    return judge(task, ended, found, seconds=time.monotonic() - began)


def judge(task: Task, ended: ExecResult, found: list[ResultFile], *, seconds: float) -> Verdict:
    """The verdict of a script that ended so and left these files."""
    verifier = task.spec.verifier
    facts = {
        "range": [verifier.low, verifier.high],
        "pass_mark": verifier.success_at,
        "exit_code": ended.exit_code,
        "signal": ended.signal,
        "seconds": round(seconds, 3),
        "budget_s": task.spec.budget.verify_s,
        "leftover_agent_processes": 0,  # ended before the start, in whichever box
    }
    said = VerifierEvidence(
        exit_code=ended.exit_code,
        seconds=round(seconds, 3),
        stdout_tail=_tail(ended),
        reward_file="\n".join(f"{result.name}: {result.data[:500]!r}" for result in found),
    )
    if ended.timed_out:
        message = f"no end after {task.spec.budget.verify_s:g} s"
        evidence = said.model_copy(update={"error_code": "verifier_timeout", "message": message})
        return Verdict("timeout", code="verifier_timeout", evidence=evidence, seconds=seconds, facts=facts)
    try:
        check_exit(ended.exit_code, verifier.exit_status, where=task.slug)
        reward = parse_results(found, low=verifier.low, high=verifier.high, where=f"{task.slug}: {RESULTS_DIR}")
    except VerifierError as error:
        evidence = said.model_copy(update={"error_code": error.code, "message": error.message})
        return Verdict(
            "error", code=error.code, evidence=evidence, seconds=seconds, facts={**facts, "code": error.code}
        )
    return Verdict("scored", reward.reward, reward.rewards, evidence=said, seconds=seconds, facts=facts)


def _machinery(code: str, error: EnvsdkError, start: float) -> Verdict:
    seconds = time.monotonic() - start
    evidence = VerifierEvidence(seconds=round(seconds, 3), error_code=code, message=str(error))
    return Verdict("error", code=code, evidence=evidence, seconds=seconds, facts={"code": code})


def _tail(ended: ExecResult) -> str:
    # The end of the output tells what went wrong; bytes past the cap were not kept.
    return collect([ended.stdout[-TAIL_BYTES:], b"\n" if ended.stderr else b"", ended.stderr[-TAIL_BYTES:]]).text
