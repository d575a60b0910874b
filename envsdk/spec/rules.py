"""Values of a valid task that must agree with one another, and with what this project can run."""

from __future__ import annotations

from collections.abc import Iterator

from envsdk.spec.environ import required_names
from envsdk.spec.meaning import mib_of
from envsdk.spec.model import TaskSpec
from envsdk.spec.problems import Problem
from envsdk.spec.tables import EnvironmentTable, TaskToml
from envsdk.suggest import did_you_mean


def check_spec(spec: TaskSpec, toml: TaskToml) -> list[Problem]:
    """Findings on values that must agree with one another."""
    problems: list[Problem] = []
    environments = [("environment", toml.environment), ("verifier.environment", toml.verifier.environment)]
    for name, table in environments:
        if table is not None:
            problems += _check_environment(name, table)
    return [*problems, *_check_services(spec), *_check_verifier(spec)]


def _check_services(spec: TaskSpec) -> Iterator[Problem]:
    names = [service.name for service in spec.services]
    yield from (
        _own("services", f"two services are called {name!r}", name)
        for name in sorted({n for n in names if names.count(n) > 1})
    )
    for number, service in enumerate(spec.services):
        for other in service.after:
            if other not in names[:number]:
                message, hint = f"{service.name} starts after {other!r}, which is none before it", "order them so"
                yield _own("services.after", message, other, did_you_mean(other, names) or hint)
    if spec.services and spec.container is not None and spec.container.network == "none":
        yield _own("services", "the agent's network is none: it cannot reach them", "", "set container.network")


def _check_verifier(spec: TaskSpec) -> Iterator[Problem]:
    verifier = spec.verifier
    if verifier.pass_mark is not None and not verifier.low < verifier.pass_mark <= verifier.high:
        where = f"outside ]{verifier.low}, {verifier.high}]"
        yield _own("verifier.pass_mark", f"{verifier.pass_mark} is {where}", str(verifier.pass_mark))
    if verifier.kind == "text" and spec.agent.protocol == "shell":
        message = "a text verifier judges an answer, and a shell leaves none"
        yield _own("agent.protocol", message, "shell", "use 'answer' or 'command', or a state verifier")


def _own(field: str, message: str, value: str, hint: str = "") -> Problem:
    return Problem(
        code="bad_value", file="task.toml", field=f"metadata.envsdk.{field}", message=message, value=value, hint=hint
    )


def _check_environment(name: str, table: EnvironmentTable) -> Iterator[Problem]:
    if table.os == "windows":
        yield Problem(
            code="unsupported_os",
            file="task.toml",
            field=f"{name}.os",
            message="Windows is not supported",
            value="windows",
        )
    for legacy, modern in (("memory", "memory_mb"), ("storage", "storage_mb")):
        text = getattr(table, legacy)
        if text is None:
            continue
        size = mib_of(text)
        if size is None:
            yield Problem(
                code="bad_value",
                file="task.toml",
                field=f"{name}.{legacy}",
                message=f"{text!r} is no size",
                value=text,
                hint=f"write {modern} = 2048, or {legacy} = '2G'",
            )
        elif getattr(table, modern) not in {None, size}:
            yield Problem(
                code="conflicting_fields",
                file="task.toml",
                field=f"{name}.{legacy}",
                message=f"{text!r} and {modern} = {getattr(table, modern)} disagree",
                value=text,
                hint=f"keep {modern} only",
            )
    if (
        table.allow_internet is not None
        and table.network_mode is not None
        and table.allow_internet != (table.network_mode != "no-network")
    ):
        yield Problem(
            code="conflicting_fields",
            file="task.toml",
            field=f"{name}.allow_internet",
            message=f"{table.allow_internet} and network_mode = {table.network_mode!r} disagree",
            value=str(table.allow_internet),
            hint="keep network_mode only",
        )
    for key, value in table.env.items():
        for missing in required_names(value):
            message = f"takes {missing} from the machine it runs on"
            yield Problem(
                code="env_reference",
                file="task.toml",
                field=f"{name}.env.{key}",
                message=message,
                value=value,
                hint="say in the task's README what it needs; who runs it without gets `env_missing`",
                severity="warning",
            )
