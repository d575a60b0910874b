"""Verify an end state: the one way from what an episode left to a verdict.

Script verifiers run in a fresh sandbox from the pristine image with the declared artifacts (mode ``separate``), or in
the agent's own box once its processes are gone (mode ``shared``). Python verifiers run in a process that can be
killed, which sees the answer or the artifacts and nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

from envsdk.episode.record import VerifierEvidence
from envsdk.errors import EnvsdkError, SandboxError, UsageError, VerifierError
from envsdk.files.scratch import scratch
from envsdk.sandboxes.base import Sandbox, SandboxProvider, SandboxSpec
from envsdk.sandboxes.kept import KeptSandbox
from envsdk.sandboxes.limits import bounds
from envsdk.spec.model import Task
from envsdk.verifying.artifacts import capture, place, size_bytes
from envsdk.verifying.pristine import box_spec, image_of
from envsdk.verifying.python import verify_python
from envsdk.verifying.script import Hook, run_script
from envsdk.verifying.surroundings import Surroundings
from envsdk.verifying.verdict import Artifacts, EndState, Verdict, answer_path, declared_artifacts


async def verify(
    task: Task,
    end: EndState,
    provider: SandboxProvider | None,
    *,
    env: Mapping[str, str] | None = None,
    faketime: str | None = None,
    before_start: Hook | None = None,
    in_sandbox: bool = False,
) -> Verdict:
    """Turn an end state into a verdict. What the verifier does wrong is in the verdict, never raised.

    Args:
        task: the task.
        end: what the episode left; captured artifacts are used where given, else taken from the live sandbox.
        provider: where fresh sandboxes come from; `None` is enough for Python verifiers.
        env: more environment variables for the verifier (clock, locale and hash-seed checks).
        faketime: how far the wall clock is moved for the script, such as ``+400d``.
        before_start: called with the sandbox after stale rewards are gone, right before the script starts.
        in_sandbox: run the script that stands beside a Python verifier, in a sandbox, instead of the function.

    Raises:
        VerifierError: code ``no_provider`` where a sandbox is needed and none is given.
        PrerequisiteError: as `envsdk.verifying.script.run_script`.
    """
    if task.spec.verifier.kind != "script" and not in_sandbox:
        return await _python(task, end, Surroundings.of(env, faketime))
    if provider is None:
        raise VerifierError(
            "this verifier runs in a sandbox and no provider is given",
            code="no_provider",
            hint="pass one: see `envsdk.sandboxes.open_provider`",
            where=task.slug,
        )
    options = {"env": env, "faketime": faketime, "before_start": before_start}
    if task.spec.verifier.mode == "shared" and end.sandbox is not None:
        return await _shared(task, end.sandbox, **options)  # type: ignore[arg-type]
    return await _separate(task, end, provider, **options)  # type: ignore[arg-type]


async def _separate(
    task: Task,
    end: EndState,
    provider: SandboxProvider,
    *,
    env: Mapping[str, str] | None,
    faketime: str | None,
    before_start: Hook | None,
) -> Verdict:
    start = time.monotonic()
    async with AsyncExitStack() as closing:
        try:
            folder = closing.enter_context(scratch("artifacts"))
            artifacts = await _artifacts(task, end, folder)
            spec = box_spec(task, await image_of(task, provider, "verifier"), role="verifier", network=end.network)
            box = await provider.acquire(_with_room(spec, artifacts), timeout_s=task.spec.budget.acquire_s)
            closing.push_async_callback(box.close)
            await place(box, artifacts)
        except (SandboxError, UsageError) as error:
            return _not_ready(error, start)
        return await run_script(task, box, env=env, faketime=faketime, before_start=before_start)


def _with_room(spec: SandboxSpec, artifacts: Artifacts) -> SandboxSpec:
    """The verifier's box, with its own disk limit beside what is carried into it.

    An agent that filled its disk would else have filled the verifier's: a failure of the machinery, which excuses it.
    """
    limit_mib = bounds(spec.limits).disk_mib
    carried_mib = sum(size_bytes(artifacts.local(path)) for path in artifacts.captured) >> 20
    if 2 * carried_mib < limit_mib:
        return spec
    limits = spec.limits.model_copy(update={"disk_mib": limit_mib + carried_mib})
    return spec.model_copy(update={"limits": limits})


async def _shared(
    task: Task, box: Sandbox, *, env: Mapping[str, str] | None, faketime: str | None, before_start: Hook | None
) -> Verdict:
    start = time.monotonic()
    try:
        await box.kill_agent_processes()
        if isinstance(box, KeptSandbox):
            await box.make_room()
    except SandboxError as error:
        return _not_ready(error, start)
    return await run_script(task, box, env=env, faketime=faketime, before_start=before_start)


def _not_ready(error: EnvsdkError, start: float) -> Verdict:
    """The verifier's box or files could not be made ready: no word of the verifier's."""
    seconds = time.monotonic() - start
    evidence = VerifierEvidence(seconds=round(seconds, 3), error_code="upload_failed", message=str(error))
    return Verdict("error", code="upload_failed", evidence=evidence, seconds=seconds, facts={"code": "upload_failed"})


async def _python(task: Task, end: EndState, surroundings: Surroundings) -> Verdict:
    answer = end.answer
    artifacts: Artifacts | None = None
    with ExitStack() as closing:
        try:
            if task.spec.verifier.kind == "state" or (answer is None and (end.sandbox or end.artifacts)):
                folder = closing.enter_context(scratch("artifacts"))
                artifacts = await _artifacts(task, end, folder)
        except SandboxError as error:
            evidence = VerifierEvidence(error_code="download_failed", message=str(error))
            return Verdict("error", code="download_failed", evidence=evidence, facts={"code": "download_failed"})
        if answer is None and artifacts is not None:
            stored = artifacts.local(answer_path(task.spec))
            answer = stored.read_bytes() if stored.is_file() else None
        return await verify_python(task, answer=answer, artifacts=artifacts, surroundings=surroundings)


async def _artifacts(task: Task, end: EndState, folder: Path) -> Artifacts:
    """What was captured, or what can be now; an answer that was never in a sandbox becomes its first artifact."""
    if end.artifacts is not None:
        return end.artifacts
    declared = declared_artifacts(task.spec)
    if end.sandbox is not None:
        return await capture(end.sandbox, declared, folder)
    if end.answer is None:
        return Artifacts(folder, missing=declared)
    path = answer_path(task.spec)
    stored = folder / path.lstrip("/")
    stored.parent.mkdir(parents=True, exist_ok=True)
    stored.write_bytes(end.answer)
    return Artifacts(folder, captured=(path,), missing=tuple(other for other in declared if other != path))
