"""What a case of ``input`` and ``expected`` may say. A field that its judge does not know skips the case by name."""

from __future__ import annotations

from collections.abc import Iterable

from envsdk.conformance.run import Case, known

PROSE = frozenset({"id", "kind", "what", "why", "pair", "right"})
"""Fields for readers, which decide nothing."""


def known_fields(case: Case, inputs: Iterable[str], expectations: Iterable[str]) -> None:
    """Skip a case that has other inputs or expectations than these.

    Raises:
        SkipCaseError: it has, or is made of other parts altogether.
    """
    known("field", case.body, PROSE | {"input", "expected"})
    known("input", case.body.get("input", {}), inputs)
    known("expectation", case.body.get("expected", {}), expectations)
