"""The tables of ``task.toml`` as typed records: Harbor's own (schema 1.0 to 1.4), and ours in ``[metadata.envsdk]``.

Names are the file's own, with Harbor's units (``timeout_sec``, ``memory_mb``). Harbor's tables keep fields that are not
known here, because newer writers add some; `unknown_fields` finds them. What the values mean is `envsdk.spec.meaning`.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from envsdk.spec.model import Example, Protocol, ServiceSpec

NEWEST_SCHEMA = (1, 4)
Seconds = Annotated[float, Field(gt=0)]
_Kind = TypeVar("_Kind", bound=BaseModel)
HarborNetwork = Literal["no-network", "public", "allowlist"]


def _as_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _as_rewards(value: Any) -> Any:
    return {"reward": value} if isinstance(value, int | float) and not isinstance(value, bool) else value


def _as_artifact(value: Any) -> Any:
    return {"source": value} if isinstance(value, str) else value


UserName = Annotated[str, BeforeValidator(_as_text, json_schema_input_type=str | int)]


class Table(BaseModel):
    """A table that another program may extend: unknown fields are kept, types are strict, numbers finite."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True, allow_inf_nan=False)


class OwnTable(BaseModel):
    """A table of ours: unknown fields are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class HealthcheckTable(Table):
    """When a container counts as up."""

    command: str
    interval_sec: Seconds | None = None
    timeout_sec: Seconds | None = None
    start_period_sec: Annotated[float, Field(ge=0)] | None = None
    start_interval_sec: Seconds | None = None
    retries: Annotated[int, Field(ge=1)] | None = None


class McpServerTable(Table):
    """A tool server the agent may call."""

    name: str
    transport: Literal["sse", "streamable-http", "stdio", "http"] = "sse"
    url: str | None = None
    command: str | None = None
    args: list[str] = []
    headers: dict[str, str] = {}


class TpuTable(Table):
    """Accelerators; kept, never provided here."""

    type: str
    topology: str


class EnvironmentTable(Table):
    """The agent's container; also the verifier's own, as ``[verifier.environment]``."""

    build_timeout_sec: Seconds | None = None
    docker_image: str | None = None
    os: Literal["linux", "windows"] = "linux"
    cpus: Annotated[float, Field(gt=0)] | None = None
    memory_mb: Annotated[int, Field(gt=0)] | None = None
    storage_mb: Annotated[int, Field(gt=0)] | None = None
    gpus: Annotated[int, Field(ge=0)] | None = None
    gpu_types: list[str] | None = None
    tpu: TpuTable | None = None
    mcp_servers: list[McpServerTable] = []
    env: dict[str, str] = {}
    skills_dir: str | None = None
    healthcheck: HealthcheckTable | None = None
    workdir: str | None = None
    network_mode: HarborNetwork | None = None
    allowed_hosts: list[str] = []
    allow_internet: bool | None = None
    memory: str | None = None
    storage: str | None = None


class AgentTable(Table):
    """``[agent]``: the attempt's clock, user and network."""

    timeout_sec: Seconds | None = None
    user: UserName | None = None
    network_mode: HarborNetwork | None = None
    allowed_hosts: list[str] = []


class CollectTable(Table):
    """``[[verifier.collect]]``: a command that gathers evidence before the agent's box ends."""

    command: str
    service: str | None = None
    timeout_sec: Seconds | None = None
    user: UserName | None = None


class VerifierTable(Table):
    """``[verifier]``: clock, user, network, and the box it runs in."""

    timeout_sec: Seconds | None = None
    env: dict[str, str] = {}
    user: UserName | None = None
    network_mode: HarborNetwork | None = None
    allowed_hosts: list[str] = []
    environment_mode: Literal["shared", "separate"] | None = None
    environment: EnvironmentTable | None = None
    collect: list[CollectTable] = []


class SolutionTable(Table):
    """``[solution]``: the oracle's environment."""

    env: dict[str, str] = {}


class ArtifactTable(Table):
    """What a fresh verifier box is given."""

    source: str
    destination: str | None = None


Artifact = Annotated[ArtifactTable, BeforeValidator(_as_artifact, json_schema_input_type=ArtifactTable | str)]
"""An artifact; a plain string is its ``source``."""


class StepTable(Table):
    """``[[steps]]``: one step; its files are in ``steps/<name>/``."""

    name: str
    agent: AgentTable = AgentTable()
    verifier: VerifierTable = VerifierTable()
    min_reward: Annotated[
        dict[str, float] | None, BeforeValidator(_as_rewards, json_schema_input_type=dict[str, float] | float | None)
    ] = None
    healthcheck: HealthcheckTable | None = None
    artifacts: list[Artifact] = []


