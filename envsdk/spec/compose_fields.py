"""Single values of a compose file's services: durations, sizes, bounds, health checks, mounts, and ``${NAME}``."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from envsdk.sandboxes.base import Limits
from envsdk.spec.model import HealthCheck

Row = Mapping[str, Any]
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_MIB = {"": 1 / 1024**2, "b": 1 / 1024**2, "k": 1 / 1024, "m": 1.0, "g": 1024.0}
_VARIABLE = re.compile(r"\$\$|\$(?:\{([A-Za-z_]\w*)(?::?-([^}]*))?\}|([A-Za-z_]\w*))")


class UnsupportedError(Exception):
    """One thing of a compose file that cannot be had: its dotted place, why, and what stands there."""

    def __init__(self, where: str, why: str, value: Any = "") -> None:
        super().__init__(why)
        self.where, self.why, self.value = where, why, value


SHAPES: Mapping[str, tuple[type, ...]] = {
    "build": (str, dict),
    "command": (str, list),
    "depends_on": (list, dict),
    "deploy": (dict,),
    "entrypoint": (str, list),
    "environment": (list, dict),
    "expose": (list,),
    "healthcheck": (dict,),
    "image": (str,),
    "networks": (list, dict),
    "platform": (str,),
    "ports": (list,),
    "security_opt": (list,),
    "volumes": (list,),
}
"""What each field may be written as; `None` is as good as absent."""


def interpolated(value: Any, known: Mapping[str, str], *, keep: bool = False) -> Any:
    """``value`` with every ``${NAME}`` in it replaced.

    What is neither known nor has a default stays as ``${NAME}``; with ``keep``, its default stays too, to be resolved
    where the task runs. ``$$`` is one dollar sign.
    """
    if isinstance(value, Mapping):
        return {key: interpolated(item, known, keep=keep or key == "environment") for key, item in value.items()}
    if isinstance(value, list):
        return [interpolated(item, known, keep=keep) for item in value]
    if not isinstance(value, str):
        return value

    def one(match: re.Match[str]) -> str:
        name = match[1] or match[3]
        if name is None:
            return "$"
        if name in known:
            return known[name]
        if match[2] is None:
            return f"${{{name}}}"
        return f"${{{name}:-{match[2]}}}" if keep else match[2]

    return _VARIABLE.sub(one, value)


def environment(row: Row) -> dict[str, str]:
    """Variables by name; one without a value is the machine's own, as compose has it."""
    given = row.get("environment") or {}
    if isinstance(given, list):
        pairs = [str(item).partition("=") for item in given]
        given = {key: value if sign else None for key, sign, value in pairs}
    return {str(key): f"${{{key}}}" if value is None else _text(value) for key, value in given.items()}


def build_context(where: str, value: Any) -> str:
    """The folder that a build starts from, relative to the compose file; ``.`` for the file's own."""
    table = {"context": value} if isinstance(value, str) else value
    usual = {"dockerfile": ("Dockerfile", "./Dockerfile"), "network": ("default",)}
    for key, setting in table.items():
        if key != "context" and setting not in (None, "", [], {}, *usual.get(str(key), ())):
            raise UnsupportedError(f"{where}.build.{key}", f"{key!r} of a build is not provided", setting)
    context = str(table.get("context") or ".")
    parts = [part for part in context.split("/") if part not in {"", "."}]
    if ".." in parts or context.startswith(("/", "~", "$")) or "://" in context:
        raise UnsupportedError(f"{where}.build.context", "leads out of environment/", context)
    return "/".join(parts) or "."


