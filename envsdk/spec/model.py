"""What a task is, as frozen records: instruction + container + verifier + budget.

These records are the parsed view of a task directory (Harbor's ``task.toml`` and the folders beside it). Fields that
Harbor does not know live in the table ``[metadata.envsdk]``, which Harbor leaves alone, so that every task of ours is a
Harbor task. Units stand in the names. Reading, writing, validation and digests are `envsdk.spec.load`,
`envsdk.spec.dump` and `envsdk.digest`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from envsdk.frozen import Frozen
from envsdk.sandboxes.base import Limits

Protocol = Literal["answer", "command", "shell"]
NetworkMode = Literal["none", "internal", "public", "allowlist"]


class Example(Frozen):
    """One worked exchange shown to the model before the task: part of what the agent meets."""

    user: str
    assistant: str


class AgentSpec(Frozen):
    """How a policy meets the task.

    Attributes:
        protocol: ``answer``: one reply, its text is the answer, stored as the task's first artifact, by default
            ``/app/answer.txt``. ``command``: one reply, run as one shell command in the work directory; what it prints
            on stdout is the answer, stored the same way. ``shell``: a reply a turn, each run as a command, its output
            returned, until the reply is the word ``done`` or a limit ends it.
        system: system prompt; empty for none.
        examples: few-shot exchanges, in order, before the instruction.
        stop: strings that end a reply.
    """

    protocol: Protocol = "shell"
    system: str = ""
    examples: tuple[Example, ...] = ()
    stop: tuple[str, ...] = ()
    user: str = "agent"


class HealthCheck(Frozen):
    """When a container counts as up."""

    command: str
    interval_s: float = Field(default=0.2, gt=0)
    timeout_s: float = Field(default=5.0, gt=0)
    retries: int = Field(default=50, ge=1)


class McpServer(Frozen):
    """A tool server that the agent may call, as Harbor declares it."""

    name: str
    transport: Literal["sse", "streamable-http", "stdio", "http"] = "sse"
    url: str | None = None
    command: str | None = None
    args: tuple[str, ...] = ()
    headers: dict[str, str] = Field(default_factory=dict)


class ContainerSpec(Frozen):
    """The box the agent acts in: ``image``, else ``environment/Dockerfile``.

    Values of ``env`` may hold ``${NAME}`` or ``${NAME:-default}``: see `envsdk.spec.environ`. ``setup`` is a shell
    script that runs once, as root in the work directory, before the first episode: what it leaves is part of the image.
    """

    image: str | None = None
    workdir: str = "/app"
    setup: str = ""
    env: dict[str, str] = Field(default_factory=dict)
    limits: Limits = Limits()
    network: NetworkMode = "none"
    allowed_hosts: tuple[str, ...] = ()
    healthcheck: HealthCheck | None = None
    mcp_servers: tuple[McpServer, ...] = ()


class ServiceSpec(Frozen):
    """A container beside the agent's, reachable by its name on the episode's internal network.

    Attributes:
        image: names an image; else it is built from ``build``, a folder under ``environment/`` (``.`` for that itself),
            by default ``services/<name>``. The agent never sees its files.
        command: run by a shell in place of all that the image runs by itself.
        args: words given to the image's own entry point, in place of its own.
        after: services that must be healthy before this one starts.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9_-]{0,62}$")
    image: str | None = None
    build: str | None = Field(default=None, pattern=r"^(\.|[\w][\w.\-]*(/[\w][\w.\-]*)*)$")
    command: str | None = None
    args: tuple[str, ...] | None = None
    after: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    port: int | None = Field(default=None, ge=1, le=65535)
    healthcheck: HealthCheck | None = None
    limits: Limits = Limits()


