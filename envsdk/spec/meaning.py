"""What the tables of ``task.toml`` and the files beside it mean, as a `TaskSpec`. Pure: reads no disk.

An absent field means what it means to whom the file was written for. A file with ``[metadata.envsdk]`` is ours: no
network, a fresh sandbox for the verifier, the user ``agent``. Any other is Harbor's: public network, the verifier in
the agent's box, the user root.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from envsdk.sandboxes.base import Limits
from envsdk.spec.compose import Compose
from envsdk.spec.model import (
    AgentSpec,
    Budget,
    ContainerSpec,
    HealthCheck,
    McpServer,
    NetworkMode,
    StepSpec,
    TaskSpec,
    VerifierSpec,
)
from envsdk.spec.tables import EnvironmentTable, EnvsdkTable, HealthcheckTable, TaskToml, VerifierTable

NETWORKS: Mapping[str, NetworkMode] = {"no-network": "none", "public": "public", "allowlist": "allowlist"}
ANSWER_PATH = "/app/answer.txt"
NO_LIMITS = Limits()
COMPOSE_FILE = "environment/docker-compose.yaml"
_SIZE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([KMGT])?i?B?\s*$", re.IGNORECASE)
_MIB = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2}
_WORKDIR = re.compile(r"^\s*WORKDIR\s+(\S+)\s*$", re.IGNORECASE | re.MULTILINE)
_CANARY = re.compile(r"\A(?:[ \t]*(?:<!--|#|//)?[^\n]*\bcanary\b[^\n]*\n?)+", re.IGNORECASE)


@dataclass(frozen=True)
class Beside:
    """What the directory holds beside ``task.toml`` that its meaning rests on."""

    name: str
    instruction: str = ""
    step_instructions: Mapping[str, str] = field(default_factory=dict)
    dockerfile: str = ""
    verifier_dockerfile: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    own_verifier_image: bool = False
    compose: Compose = field(default_factory=Compose)


def meaning(toml: TaskToml, beside: Beside) -> TaskSpec:
    """The task that valid tables describe.

    Raises:
        pydantic.ValidationError: a value that the tables allow is refused by the specification.
    """
    own = toml.metadata.envsdk
    ours = own or EnvsdkTable()
    agent_default = AgentSpec()
    return TaskSpec(
        slug=(ours.slug or slug_of(beside.name)),
        instruction=beside.instruction,
        agent=AgentSpec(
            protocol=ours.agent.protocol or agent_default.protocol,
            system=ours.agent.system,
            examples=tuple(ours.agent.examples),
            stop=tuple(ours.agent.stop),
            user=toml.agent.user or beside.compose.user or (agent_default.user if own else "root"),
        ),
        container=_container(toml, beside, is_ours=own is not None),
        services=(*beside.compose.services, *ours.services),
        verifier=_verifier(toml, beside, is_ours=own is not None),
        budget=_budget(toml, ours),
        artifacts=tuple(item.source for item in toml.artifacts)
        or ((ANSWER_PATH,) if ours.agent.protocol in {"answer", "command"} else ()),
        steps=tuple(_steps(toml, beside)),
        step_reward=toml.multi_step_reward_strategy or "mean",
        family=ours.family,
        level=ours.level,
        seed=ours.seed,
        tags=tuple(toml.task.keywords or _legacy_tags(toml)),
        description=toml.task.description,
        schema_version=toml.schema_version or toml.version or "1.0",
        metadata=dict(toml.metadata.model_extra or {}),
    )


def slug_of(directory_name: str) -> str:
    """A directory's name as a slug: what a slug may not hold becomes ``-``."""
    return re.sub(r"^\W+", "", re.sub(r"[^\w.\- ]", "-", directory_name))[:200] or "task"


def without_canary(instruction: str) -> str:
    """The instruction as a model meets it: canary lines at its head are for crawlers, not for models."""
    return _CANARY.sub("", instruction)


def mib_of(size: str) -> int | None:
    """Harbor's legacy sizes (``2G``, ``512M``) in MiB; `None` where the text is none."""
    match = _SIZE.match(size)
    if match is None:
        return None
    return max(1, round(float(match[1]) * _MIB[(match[2] or "M").upper()]))


def network_of(table: EnvironmentTable, default: NetworkMode) -> NetworkMode:
    """The network that an environment table declares, in either spelling."""
    if table.network_mode is not None:
        return NETWORKS[table.network_mode]
    if table.allow_internet is not None:
        return "public" if table.allow_internet else "none"
    return default


def _container(toml: TaskToml, beside: Beside, *, is_ours: bool) -> ContainerSpec | None:
    own = toml.metadata.envsdk or EnvsdkTable()
    if toml.environment is None and own.verifier.kind == "text":
        return None
    table = toml.environment or EnvironmentTable()
    compose = beside.compose
    network = network_of(table, "none" if is_ours else "public")
    if toml.agent.network_mode is not None:
        network = NETWORKS[toml.agent.network_mode]
    if compose.services:
        network = "internal"
    return ContainerSpec(
        image=table.docker_image or compose.image,
        workdir=table.workdir or compose.workdir or workdir_of(beside.dockerfile) or "/app",
        setup=own.container.setup,
        env={**compose.env, **table.env},
        limits=_limits(table, pids=own.container.pids, default=compose.limits),
        network=own.container.network or network,
        allowed_hosts=tuple(toml.agent.allowed_hosts or table.allowed_hosts),
        healthcheck=_healthcheck(table.healthcheck) or compose.healthcheck,
        mcp_servers=tuple(
            McpServer(
                name=server.name,
                transport=server.transport,
                url=server.url,
                command=server.command,
                args=tuple(server.args),
                headers=server.headers,
            )
            for server in table.mcp_servers
        ),
    )


