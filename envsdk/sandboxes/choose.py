"""Which back end to use where none is named: the setting ``sandbox``, else Docker where it answers, else bubblewrap."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

from envsdk.config import setting
from envsdk.errors import PrerequisiteError, UsageError
from envsdk.sandboxes.base import SandboxProvider
from envsdk.suggest import did_you_mean

GROUP = "envsdk.sandboxes"
PREFERENCE = ("docker", "bubblewrap")


def provider_names() -> list[str]:
    """Names of the installed back ends."""
    return sorted(entry.name for entry in entry_points(group=GROUP))


def wanted(name: str | None) -> str | None:
    """The back end that was asked for, by name or by the setting ``sandbox``; `None` for the first that works.

    Opens nothing: a wrong name is refused even where no sandbox comes to be needed. Raises `UsageError`
    (``unknown_sandbox``) for a name nobody registered.
    """
    where = "" if name else setting("sandbox").origin
    name = name or setting("sandbox").value or None
    known = provider_names()
    if name is not None and name not in known:
        raise UsageError(
            f"no sandbox back end is called {name!r}",
            code="unknown_sandbox",
            hint=did_you_mean(name, known) or f"one of: {', '.join(known)}",
            where=where,
        )
    return name


def open_provider(name: str | None = None, **options: Any) -> SandboxProvider:
    """A sandbox back end by name, the one that the setting ``sandbox`` names, or the first of `PREFERENCE` that works.

    Raises `UsageError` (``unknown_sandbox``) for a name nobody registered, and `PrerequisiteError` where the named one,
    or with no name any (``no_sandbox``), cannot run here. Options are the provider's own.
    """
    entries = {entry.name: entry for entry in entry_points(group=GROUP)}
    name = wanted(name)
    if name is not None:
        return _opened(entries[name].load(), name, options)
    refusals = []
    for candidate in PREFERENCE:
        try:
            return _opened(entries[candidate].load(), candidate, options)
        except PrerequisiteError as error:
            refusals.append(f"{candidate}: {error.message}")
    raise PrerequisiteError(
        "no sandbox can run on this machine: " + "; ".join(refusals),
        code="no_sandbox",
        hint="run `make setup` as root; it starts Docker, or installs bubblewrap",
    )


def _opened(factory: Any, name: str, options: dict[str, Any]) -> SandboxProvider:
    provider = factory(**options)
    if not isinstance(provider, SandboxProvider):
        raise UsageError(f"back end {name!r} does not implement SandboxProvider", code="unknown_sandbox")
    return provider
