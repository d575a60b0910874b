"""What a task function returns: one task, before it is written out as a directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from envsdk.spec.contents import FileContent
from envsdk.spec.model import AgentSpec, Budget

Scalar = str | int | float | bool
Content = str | bytes | FileContent


@dataclass(frozen=True, kw_only=True)
class Draw:
    """One task of a family, or the one task of a task function.

    Replies (``oracle``, ``wrong``, ``right``) are answers for the protocol ``answer``, shell commands for ``command``,
    and shell scripts, run as the agent, for ``shell``.

    Attributes:
        instruction: what the model is asked.
        oracle: the reference solution; must earn the full reward.
        params: values given to the verifier by keyword; JSON.
        wrong: replies that must not pass, named or in order.
        right: other replies that must earn what the oracle earns.
        files: what lies in the work directory at the start, by relative path.
        environment: more files under ``environment/``, such as ``services/api/Dockerfile``.
        tests: more files under ``tests/``.
        agent, budget: in place of the declaration's.
    """

    instruction: str
    oracle: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    wrong: Sequence[str] | Mapping[str, str] = ()
    right: Sequence[str] | Mapping[str, str] = ()
    files: Mapping[str, Content] = field(default_factory=dict)
    environment: Mapping[str, Content] = field(default_factory=dict)
    tests: Mapping[str, Content] = field(default_factory=dict)
    agent: AgentSpec | None = None
    budget: Budget | None = None


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
