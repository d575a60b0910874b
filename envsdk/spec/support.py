"""What Harbor would provide beside one container: services of a compose file, and what nothing here provides.

A compose file's services are run, or the task is refused with the place of what cannot be had
(`envsdk.spec.compose`). Other fields without effect are warnings, so that no run differs in silence.
"""

from __future__ import annotations

from collections.abc import Iterator

from envsdk.spec.compose import Compose, read_compose
from envsdk.spec.directory import TaskDirectory
from envsdk.spec.meaning import COMPOSE_FILE, NETWORKS, network_of
from envsdk.spec.model import NetworkMode
from envsdk.spec.problems import Problem
from envsdk.spec.tables import ArtifactTable, EnvironmentTable, TaskToml

VERIFIER_COMPOSE_FILE = "tests/docker-compose.yaml"


def composed(directory: TaskDirectory, toml: TaskToml) -> tuple[Compose, list[Problem]]:
    """What the compose files say, and what is wrong with them.

    Raises:
        StoreError: a file cannot be read.
    """
    compose, problems = _read(directory, COMPOSE_FILE)
    for service in compose.services:
        file = f"environment/{service.build}/Dockerfile".replace("/./", "/")
        if service.build is not None and not directory.is_file(file):
            where = f"services.{service.name}.build"
            problems.append(Problem(code="missing_file", file=file, field=where, message="is missing", hint="add it"))
    table = toml.environment or EnvironmentTable()
    default: NetworkMode = "public" if toml.metadata.envsdk is None else "none"
    asked = NETWORKS[toml.agent.network_mode] if toml.agent.network_mode else network_of(table, default)
    if compose.services and asked in {"public", "allowlist"}:
        message = "beside services the agent's network has no way out"
        problems.append(_unsupported("environment.network_mode", message))
    own, found = _read(directory, VERIFIER_COMPOSE_FILE)
    problems += found
    if own.services:
        message = "the verifier's box has no services beside it"
        hint = "verify in the agent's box, or without services"
        problems.append(Problem(code="unsupported_compose", file=VERIFIER_COMPOSE_FILE, message=message, hint=hint))
    return compose, problems


def _read(directory: TaskDirectory, file: str) -> tuple[Compose, list[Problem]]:
    text, problems = directory.read_text(file)
    compose = Compose() if text is None else read_compose(text, file=file, own="main")
    return compose, [*problems, *compose.problems]


def check_support(toml: TaskToml) -> Iterator[Problem]:
    """Warnings for what Harbor would provide and nothing here does: said, so that no run differs in silence."""
    table = toml.environment or EnvironmentTable()
    own = toml.verifier.environment or EnvironmentTable()
    asked = {
        "environment.gpus": table.gpus,
        "environment.tpu": table.tpu,
        "environment.skills_dir": table.skills_dir,
        "verifier.environment.gpus": own.gpus,
        "verifier.environment.tpu": own.tpu,
        "verifier.environment.healthcheck": own.healthcheck,
        "verifier.environment.mcp_servers": own.mcp_servers,
        "verifier.collect": toml.verifier.collect,
        **{f"artifacts[{n}].destination": item.destination for n, item in enumerate(toml.artifacts) if _moves(item)},
        **{f"steps[{n}].agent.user": step.agent.user for n, step in enumerate(toml.steps)},
        **{f"steps[{n}].verifier.environment": step.verifier.environment for n, step in enumerate(toml.steps)},
    }
    for field, value in asked.items():
        if value:
            yield _unsupported(field, "is kept, but has no effect here")


def _moves(artifact: ArtifactTable) -> bool:
    """The destination is a place in a box, not only a name in a folder of results."""
    return (artifact.destination or "").startswith("/") and artifact.destination != artifact.source


def _unsupported(field: str, message: str) -> Problem:
    hint = "do not rely on it"
    return Problem(code="not_supported", file="task.toml", field=field, message=message, hint=hint, severity="warning")
