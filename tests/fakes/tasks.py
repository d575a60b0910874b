"""Small task directories for tests, written without the authoring package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from envsdk.spec.model import AgentSpec, Budget, ContainerSpec, Digests, Task, TaskSpec, VerifierSpec

SUM_TEST = """#!/bin/sh
got=$(cat /app/total.txt 2>/dev/null)
if [ "$got" = 42 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
"""
SUM_ORACLE = "#!/bin/sh\necho 42 > /app/total.txt\n"
TEXT_VERIFIER = "def judge(answer, *, expected='5'):\n    return float(answer.strip() == expected)\n"


def script_task(
    root: Path,
    *,
    test: str = SUM_TEST,
    oracle: str | None = SUM_ORACLE,
    slug: str = "sum",
    protocol: Any = "shell",
    budget: Budget | None = None,
    artifacts: tuple[str, ...] = ("/app/total.txt",),
    **verifier: Any,
) -> Task:
    """A task whose verifier is ``test`` and whose oracle is ``oracle``."""
    _write(root / "tests" / "test.sh", test)
    if oracle is not None:
        _write(root / "solution" / "solve.sh", oracle)
    spec = TaskSpec(
        slug=slug,
        instruction="Write 42 into /app/total.txt.",
        agent=AgentSpec(protocol=protocol),
        container=ContainerSpec(image="fake:latest"),
        verifier=VerifierSpec(kind="script", **verifier),
        budget=budget or Budget(verify_s=5, episode_s=10, step_s=5, turns=4),
        artifacts=artifacts,
    )
    return _task(spec, root, test, oracle)


def text_task(
    root: Path,
    *,
    source: str = TEXT_VERIFIER,
    function: str = "judge",
    answer: str | None = "5",
    budget: Budget | None = None,
    kind: Any = "text",
    protocol: Any = "answer",
    artifacts: tuple[str, ...] = (),
    params: dict[str, Any] | None = None,
    **verifier: Any,
) -> Task:
    """A task whose verifier is a Python function and whose oracle is a text."""
    _write(root / "tests" / "verifier.py", source)
    if answer is not None:
        _write(root / "solution" / "answer.txt", answer)
        _write(root / "solution" / "solve.sh", "#!/bin/sh\ncat /solution/answer.txt > /app/answer.txt\n")
    spec = TaskSpec(
        slug="text",
        instruction="What is 2+3?",
        agent=AgentSpec(protocol=protocol),
        verifier=VerifierSpec(
            kind=kind, entry=f"tests/verifier.py::{function}", params=params or {}, exit_status="native", **verifier
        ),
        budget=budget or Budget(verify_s=5, episode_s=10),
        artifacts=artifacts,
    )
    return _task(spec, root, source, answer)


def _task(spec: TaskSpec, root: Path, verifier: str, oracle: str | None) -> Task:
    seed = abs(hash((spec.model_dump_json(), verifier, str(root))))
    names = {name: f"{seed + offset:064x}"[-64:] for offset, name in enumerate(("task", "verifier", "package"))}
    return Task(spec=spec, digests=Digests(**names), root=root, oracle=None if oracle is None else "solution/solve.sh")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