class VerifierSpec(Frozen):
    """What turns the end state into a reward.

    Attributes:
        kind: ``text``: a Python function of the answer. ``state``: a Python function of a read handle on the end state,
            `envsdk.authoring.state.State`. ``script``: ``tests/test.sh`` run in a sandbox, which writes a reward file.
            Python functions return a number, a bool, or numbers by name; text and state verifiers need no sandbox, but
            ``tests/test.sh`` stands beside them and does the same in one.
        entry: for Python verifiers ``tests/verifier.py::function``.
        params: the values given to a Python verifier by keyword; stored in ``tests/params.json``.
        mode: ``separate``: a fresh sandbox plus the declared artifacts. ``shared``: the agent's own box.
        low, high: declared range of the reward; ``pass_mark`` is the least that counts as success.
        container: its own box, in ``separate`` mode; `None` for one like the agent's.
        exit_status: ``native``: a non-zero exit is a verifier error. ``harbor``: only the reward file counts.
    """

    kind: Literal["text", "state", "script"] = "script"
    entry: str = ""
    params: dict[str, Any] = Field(default_factory=dict)
    mode: Literal["separate", "shared"] = "separate"
    low: float = 0.0
    high: float = 1.0
    pass_mark: float | None = None
    user: str = "root"
    env: dict[str, str] = Field(default_factory=dict)
    network: NetworkMode = "none"
    container: ContainerSpec | None = None
    exit_status: Literal["native", "harbor"] = "harbor"

    @model_validator(mode="after")
    def _range_is_ordered(self) -> VerifierSpec:
        if not self.low < self.high:
            raise ValueError(f"reward range [{self.low}, {self.high}] is empty: low must be below high")
        return self

    @property
    def success_at(self) -> float:
        """The least reward that counts as success: ``pass_mark``, or the top of the range."""
        return self.high if self.pass_mark is None else self.pass_mark


class Budget(Frozen):
    """Separate clocks; each starts when its phase starts, not when it queues. Seconds, tokens, turns."""

    build_s: float = Field(default=600.0, gt=0)
    acquire_s: float = Field(default=60.0, gt=0)
    setup_s: float = Field(default=60.0, gt=0)
    step_s: float = Field(default=60.0, gt=0)
    episode_s: float = Field(default=600.0, gt=0)
    verify_s: float = Field(default=600.0, gt=0)
    total_s: float = Field(default=1800.0, gt=0)
    turns: int = Field(default=16, ge=1)
    reply_tokens: int = Field(default=512, ge=1)
    episode_tokens: int = Field(default=16384, ge=1)


class StepSpec(Frozen):
    """One step of a task that has several: files in ``steps/<name>/``. Clocks that are absent are the task's.

    ``min_reward`` is the gate, by reward name: below it the steps after this one are not begun. ``env`` is the
    verifier's, over the task's; ``healthcheck`` must pass before the agent is asked.
    """

    name: str = Field(pattern=r"^[\w][\w.\-]{0,100}$")
    instruction: str
    episode_s: float | None = Field(default=None, gt=0)
    verify_s: float | None = Field(default=None, gt=0)
    min_reward: dict[str, float] = Field(default_factory=dict)
    artifacts: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    healthcheck: HealthCheck | None = None


class TaskSpec(Frozen):
    """A task as data. Identity is content: see `envsdk.digest` for which part each digest covers.

    ``container`` is `None` only for pure text tasks, which need no sandbox. A task with ``steps`` has one instruction a
    step, and its own is empty; ``step_reward`` says how theirs become one. ``metadata`` is the free table without ours.
    """

    slug: str = Field(pattern=r"^[\w][\w.\- ]{0,200}$")
    instruction: str
    agent: AgentSpec = AgentSpec()
    container: ContainerSpec | None = None
    services: tuple[ServiceSpec, ...] = ()
    verifier: VerifierSpec = VerifierSpec()
    budget: Budget = Budget()
    artifacts: tuple[str, ...] = ()
    steps: tuple[StepSpec, ...] = ()
    step_reward: Literal["mean", "final"] = "mean"
    family: str = ""
    level: dict[str, str | int | float | bool] = Field(default_factory=dict)
    seed: int | None = None
    tags: tuple[str, ...] = ()
    description: str = ""
    schema_version: str = "1.4"
    metadata: dict[str, Any] = Field(default_factory=dict)


class Digests(Frozen):
    """The three names of a task's content, each 64 lower-case hex digits."""

    task: str
    verifier: str
    package: str


class Task(Frozen):
    """A validated task directory: its parsed spec, its digests, and where its files lie.

    ``root`` is where the files are on this machine; it is no part of the identity. ``oracle`` is the path of the oracle
    script inside ``root`` (``solution/solve.sh``) or `None`.
    """

    spec: TaskSpec
    digests: Digests
    root: Path
    oracle: str | None = None

    @property
    def slug(self) -> str:
        """The task's human name."""
        return self.spec.slug
