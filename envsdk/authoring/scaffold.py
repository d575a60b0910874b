"""The tasks that ``envsdk init`` writes: one small, sound example of each kind of verifier."""

from __future__ import annotations

from pathlib import Path

from envsdk.authoring.write import default_dockerfile, mutant_files, python_verifier_files, reply_files
from envsdk.errors import UsageError
from envsdk.spec.contents import FileContent
from envsdk.spec.dump import dump_task
from envsdk.spec.meaning import ANSWER_PATH, slug_of
from envsdk.spec.model import AgentSpec, Budget, ContainerSpec, Task, TaskSpec, VerifierSpec
from envsdk.suggest import did_you_mean

TEXT_VERIFIER = b'''"""Judges the answer of the task: change `is_right`, and params.json beside it."""


def is_right(answer: str, *, expected: str) -> float:
    """The reward: 1 where the answer is the expected word, white space at its ends aside."""
    return float(answer.strip() == expected)
'''

STATE_VERIFIER = b'''"""Judges the end state of the task: change `is_right`, and params.json beside it."""


def is_right(state, *, expected: str) -> float:
    """The reward: 1 where /app/greeting.txt holds the expected line and nothing else."""
    try:
        return float(state.read("/app/greeting.txt").decode("utf-8", "replace") == expected)
    except FileNotFoundError:
        return 0.0
'''

SCRIPT_VERIFIER = b"""#!/bin/sh
# Judges the end state of the task, in a fresh box that holds the artifacts. Only the reward file counts.
mkdir -p /logs/verifier
if [ -f /app/greeting.txt ] && [ "$(head -c 100 /app/greeting.txt)" = "good morning" ]; then
    echo 1 > /logs/verifier/reward.txt
else
    echo 0 > /logs/verifier/reward.txt
fi
"""

_BOX_INSTRUCTION = "Write the line: good morning\ninto the file /app/greeting.txt.\n"
_BOX_ORACLE = "echo 'good morning' > /app/greeting.txt"
_BOX_WRONG = {
    "another-text": "echo 'good night' > /app/greeting.txt",
    "another-file": "echo 'good morning' > /app/greetings",
}


def scaffold(directory: Path, *, kind: str = "text") -> Task:
    """Write the example of ``kind`` (``text``, ``state``, ``script``) as the task directory ``directory``.

    Raises:
        UsageError: there is no such kind (``bad_kind``), or the directory is taken (``destination_exists``).
    """
    makers = {"text": _text, "state": _state, "script": _script}
    if kind not in makers:
        hint = did_you_mean(kind, makers) or f"one of {', '.join(makers)}"
        raise UsageError(f"no kind of task {kind!r}", code="bad_kind", hint=hint)
    spec, files = makers[kind](slug_of(directory.absolute().name))
    return dump_task(spec, {"environment/Dockerfile": FileContent(default_dockerfile().encode()), **files}, directory)


def _text(slug: str) -> tuple[TaskSpec, dict[str, FileContent]]:
    spec = TaskSpec(
        slug=slug,
        instruction="Write the word apple in capital letters, and nothing else.\n",
        agent=AgentSpec(protocol="answer"),
        verifier=VerifierSpec(
            kind="text", entry="tests/verifier.py::is_right", params={"expected": "APPLE"}, exit_status="native"
        ),
        budget=Budget(turns=1),
        artifacts=(ANSWER_PATH,),
    )
    return spec, {
        **python_verifier_files(TEXT_VERIFIER, "is_right", kind="text"),
        **reply_files("APPLE", protocol="answer"),
        **mutant_files({"as-given": "apple", "chatty": "Sure: APPLE"}, "wrong", protocol="answer"),
        **mutant_files({"newline": "APPLE\n"}, "right", protocol="answer"),
    }


def _state(slug: str) -> tuple[TaskSpec, dict[str, FileContent]]:
    verifier = VerifierSpec(
        kind="state", entry="tests/verifier.py::is_right", params={"expected": "good morning\n"}, exit_status="native"
    )
    return _boxed(slug, verifier), {**python_verifier_files(STATE_VERIFIER, "is_right", kind="state"), **_box_replies()}


def _script(slug: str) -> tuple[TaskSpec, dict[str, FileContent]]:
    script = {"tests/test.sh": FileContent(SCRIPT_VERIFIER, executable=True)}
    return _boxed(slug, VerifierSpec()), {**script, **_box_replies()}


def _boxed(slug: str, verifier: VerifierSpec) -> TaskSpec:
    return TaskSpec(
        slug=slug,
        instruction=_BOX_INSTRUCTION,
        container=ContainerSpec(),
        verifier=verifier,
        artifacts=("/app/greeting.txt",),
    )


def _box_replies() -> dict[str, FileContent]:
    return {**reply_files(_BOX_ORACLE, protocol="shell"), **mutant_files(_BOX_WRONG, "wrong", protocol="shell")}
