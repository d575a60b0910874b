"""What a task function returns: one task, before it is written out as a directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from envsdk.spec.contents import FileContent
from envsdk.spec.model import AgentSpec, Budget

Scalar = str | int | float | bool
Content = str | bytes | FileContent


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of a task that has several: one box, one instruction after another, a reward after each.

    Attributes:
        name: a file name; also the name of the step's reward.
        instruction: what the model is asked.
        oracle: the reference solution of this step, given that those before it were done.
        params: values given to a Python verifier in this step, by keyword.
        files: put into the work directory before the step begins; ``setup.sh`` among them is run and removed.
        tests: more files for this step's verifier, over the task's own.
        min_reward: the least reward, or rewards by name, that lets the next step begin.
        artifacts: what this step's verifier is given, in place of the task's.
    """

    name: str
    instruction: str
    oracle: str
    params: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, Content] = field(default_factory=dict)
    tests: Mapping[str, Content] = field(default_factory=dict)
    min_reward: float | Mapping[str, float] = field(default_factory=dict)
    artifacts: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Draw:
    """One task of a family, or the one task of a task function.

    Replies (``oracle``, ``wrong``, ``right``) are answers for the protocol ``answer``, shell commands for ``command``,
    and shell scripts, run as the agent, for ``shell``.

    Attributes:
        instruction: what the model is asked; empty for a task of several steps.
        oracle: the reference solution; must earn the full reward.
        params: values given to the verifier by keyword; JSON.
        wrong: replies that must not pass, named or in order.
        right: other replies that must earn what the oracle earns.
        files: what lies in the work directory at the start, by relative path.
        environment: more files under ``environment/``, such as ``services/api/Dockerfile``.
        tests: more files under ``tests/``.
        agent, budget: in place of the declaration's.
        steps: of a task that has several. ``step_reward`` says how their rewards become one: their ``mean``, steps that
            were not begun counting as the bottom of the range, or the ``final`` one.
    """

    instruction: str = ""
    oracle: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    wrong: Sequence[str] | Mapping[str, str] = ()
    right: Sequence[str] | Mapping[str, str] = ()
    files: Mapping[str, Content] = field(default_factory=dict)
    environment: Mapping[str, Content] = field(default_factory=dict)
    tests: Mapping[str, Content] = field(default_factory=dict)
    agent: AgentSpec | None = None
    budget: Budget | None = None
    steps: Sequence[Step] = ()
    step_reward: Literal["mean", "final"] = "mean"


def content_of(value: Content) -> FileContent:
    """A file's content; text is UTF-8, and what starts with ``#!`` may be run."""
    if isinstance(value, FileContent):
        return value
    data = value.encode() if isinstance(value, str) else value
    return FileContent(data, executable=data.startswith(b"#!"))


def named(replies: Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    """Replies by name: given, or their position from 1.

    Raises:
        TypeError: a single text was given where several are meant.
    """
    if isinstance(replies, str):
        raise TypeError("give a list of replies, not one text")
    if isinstance(replies, Mapping):
        return dict(replies)
    return {f"{number:02d}": reply for number, reply in enumerate(replies, start=1)}
