"""Values that a task takes from the machine it runs on: ``${NAME}`` and ``${NAME:-default}`` in an ``env`` table."""

from __future__ import annotations

import re
from collections.abc import Mapping

from envsdk.errors import UsageError

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


def resolve_env(env: Mapping[str, str], outer: Mapping[str, str]) -> dict[str, str]:
    """``env`` with every reference replaced from ``outer``, an unset or empty name by its default.

    Raises:
        UsageError: names without a value or default, all of them (code ``env_missing``).
    """
    missing = sorted({name for value in env.values() for name in required_names(value) if not outer.get(name)})
    if missing:
        raise UsageError(f"not set: {', '.join(missing)}", code="env_missing", hint="set them in the environment")
    return {
        key: _REFERENCE.sub(lambda match: outer.get(match[1]) or match[2] or "", value) for key, value in env.items()
    }


def required_names(value: str) -> list[str]:
    """Names that ``value`` takes from outside and has no default for."""
    return [match[1] for match in _REFERENCE.finditer(value) if match[2] is None]
