"""Compose files as services: the containers beside the agent's, and what the file says about the agent's own.

What maps onto a service of ours is run as one: image or build context, command, environment, health check, order,
bounds. What would change how a container runs and cannot be provided (mounts from the machine, shared volumes,
privileges, several networks) is an error with its place, never left out in silence. What changes nothing that an agent
or a verifier could meet (restart rules, labels, published ports: every name is reachable on the network of services)
is passed over. Pure: reads no disk.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml
from pydantic import ValidationError

from envsdk.sandboxes.base import Limits
from envsdk.spec import compose_fields as fields
from envsdk.spec.compose_fields import Row, UnsupportedError
from envsdk.spec.model import HealthCheck, ServiceSpec
from envsdk.spec.problems import Problem, shown

HARBOR_VALUES: Mapping[str, str] = {
    "CONTEXT_DIR": ".",
    "CPUS": "",
    "MAIN_IMAGE_NAME": "",
    "MEMORY": "",
    "PREBUILT_IMAGE_NAME": "",
    "TEST_DIR": "/tests",
    **{f"HOST_{what}_PATH": "logs" for what in ("AGENT_LOGS", "ARTIFACTS", "VERIFIER_LOGS")},
    **{f"ENV_{what}_PATH": "logs" for what in ("AGENT_LOGS", "ARTIFACTS", "VERIFIER_LOGS")},
}
"""What Harbor puts for its own names; the folders of logs are no mounts here."""

_TOP = {"services", "version", "name", "volumes", "networks"}
_HARMLESS = {"cap_drop", "container_name", "hostname", "init", "labels", "logging", "pull_policy", "restart"} | {
    "stdin_open",
    "stop_grace_period",
    "stop_signal",
    "tty",
}
_READ = {"build", "command", "cpus", "depends_on", "deploy", "entrypoint", "environment", "expose", "healthcheck"} | {
    "image",
    "mem_limit",
    "networks",
    "pids_limit",
    "platform",
    "ports",
    "security_opt",
    "volumes",
}
_READ_OF_OWN = {"user", "working_dir"}
_IDLE = re.compile(r"(?:(?:/bin/)?(?:ba)?sh -c )?'?(?:sleep infinity|tail -f /dev/null)'?")


@dataclass(frozen=True)
class Compose:
    """What one compose file says.

    Attributes:
        services: containers beside the agent's; those that another waits for come first.
        env, workdir, user, image, limits, healthcheck: of the agent's own, where the file says it.
        problems: what cannot be provided.
    """

    services: tuple[ServiceSpec, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    workdir: str | None = None
    user: str | None = None
    image: str | None = None
    limits: Limits = field(default_factory=Limits)
    healthcheck: HealthCheck | None = None
    problems: tuple[Problem, ...] = ()


def read_compose(text: str, *, file: str, own: str, known: Mapping[str, str] = HARBOR_VALUES) -> Compose:
    """Read a compose file.

    Args:
        text: YAML.
        file: its path inside the task directory, for the problems.
        own: the name of the agent's own service, such as ``main``; it may be absent.
        known: values that the harness gives to ``${NAME}``.
    """
    try:
        table = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        return Compose(problems=(_problem(file, "", f"is not YAML: {error}", code="bad_yaml"),))
    rows = table.get("services") if isinstance(table, dict) else None
    if not isinstance(rows, dict):
        return Compose(problems=(_problem(file, "", "is no mapping with services", code="bad_yaml"),))
    reader = _Reader(file, own)
    reader.check_top(table)
    plain = reader.check_shapes({str(name): fields.interpolated(row or {}, known) for name, row in rows.items()})
    reader.check_sharing(plain)
    return reader.read(plain)


class _Reader:
    """Collects problems while the parts of one file are read."""

    def __init__(self, file: str, own: str) -> None:
        self._file, self._own = file, own
        self._problems: list[Problem] = []

    def refuse(self, what: UnsupportedError) -> None:
        self._problems.append(_problem(self._file, what.where, what.why, value=what.value))

    def check_top(self, table: Row) -> None:
        """Volumes and networks are names only; any other table beside the services is another feature."""
        for key, value in table.items():
            if str(key) not in _TOP and not str(key).startswith("x-"):
                self.refuse(UnsupportedError(str(key), f"{key!r} is not provided", value))
        for kind in ("volumes", "networks"):
            named = table.get(kind)
            for name, settings in named.items() if isinstance(named, dict) else ():
                if isinstance(settings, dict) and settings.get("external"):
                    self.refuse(UnsupportedError(f"{kind}.{name}", "exists outside of the task", name))

    def check_shapes(self, rows: Mapping[str, Any]) -> dict[str, Row]:
        """The rows without what is not of a kind that compose knows."""
        kept: dict[str, Row] = {}
        for name, row in rows.items():
            if not isinstance(row, dict):
                self.refuse(UnsupportedError(f"services.{name}", "is no mapping", row))
                continue
            faulty = {key for key, kinds in fields.SHAPES.items() if not isinstance(row.get(key), (*kinds, type(None)))}
            for key in sorted(faulty):
                self.refuse(
                    UnsupportedError(f"services.{name}.{key}", "is of a kind that means nothing here", row[key])
                )
            kept[name] = {key: value for key, value in row.items() if key not in faulty}
        return kept

    def check_sharing(self, rows: Mapping[str, Row]) -> None:
        """There is one network of all, and no volume that two could share."""
        networks = {name: frozenset(map(str, row.get("networks") or ("default",))) for name, row in rows.items()}
        networks.setdefault(self._own, frozenset({"default"}))
        if len(set(networks.values())) > 1:
            named = ", ".join(sorted(set().union(*networks.values())))
            self.refuse(UnsupportedError("networks", "services are kept apart on several networks", named))
        users: dict[str, set[str]] = {}
        for name, row in rows.items():
            for source, _ in fields.mounts(row):
                if source and not fields.is_path(source):
                    users.setdefault(source, set()).add(name)
        for source, names in users.items():
            if len(names) > 1:
                self.refuse(UnsupportedError(f"volumes.{source}", f"is shared by {', '.join(sorted(names))}", source))

    def read(self, rows: Mapping[str, Row]) -> Compose:
        """The file's services, and its words on the agent's own."""
        services: list[ServiceSpec] = []
        own: dict[str, Any] = {}
        for name, row in rows.items():
            before = len(self._problems)
            self._check_fields(name, row)
            try:
                if name == self._own:
                    own = _own_part(f"services.{name}", row)
                elif before == len(self._problems):
                    services.append(_service(name, row, own=self._own))
            except UnsupportedError as what:
                self.refuse(what)
            except ValueError as error:
                self.refuse(UnsupportedError(f"services.{name}", f"has a command that is none: {error}"))
        for name, row in rows.items():
            for other in sorted(fields.dependencies(row).keys() - rows.keys() - {self._own}):
                self.refuse(UnsupportedError(f"services.{name}.depends_on", f"there is no service {other!r}", other))
        try:
            services = _in_order(services)
        except UnsupportedError as what:
            self.refuse(what)
        return Compose(services=tuple(services), problems=tuple(self._problems), **own)

    def _check_fields(self, name: str, row: Row) -> None:
        where = f"services.{name}"
        known = _HARMLESS | _READ | (_READ_OF_OWN if name == self._own else set())
        for key, value in row.items():
            if str(key) not in known and not str(key).startswith("x-") and value not in (None, False, [], {}):
                self.refuse(UnsupportedError(f"{where}.{key}", f"{key!r} is not provided", value))
        platform = row.get("platform") or "linux/amd64"
        if platform != "linux/amd64":
            self.refuse(UnsupportedError(f"{where}.platform", "only linux/amd64 is provided", platform))
        for option in row.get("security_opt") or ():
            if not str(option).startswith(("no-new-privileges", "label")):
                self.refuse(UnsupportedError(f"{where}.security_opt", f"{option!r} is not provided", option))
        self._check_surroundings(where, row)

    def _check_surroundings(self, where: str, row: Row) -> None:
        for source, target in fields.mounts(row):
            if fields.is_path(source):
                self.refuse(UnsupportedError(f"{where}.volumes", "mounts a place of the machine", f"{source}:{target}"))
        for other, condition in fields.dependencies(row).items():
            if condition == "service_completed_successfully":
                why = f"waits for {other} to end, and a service here goes on until the episode ends"
                self.refuse(UnsupportedError(f"{where}.depends_on", why, other))
        networks = row.get("networks")
        for network, settings in networks.items() if isinstance(networks, dict) else ():
            if isinstance(settings, dict) and settings.get("aliases"):
                self.refuse(
                    UnsupportedError(f"{where}.networks.{network}", "gives it further names", settings["aliases"])
                )


def _own_part(where: str, row: Row) -> dict[str, Any]:
    if row.get("build") is not None and fields.build_context(where, row["build"]) != ".":
        raise UnsupportedError(f"{where}.build", "the agent's box is built from environment/Dockerfile", row["build"])
    for key in ("command", "entrypoint"):
        command = shlex.join(fields.words(row.get(key)))
        if command and not _IDLE.fullmatch(command):
            raise UnsupportedError(f"{where}.{key}", "the agent's box runs nothing by itself", command)
    image = row.get("image") if row.get("build") is None else None
    workdir, user = row.get("working_dir"), row.get("user")
    return {
        "env": fields.environment(row),
        "workdir": str(workdir) if workdir else None,
        "user": str(user) if user is not None else None,
        "image": str(image) if image else None,
        "limits": fields.limits(where, row),
        "healthcheck": fields.healthcheck(where, row),
    }


def _service(name: str, row: Row, *, own: str) -> ServiceSpec:
    where = f"services.{name}"
    build = fields.build_context(where, row["build"]) if row.get("build") is not None else None
    image = str(row.get("image") or "") if build is None else ""
    if build is None and not image:
        raise UnsupportedError(where, "has neither image nor build")
    if "$" in image:
        raise UnsupportedError(f"{where}.image", "takes a name from the machine", image)
    entrypoint, command = fields.words(row.get("entrypoint")), fields.words(row.get("command"))
    try:
        return ServiceSpec(
            name=name,
            image=image or None,
            build=build,
            command=shlex.join((*entrypoint, *command)) if entrypoint else None,
            args=command if command and not entrypoint else None,
            env=fields.environment(row),
            port=fields.port(row),
            healthcheck=fields.healthcheck(where, row),
            limits=fields.limits(where, row),
            after=tuple(other for other in fields.dependencies(row) if other != own),
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, (where, *first["loc"])))
        raise UnsupportedError(place, str(first["msg"]), first["input"]) from error


def _in_order(services: list[ServiceSpec]) -> list[ServiceSpec]:
    """Those that others wait for first, else as written."""
    pending, ordered = list(services), list[ServiceSpec]()
    names = {service.name for service in services}
    while pending:
        done = {service.name for service in ordered}
        ready = next((service for service in pending if not (set(service.after) & names) - done), None)
        if ready is None:
            raise UnsupportedError("services", "wait for one another in a circle", ", ".join(s.name for s in pending))
        pending.remove(ready)
        ordered.append(ready)
    return ordered


def _problem(file: str, where: str, why: str, *, value: Any = "", code: str = "unsupported_compose") -> Problem:
    hint = "" if code == "bad_yaml" else "take it out, or declare the service in [metadata.envsdk]"
    return Problem(code=code, file=file, field=where, message=why, value=shown(value), hint=hint)
