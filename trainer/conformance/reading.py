"""Numbers of a case file, and comparison within its tolerances: what the judges here share.

A comparison that fails is an `AssertionError` with the place, both numbers and the tolerance; an option, a field or a
kind that a judge does not know is a `SkipCaseError`, since it may change the answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from envsdk.conformance.run import known

DTYPES = (torch.float64, torch.float32)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """``|got - want| <= rel |want| + abs``."""

    rel: float
    abs: float

    def holds(self, got: float, want: float) -> bool:
        """Is ``got`` close enough? Two infinities of one sign are equal, a NaN equals nothing."""
        return got == want or abs(got - want) <= self.rel * abs(want) + self.abs


def number(value: Any) -> float | None:
    """A number of a case: JSON's own, one of the strings JSON cannot hold, or `None`."""
    return None if value is None else float(value)


def table(rows: Sequence[Any], dtype: torch.dtype) -> Tensor:
    """A list, or a list of rows of one length, as a tensor."""
    return torch.tensor([[float(x) for x in row] if isinstance(row, list) else float(row) for row in rows], dtype=dtype)


def mask(rows: Sequence[Sequence[Any]]) -> Tensor:
    """[B, T] of booleans."""
    return torch.tensor([[bool(x) for x in row] for row in rows], dtype=torch.bool)


def close(what: str, got: float | None, want: float | None, tolerance: Tolerance) -> None:
    """Assert that two numbers agree, or are both absent."""
    if got is None or want is None:
        assert got is want, f"{what}: got {got}, expected {want}"
        return
    assert tolerance.holds(got, want), (
        f"{what}: got {got!r}, expected {want!r} within rel {tolerance.rel} abs {tolerance.abs}"
    )


def close_table(what: str, got: Tensor, want: Sequence[Any], tolerance: Tolerance) -> None:
    """Assert that a list or a table agrees, entry by entry."""
    expected = table(want, torch.float64)
    assert tuple(got.shape) == tuple(expected.shape), (
        f"{what}: shape {tuple(got.shape)}, expected {tuple(expected.shape)}"
    )
    for place, (a, b) in enumerate(zip(got.double().flatten().tolist(), expected.flatten().tolist(), strict=True)):
        close(f"{what}[{place}]", a, b, tolerance)


def equal(what: str, got: Any, want: Any) -> None:
    """Assert exact equality."""
    assert got == want, f"{what}: got {got!r}, expected {want!r}"


def known_fields(body: Mapping[str, Any], understood: Iterable[str]) -> None:
    """Skip a case that has a field this judge does not know: it may change the answer."""
    known("field", body, {"id", "kind", "what", "tol", "float64_only", "expect", "expect_error", *understood})


def in_both_precisions(body: Mapping[str, Any], run: Callable[[torch.dtype], None]) -> None:
    """Judge a case in float64 and, unless it is marked ``float64_only``, in float32."""
    for dtype in DTYPES:
        if dtype == torch.float32 and body.get("float64_only"):
            continue
        try:
            run(dtype)
        except AssertionError as error:
            raise AssertionError(f"{str(dtype).removeprefix('torch.')}: {error}") from error


def tolerance(
    body: Mapping[str, Any], dtype: torch.dtype, *, double: Tolerance, single: Tolerance, own_is_for_both: bool
) -> Tolerance:
    """The tolerance of a case: its own ``tol`` replaces the double one, or both."""
    own = body.get("tol")
    if own is not None and (own_is_for_both or dtype == torch.float64):
        return Tolerance(float(own["rel"]), float(own["abs"]))
    return double if dtype == torch.float64 else single


def raises_value_error(what: str, call: Callable[[], object]) -> None:
    """Assert that ``call`` raises `ValueError` or a subclass."""
    try:
        result = call()
    except ValueError:
        return
    raise AssertionError(f"{what}: expected ValueError, got {result!r}")


def finite(what: str, values: Tensor) -> None:
    """Assert that nothing is infinite or NaN."""
    assert math.isfinite(float(values.abs().sum())), f"{what} is not finite"
