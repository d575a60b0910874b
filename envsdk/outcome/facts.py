"""The facts a harness can observe about how an episode ended.

Every field is optional but ``phase`` and ``ended_by``: absent means "not observed", never "no". Text that the model
could write (a command's text and output) is recorded for readers and decides nothing. Times are seconds, sizes MiB.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator


class _Record(BaseModel):
    """Strict types: a wrongly typed fact is no observation. Unknown fields are another version's and are left out."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True, allow_inf_nan=True)


class ExceptionFact(_Record):
    """A typed exception of the harness."""

    kind: str | None = None
    note: str | None = None


class CommandFact(_Record):
    """The model's last command; only ``seconds`` and ``budget_s`` are measured by the harness."""

    text: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    seconds: float | None = None
    budget_s: float | None = None
    output: str | None = None


class SandboxFact(_Record):
    """A probe after the event. ``state_recovered`` false: its file system could not be started or read again."""

    alive: bool | None = None
    main_exit_code: int | None = None
    oom_flag: bool | None = None
    pristine_ok: bool | None = None
    state_recovered: bool | None = None


class MemoryFact(_Record):
    """Counters of one memory cgroup: task, parent, service, verifier, harness or host."""

    cgroup: str | None = None
    limit_hits: int | None = None
    oom_kills: int | None = None
    peak_mib: float | None = None
    limit_mib: float | None = None


class PidsFact(_Record):
    """Counters of the sandbox's process limit, and how many the host still has."""

    limit_hits: int | None = None
    peak: int | None = None
    limit: int | None = None
    host_free: int | None = None


class DiskFact(_Record):
    """Which disk was full: ``task_quota`` or ``host``."""

    full: str | None = None
    task_used_mib: float | None = None
    task_quota_mib: float | None = None
    host_free_mib: float | None = None


class KillFact(_Record):
    """Sender of a kill as recorded by the kernel or the engine, and what it hit."""

    by: str | None = None
    target: str | None = None


class EngineFact(_Record):
    """The container engine."""

    reachable: bool | None = None
    restarted: bool | None = None
    status: int | str | None = None


class InferenceFact(_Record):
    """The last exchange with the inference engine."""

    status: int | None = None
    code: str | None = None
    attempts: int | None = None
    choices: int | None = None
    completion_tokens: int | None = None
    finish_reason: str | None = None
    replica_healthy: bool | None = None


class HeldFact(_Record):
    """Seconds of the episode's clock by who kept the others waiting."""

    model: float | None = None
    tool: float | None = None
    inference: float | None = None
    harness: float | None = None


class ClocksFact(_Record):
    """The clock that ran out, who held it, in all and ``at_end``, and whether the two system clocks agree."""

    at_end: str | None = None
    budget_s: float | None = None
    held_s: HeldFact | None = None
    queued_s: float | None = None
    ran_s: float | None = None
    wall_s: float | None = None
    monotonic_s: float | None = None


class HostFact(_Record):
    """``cpu_pressure``: share of time runnable tasks waited; ``probe_s``: ``true`` in a sibling (idle: 0.05).

    ``run_queue``: tasks that wanted a processor, for each one there is; recorded, not judged by.
    """

    run_queue: float | None = None
    cpu_pressure: float | None = None
    probe_s: float | None = None


class ToolCallsFact(_Record):
    """``last_valid``: the last call fits the declared schema."""

    unusable_in_a_row: int | None = None
    last_valid: bool | None = None


class TokensFact(_Record):
    """``complete``: every generated token and logprob is at hand."""

    complete: bool | None = None


class VerifierFact(_Record):
    """What the verifier did. ``status``: scored, error, timeout, not_run; ``reward_writer``: who wrote it last."""

    status: str | None = None
    reward: float | None = None
    rewards: dict[str, float] = Field(default_factory=dict)
    range: tuple[float, float] | None = Field(default=None, strict=False)
    pass_mark: float | None = None
    code: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    seconds: float | None = None
    budget_s: float | None = None
    leftover_agent_processes: int | None = None
    runs: int | None = None
    reward_writer: str | None = None

    @field_validator("range")
    @classmethod
    def _is_a_range(cls, value: tuple[float, float] | None) -> tuple[float, float] | None:
        if value is not None and not -math.inf < value[0] < value[1] < math.inf:
            raise ValueError("no range: its bottom would be its top")  # then it was not observed
        return value


class ControlFact(_Record):
    """One further run of the same verifier, on another state or the same."""

    state: str | None = None
    status: str | None = None
    reward: float | None = None
    seconds: float | None = None


class Facts(_Record):
    """All that was observed about one end. ``cancelled_by``: ``scheduler``, or ``restart`` after its run was killed."""

    phase: str | None = None
    ended_by: str | None = None
    cancelled_by: str | None = None
    exception: ExceptionFact | None = None
    command: CommandFact = CommandFact()
    sandbox: SandboxFact = SandboxFact()
    memory: MemoryFact = MemoryFact()
    pids: PidsFact = PidsFact()
    disk: DiskFact = DiskFact()
    kill: KillFact = KillFact()
    engine: EngineFact = EngineFact()
    inference: InferenceFact = InferenceFact()
    clocks: ClocksFact = ClocksFact()
    host: HostFact = HostFact()
    tool_calls: ToolCallsFact = ToolCallsFact()
    tokens: TokensFact = TokensFact()
    verifier: VerifierFact = VerifierFact()
    control: tuple[ControlFact, ...] = Field(default=(), strict=False)

    @property
    def low(self) -> float:
        """Bottom of the reward's range (default 0)."""
        return self.verifier.range[0] if self.verifier.range else 0.0

    @property
    def high(self) -> float:
        """Top of the reward's range (default 1)."""
        return self.verifier.range[1] if self.verifier.range else 1.0

    @property
    def pass_mark(self) -> float:
        """The least reward that is a success: stated, or the top of the range."""
        return self.high if self.verifier.pass_mark is None else self.verifier.pass_mark


def read_facts(facts: Mapping[str, Any]) -> Facts:
    """Parse facts; a field of the wrong type counts as not observed. Never raises."""
    remaining: dict[str, Any] = {str(key): value for key, value in facts.items() if value is not None}
    while True:
        try:
            return Facts.model_validate(remaining)
        except ValidationError as error:
            for problem in error.errors(include_url=False, include_context=False, include_input=False):
                remaining = _without(remaining, problem["loc"])  # always shorter: every field is optional


def _without(tree: Any, location: tuple[int | str, ...]) -> Any:
    """A copy of ``tree`` without what lies at ``location``, or without the deepest part of it that exists."""
    if isinstance(tree, Mapping) and location and location[0] in tree:
        key, rest = location[0], location[1:]
        inner = tree[key]
        reachable = bool(rest) and isinstance(inner, Mapping | list | tuple) and _reaches(inner, rest[0])
        kept = {name: value for name, value in tree.items() if name != key}
        return {**kept, key: _without(inner, rest)} if reachable else kept
    if isinstance(tree, list | tuple) and location and _reaches(tree, location[0]):
        place = int(location[0])
        inner, rest = tree[place], location[1:]
        deeper = [_without(inner, rest)] if rest and isinstance(inner, Mapping) and _reaches(inner, rest[0]) else []
        return [*tree[:place], *deeper, *tree[place + 1 :]]
    return tree


def _reaches(tree: Any, key: int | str) -> bool:
    if isinstance(tree, Mapping):
        return key in tree
    return isinstance(key, int) and key < len(tree)