class AuthorTable(Table):
    """One author."""

    name: str
    email: str | None = None


class NameTable(Table):
    """``[task]``: name ``org/name`` and what people read."""

    name: str | None = None
    version: UserName | None = None
    description: str = ""
    authors: list[AuthorTable] = []
    keywords: list[str] = []


class OwnAgentTable(OwnTable):
    """How a policy meets the task."""

    protocol: Protocol | None = None
    system: str = ""
    examples: list[Annotated[Example, Field(strict=False)]] = []
    stop: list[str] = []


class OwnContainerTable(OwnTable):
    """What Harbor cannot say: a network of services only, a bound on processes, and a set-up that runs once."""

    network: Literal["internal"] | None = None
    setup: str = ""
    pids: Annotated[int, Field(gt=0)] | None = None


class OwnVerifierTable(OwnTable):
    """Kind, entry and range of the verifier."""

    kind: Literal["text", "state", "script"] = "script"
    entry: str = ""
    low: float = 0.0
    high: float = 1.0
    pass_mark: float | None = None
    exit_status: Literal["native", "harbor"] = "harbor"

    @model_validator(mode="after")
    def _range_is_ordered(self) -> OwnVerifierTable:
        if not self.low < self.high:
            raise ValueError(f"reward range [{self.low}, {self.high}] is empty: low must be below high")
        return self


class OwnBudgetTable(OwnTable):
    """Clocks and bounds that Harbor has not."""

    acquire_s: Seconds | None = None
    setup_s: Seconds | None = None
    step_s: Seconds | None = None
    total_s: Seconds | None = None
    turns: Annotated[int, Field(ge=1)] | None = None
    reply_tokens: Annotated[int, Field(ge=1)] | None = None
    episode_tokens: Annotated[int, Field(ge=1)] | None = None


class EnvsdkTable(OwnTable):
    """``[metadata.envsdk]``: everything of ours."""

    slug: str | None = None
    family: str = ""
    level: dict[str, str | int | float | bool] = {}
    seed: int | None = None
    agent: OwnAgentTable = OwnAgentTable()
    container: OwnContainerTable = OwnContainerTable()
    services: list[Annotated[ServiceSpec, Field(strict=False)]] = []
    verifier: OwnVerifierTable = OwnVerifierTable()
    budget: OwnBudgetTable = OwnBudgetTable()


class MetadataTable(Table):
    """``[metadata]``: free but for our table."""

    envsdk: EnvsdkTable | None = None


class TaskToml(Table):
    """The whole of ``task.toml``."""

    schema_version: UserName | None = None
    version: UserName | None = None
    source: str | None = None
    multi_step_reward_strategy: Literal["mean", "final"] | None = None
    artifacts: list[Artifact] = []
    task: NameTable = NameTable()
    metadata: MetadataTable = MetadataTable()
    agent: AgentTable = AgentTable()
    verifier: VerifierTable = VerifierTable()
    environment: EnvironmentTable | None = None
    solution: SolutionTable = SolutionTable()
    steps: list[StepTable] = []


def unknown_fields(
    model: type[BaseModel], table: Mapping[str, Any], *, prefix: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], frozenset[str]]]:
    """Where a table of Harbor's has a field that is not known here, with the names that are known there.

    Free tables (``[metadata]``, ``env``) and ours, which refuse such fields by themselves, are left alone.
    """
    known = frozenset(model.model_fields)
    for key, value in table.items():
        if key not in known:
            if model is not MetadataTable:
                yield (*prefix, key), known
            continue
        inner = _table_type(model.model_fields[key].annotation, Table)
        if inner is None:
            continue
        rows = list(enumerate(value)) if isinstance(value, list) else [(None, value)]
        for number, row in rows:
            if isinstance(row, Mapping):
                place = (*prefix, key) if number is None else (*prefix, key, number)
                yield from unknown_fields(inner, row, prefix=place)


def fields_at(model: type[BaseModel], place: Sequence[str | int]) -> frozenset[str]:
    """The names known in the table at ``place`` below one of ``model``; none where there is no such table."""
    table: type[BaseModel] | None = model
    for part in place:
        if isinstance(part, int):
            continue
        if table is None or part not in table.model_fields:
            return frozenset()
        table = _table_type(table.model_fields[part].annotation, BaseModel)
    return frozenset() if table is None else frozenset(table.model_fields)


def _table_type(annotation: Any, kind: type[_Kind]) -> type[_Kind] | None:
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        return annotation if issubclass(annotation, kind) else None
    for part in typing.get_args(annotation):
        if (found := _table_type(part, kind)) is not None:
            return found
    return None
