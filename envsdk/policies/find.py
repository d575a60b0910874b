"""Policies and agents by name: ``oracle``, ``noop``, or ``kind:rest`` of the entry-point group ``envsdk.policies``."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

from envsdk.errors import PrerequisiteError, UsageError
from envsdk.policy import Policy
from envsdk.suggest import did_you_mean

GROUP = "envsdk.policies"
AGENTS = ("oracle", "noop")


def open_policy(name: str, **options: Any) -> Policy:
    """The policy ``kind:rest``; options are the kind's own.

    Raises:
        UsageError: no such kind (``unknown_policy``).
        PrerequisiteError: the kind's package is not installed (``extra_missing``).
    """
    kind, rest = known_policy(name)
    entries = {entry.name: entry for entry in entry_points(group=GROUP)}
    try:
        factory = entries[kind].load()
    except ModuleNotFoundError as error:
        raise PrerequisiteError(
            f"policy {kind!r} needs the module {error.name}",
            code="extra_missing",
            hint="pip install 'envsdk[trainer,cpu]'" if kind == "vllm" else f"pip install {error.name}",
            where=name,
        ) from error
    policy: Policy = factory(rest, **options)
    return policy


def known_policy(name: str) -> tuple[str, str]:
    """The kind and the rest of ``kind:rest``; nothing is loaded or opened.

    Raises:
        UsageError: no such kind (``unknown_policy``).
    """
    kind, separator, rest = name.partition(":")
    known = sorted(entry.name for entry in entry_points(group=GROUP))
    if not separator or kind not in known:
        every = ", ".join([*AGENTS, *(f"{entry}:..." for entry in known)])
        hint = f"{did_you_mean(kind, [*AGENTS, *known], cutoff=0.6)} one of: {every}".strip()
        raise UsageError(f"no policy {name!r}", code="unknown_policy", hint=hint)
    return kind, rest