def healthcheck(where: str, row: Row) -> HealthCheck | None:
    """When the service counts as up. ``start_period`` becomes further tries; `None` where none is asked."""
    table = row.get("healthcheck")
    if table is None or table.get("disable"):
        return None
    test = table.get("test")
    if isinstance(test, list) and test:
        kind, *words = map(str, test)
        if kind == "NONE":
            return None
        command = " ".join(words) if kind == "CMD-SHELL" else shlex.join(words)
    else:
        command = str(test or "")
    if not command:
        raise UnsupportedError(f"{where}.healthcheck.test", "is missing")
    tries = table.get("retries") or 3
    if not isinstance(tries, int) or tries < 1:
        raise UnsupportedError(f"{where}.healthcheck.retries", "is no number of tries", tries)
    interval_s = _seconds(where, table.get("interval"), 30.0)
    grace = math.ceil(_seconds(where, table.get("start_period"), 0.0) / interval_s)
    return HealthCheck(
        command=command,
        interval_s=interval_s,
        timeout_s=_seconds(where, table.get("timeout"), 30.0),
        retries=tries + grace,
    )


def _seconds(where: str, value: Any, default: float) -> float:
    if value is None:
        return default
    text = f"{value}s" if isinstance(value, int | float) else str(value)
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|us|ns|h|m|s)", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise UnsupportedError(f"{where}.healthcheck", f"{value!r} is no duration", value)
    return sum(float(number) * _SECONDS[unit] for number, unit in parts) or default


def limits(where: str, row: Row) -> Limits:
    """Bounds, in ``deploy.resources.limits`` or in the older fields."""
    deploy = row.get("deploy")
    resources = deploy.get("resources") if isinstance(deploy, Mapping) else None
    bounds = resources.get("limits") if isinstance(resources, Mapping) else None
    bounds = bounds if isinstance(bounds, Mapping) else {}
    cpus = bounds.get("cpus") or row.get("cpus")
    memory = bounds.get("memory") or row.get("mem_limit")
    pids = bounds.get("pids") or row.get("pids_limit")
    try:
        return Limits(
            cpus=float(cpus) if cpus else None,
            memory_mib=_mib(memory) if memory else None,
            pids=int(pids) if pids and int(pids) > 0 else None,
        )
    except (ValueError, TypeError) as error:
        raise UnsupportedError(f"{where}.deploy", "has a bound that is no number", cpus or memory or pids) from error


def _mib(value: Any) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([bkmg]?)i?b?", str(value).lower())
    if match is None:
        raise ValueError(value)
    return max(1, round(float(match[1]) * _MIB[match[2]]))


def port(row: Row) -> int | None:
    """The first port that it says it listens to: of ``expose``, else the inner side of ``ports``."""
    for item in (*(row.get("expose") or ()), *(row.get("ports") or ())):
        inner = item.get("target") if isinstance(item, Mapping) else str(item).rpartition(":")[2]
        number = str(inner).partition("/")[0]
        if number.isdigit():
            return int(number)
    return None


def dependencies(row: Row) -> dict[str, str]:
    """Services that must be up first, each with the condition."""
    given = row.get("depends_on") or {}
    if isinstance(given, Mapping):
        conditions = {name: how.get("condition", "") if isinstance(how, Mapping) else "" for name, how in given.items()}
        return {str(name): str(condition) for name, condition in conditions.items()}
    return {str(name): "" for name in given}


def mounts(row: Row) -> Iterator[tuple[str, str]]:
    """Source (a path, a volume's name, or nothing) and target of each mount."""
    for item in row.get("volumes") or ():
        if isinstance(item, Mapping):
            yield str(item.get("source") or ""), str(item.get("target") or "")
            continue
        # A colon inside ${NAME} parts nothing.
        parts = re.findall(r"(?:\$\{[^}]*\}|[^:])+", str(item))
        yield (parts[0], parts[1]) if len(parts) > 1 else ("", parts[0] if parts else "")


def is_path(source: str) -> bool:
    """A mount's source is a place of the machine, not a volume's name."""
    return source.startswith(("/", ".", "~", "$"))


def words(value: Any) -> tuple[str, ...]:
    """A command as words, written as a list or as one text. Raises `ValueError` for a quote that is left open."""
    if value is None:
        return ()
    return tuple(str(word) for word in value) if isinstance(value, list) else tuple(shlex.split(str(value)))


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
