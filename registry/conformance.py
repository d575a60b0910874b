"""The kinds of case that the registry can judge."""

from __future__ import annotations

from envsdk.conformance.run import Judge

KINDS: dict[str, Judge] = {}
