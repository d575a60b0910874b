"""The one shape of machine-readable results, and the exit codes.

``{"ok": true, "errors": [], ...result keys}`` on stdout for every command with ``--json``; the web API answers in the
same shape. Exit codes: 0 good, 1 what was checked is bad, 2 usage, 3 a prerequisite is missing, 4 could not decide or
the machinery failed, 130 interrupted.
"""

from __future__ import annotations

import json
from typing import Any

from envsdk.errors import EnvsdkError

GOOD, BAD, USAGE, MISSING, UNDECIDED, INTERRUPTED = 0, 1, 2, 3, 4, 130


def success(**result: Any) -> dict[str, Any]:
    """Envelope of a result. Keys of ``result`` stand beside ``ok`` and ``errors``."""
    return {"ok": True, "errors": [], **result}


def failure(*errors: EnvsdkError, **result: Any) -> dict[str, Any]:
    """Envelope of one or more errors, with whatever part of the result exists."""
    return {"ok": False, "errors": [error.as_json() for error in errors], **result}


def render(envelope: dict[str, Any]) -> str:
    """One line of strict JSON. Raises ValueError on NaN or infinity, which JSON does not have."""
    return json.dumps(envelope, ensure_ascii=False, allow_nan=False, default=_plain)


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    return str(value)
