"""What goes into a verification and what comes out: end states and verdicts as frozen data.

A verdict holds a reward or the reason why there is none, never both; it does not say whose fault that is, which
`envsdk.outcome` decides from its facts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from envsdk.episode.record import VerifierEvidence
from envsdk.sandboxes.base import Sandbox
from envsdk.spec.meaning import ANSWER_PATH
from envsdk.spec.model import TaskSpec

VerifyStatus = Literal["scored", "error", "timeout", "not_run"]


@dataclass(frozen=True, slots=True)
class Artifacts:
    """Files captured from an agent's box: ``/app/x`` lies at ``root/app/x`` on this machine.

    ``captured`` and ``missing`` are the declared paths; ``dropped`` are links that led out of their artifact, and
    paths that were too large.
    """

    root: Path
    captured: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()

    def local(self, path: str) -> Path:
        """Where a captured path lies here."""
        return self.root / path.lstrip("/")


@dataclass(frozen=True, slots=True)
class EndState:
    """What an episode left: the answer's bytes, the live sandbox, captured artifacts; any of them may be absent.

    ``network`` is the id of the network of the episode's services, which are still up.
    """

    answer: bytes | None = None
    sandbox: Sandbox | None = None
    artifacts: Artifacts | None = None
    network: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one verification said. ``reward`` is a number or absent, never 0 for absent.

    Attributes:
        code: the reward contract's error code, ``upload_failed``, or empty.
        facts: what the outcome table needs to know of the verifier (`envsdk.outcome.facts.VerifierFact`).
    """

    status: VerifyStatus
    reward: float | None = None
    rewards: dict[str, float] = field(default_factory=dict)
    code: str = ""
    evidence: VerifierEvidence = field(default_factory=VerifierEvidence)
    seconds: float = 0.0
    facts: dict[str, Any] = field(default_factory=dict)


def answer_path(spec: TaskSpec) -> str:
    """Where a task's answer is stored: its first artifact, or `envsdk.spec.meaning.ANSWER_PATH`."""
    return spec.artifacts[0] if spec.artifacts else ANSWER_PATH


def declared_artifacts(spec: TaskSpec) -> tuple[str, ...]:
    """What is carried from the agent's box to the verifier's: what the task declares.

    A task that declares nothing is graded on its answer file, or, where the agent works in a shell, on its work
    directory.
    """
    if spec.artifacts:
        return spec.artifacts
    if spec.agent.protocol == "shell" and spec.container is not None:
        return (spec.container.workdir,)
    return (ANSWER_PATH,)
