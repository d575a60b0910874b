"""Python verifiers: functions of the answer or of the end state, run in a process that can be killed.

The function returns a number, a bool, or numbers by name; what it returns is read by the same contract as a reward
file. An exception is an error of the verifier, never a reward of 0.
"""

from __future__ import annotations

import asyncio
import base64
import os
import stat
import time
from pathlib import Path
from typing import Any

from envsdk.authoring.state import MAX_READ_BYTES
from envsdk.digest import tree_digest
from envsdk.episode.record import VerifierEvidence
from envsdk.errors import VerifierError
from envsdk.spec.model import Task
from envsdk.verifying.reward import ResultFile, parse_results
from envsdk.verifying.surroundings import PLAIN, Surroundings
from envsdk.verifying.verdict import Artifacts, Verdict
from envsdk.verifying.workers import WORKERS, Worker

MEMORY_MIB = 1024
STATE_CAP_BYTES = 64 << 20
_PARAMS = "params.json"


async def verify_python(
    task: Task, *, answer: bytes | None, artifacts: Artifacts | None, surroundings: Surroundings = PLAIN
) -> Verdict:
    """Run a task's Python verifier. An answer that was never given is the empty text.

    Raises nothing for what the verifier does; the verdict says it.
    """
    verifier = task.spec.verifier
    start = time.monotonic()
    module, _, function = verifier.entry.partition("::")
    request: dict[str, Any] = {
        "kind": verifier.kind,
        "function": function,
        "params": verifier.params,
        "timeout_s": task.spec.budget.verify_s,
        "memory_mib": MEMORY_MIB,
        "answer": base64.b64encode(answer or b"").decode(),
        "files": _files(artifacts) if verifier.kind == "state" and artifacts is not None else [],
    }
    tests = task.root / "tests"
    try:
        file = str(Path(module).relative_to("tests"))
        content = _content(task)
        worker, said = await _asked(request, content, tests, file, surroundings)
        if said.get("lost"):  # a warm process may end between being found and being asked
            worker, said = await _asked(request, content, tests, file, surroundings)
    except VerifierError as error:
        evidence = VerifierEvidence(error_code=error.code, message=str(error))
        return Verdict("error", code=error.code, evidence=evidence, facts={"code": error.code})
    return _judge(task, said, seconds=time.monotonic() - start, isolation=worker.isolation)


async def _asked(
    request: dict[str, Any], content: str, tests: Path, file: str, surroundings: Surroundings
) -> tuple[Worker, dict[str, Any]]:
    worker = WORKERS.warm(content, file, surroundings)
    if worker is None:
        worker = await asyncio.to_thread(WORKERS.get, content, tests, file, surroundings)
    return worker, await asyncio.wrap_future(worker.submit(request))


_CONTENT: dict[str, str] = {}


def _content(task: Task) -> str:
    """Digest of the tests without the parameters, taken once per verifier digest."""
    known = _CONTENT.get(task.digests.verifier)
    if known is None:
        known = _CONTENT[task.digests.verifier] = tree_digest(task.root / "tests", keep=lambda path: path != _PARAMS)
    return known


def _judge(task: Task, said: dict[str, Any], *, seconds: float, isolation: str) -> Verdict:
    verifier = task.spec.verifier
    exit_code, ended_by = said.get("exit_code"), said.get("signal")
    facts = {
        "range": [verifier.low, verifier.high],
        "pass_mark": verifier.success_at,
        "exit_code": exit_code,
        "signal": ended_by,
        "seconds": round(seconds, 3),
        "budget_s": task.spec.budget.verify_s,
        "leftover_agent_processes": 0,
    }
    evidence = VerifierEvidence(
        exit_code=exit_code,
        seconds=round(seconds, 3),
        stdout_tail=said.get("output", ""),
        reward_file=str(said.get("value", ""))[:500],
        message=f"isolation: {isolation}",
    )

    def failed(code: str, message: str) -> Verdict:
        shown = evidence.model_copy(update={"error_code": code, "message": f"{message}; isolation: {isolation}"})
        return Verdict("error", code=code, evidence=shown, seconds=seconds, facts={**facts, "code": code})

    if said.get("lost"):
        return failed("upload_failed", "the verifier's process went away")
    if said.get("timed_out"):
        message = f"no end after {task.spec.budget.verify_s:g} s; isolation: {isolation}"
        shown = evidence.model_copy(update={"error_code": "verifier_timeout", "message": message})
        return Verdict("timeout", code="verifier_timeout", evidence=shown, seconds=seconds, facts=facts)
    if "value" not in said:
        return failed("verifier_exit", said.get("error") or f"ended by signal {ended_by}")
    data = str(said["value"]).encode()
    result = ResultFile("reward.json", regular=True, size=len(data), data=data)
    try:
        reward = parse_results([result], low=verifier.low, high=verifier.high, where=f"{task.slug}: {verifier.entry}")
    except VerifierError as error:
        return failed(error.code, error.message)
    return Verdict("scored", reward.reward, reward.rewards, evidence=evidence, seconds=seconds, facts=facts)


def _files(artifacts: Artifacts) -> list[tuple[str, str, str, int]]:
    """Every captured file, folder and link as (relative path, kind, content, permission bits), content in base64.

    What the handle would not read, or what would be too much together, is there by its size alone.
    """
    found: list[tuple[str, str, str, int]] = []
    room = STATE_CAP_BYTES
    for folder, names, files in os.walk(artifacts.root):
        for name in (*sorted(names), *sorted(files)):
            place = Path(folder, name)
            path, mode = place.relative_to(artifacts.root).as_posix(), stat.S_IMODE(place.lstat().st_mode)
            if place.is_symlink():
                found.append((path, "link", str(place.readlink()), mode))
            elif place.is_dir():
                found.append((path, "folder", "", mode))
            elif place.stat().st_size > min(room, MAX_READ_BYTES):
                found.append((path, "large", str(MAX_READ_BYTES + 1), mode))
            else:
                data = place.read_bytes()
                room -= len(data)
                found.append((path, "file", base64.b64encode(data).decode(), mode))
    return found