def _limits(table: EnvironmentTable, *, pids: int | None = None, default: Limits = NO_LIMITS) -> Limits:
    return Limits(
        cpus=table.cpus or default.cpus,
        memory_mib=table.memory_mb or (mib_of(table.memory) if table.memory else default.memory_mib),
        disk_mib=table.storage_mb or (mib_of(table.storage) if table.storage else default.disk_mib),
        pids=pids or default.pids,
    )


def _verifier_container(table: EnvironmentTable | None, beside: Beside) -> ContainerSpec | None:
    if table is None:
        return None
    return ContainerSpec(
        image=table.docker_image,
        workdir=table.workdir or workdir_of(beside.verifier_dockerfile or beside.dockerfile) or "/app",
        env=table.env,
        limits=_limits(table),
    )


def workdir_of(dockerfile: str) -> str | None:
    """The last absolute WORKDIR of a Dockerfile, or `None`."""
    paths = [path for path in _WORKDIR.findall(dockerfile) if path.startswith("/") and "$" not in path]
    return paths[-1] if paths else None


def _healthcheck(table: HealthcheckTable | None) -> HealthCheck | None:
    if table is None:
        return None
    default = HealthCheck(command=table.command)
    return HealthCheck(
        command=table.command,
        interval_s=table.interval_sec or default.interval_s,
        timeout_s=table.timeout_sec or default.timeout_s,
        retries=(table.retries or default.retries)
        + math.ceil((table.start_period_sec or 0.0) / (table.interval_sec or default.interval_s)),
    )


def verifier_mode(table: VerifierTable, *, is_ours: bool, own_image: bool) -> str:
    """``separate`` or ``shared``, as declared, else as the file's kind defaults to."""
    if table.environment_mode is not None:
        return table.environment_mode
    return "separate" if is_ours or own_image or table.environment is not None else "shared"


def _verifier(toml: TaskToml, beside: Beside, *, is_ours: bool) -> VerifierSpec:
    own = (toml.metadata.envsdk or EnvsdkTable()).verifier
    table = toml.verifier
    mode = verifier_mode(table, is_ours=is_ours, own_image=beside.own_verifier_image)
    network: NetworkMode = "none" if is_ours else "public"
    if not is_ours and table.environment is None and toml.environment is not None:
        network = network_of(toml.environment, network)
    if table.environment is not None:
        network = network_of(table.environment, network)
    if table.network_mode is not None:
        network = NETWORKS[table.network_mode]
    return VerifierSpec(
        kind=own.kind,
        entry=own.entry,
        params=dict(beside.params) if own.kind != "script" else {},
        mode="separate" if mode == "separate" else "shared",
        low=own.low,
        high=own.high,
        pass_mark=own.pass_mark,
        user=table.user or "root",
        env=table.env,
        network=network,
        container=_verifier_container(table.environment, beside),
        exit_status=own.exit_status,
    )


def _budget(toml: TaskToml, ours: EnvsdkTable) -> Budget:
    environment = toml.environment or EnvironmentTable()
    given = {
        **ours.budget.model_dump(),
        "build_s": environment.build_timeout_sec,
        "episode_s": toml.agent.timeout_sec,
        "verify_s": toml.verifier.timeout_sec,
    }
    return Budget(**{name: value for name, value in given.items() if value is not None})


def _steps(toml: TaskToml, beside: Beside) -> list[StepSpec]:
    return [
        StepSpec(
            name=step.name,
            instruction=beside.step_instructions.get(step.name, ""),
            episode_s=step.agent.timeout_sec,
            verify_s=step.verifier.timeout_sec,
            min_reward=step.min_reward or {},
            artifacts=tuple(item.source for item in step.artifacts),
            env=step.verifier.env,
            healthcheck=_healthcheck(step.healthcheck),
        )
        for step in toml.steps
    ]


def _legacy_tags(toml: TaskToml) -> list[str]:
    tags = (toml.metadata.model_extra or {}).get("tags", [])
    return [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []


def digest_tables(raw: Mapping[str, Any], spec: TaskSpec) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parts of ``task.toml`` that the task digest and the verifier digest cover, as written.

    What an absent field means depends on whose file it is, so the resolved network and mode stand beside them.
    """
    own = raw.get("metadata", {}).get("envsdk", {})
    steps = raw.get("steps", [])
    task = {
        "agent": raw.get("agent", {}),
        "environment": raw.get("environment", {}),
        "artifacts": raw.get("artifacts", []),
        "steps": [
            {key: value for key, value in step.items() if key not in {"verifier", "min_reward"}} for step in steps
        ],
        "envsdk": {name: own[name] for name in ("agent", "container", "services", "budget") if name in own},
        "network": spec.container.network if spec.container else "none",
        "user": spec.agent.user,
    }
    verifier = {
        "verifier": raw.get("verifier", {}),
        "steps": [{key: step[key] for key in ("name", "verifier", "min_reward") if key in step} for step in steps],
        "multi_step_reward_strategy": spec.step_reward,
        "envsdk": own.get("verifier", {}),
        "mode": spec.verifier.mode,
        "network": spec.verifier.network,
    }
    return task, verifier
