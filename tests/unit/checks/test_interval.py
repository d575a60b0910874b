"""Wilson's interval."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsdk.checks.interval import wilson


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (5, 10, 0.2366, 0.7634), (81, 263, 0.2553, 0.3662)],
)
def test_published_values(hits: int, n: int, low: float, high: float) -> None:
    assert wilson(hits, n) == pytest.approx((low, high), abs=1e-4)


def test_nothing_counted_says_nothing() -> None:
    assert wilson(0, 0) == (0.0, 1.0)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_share_lies_inside_and_the_interval_inside_0_and_1(counted: tuple[int, int]) -> None:
    hits, n = counted
    low, high = wilson(hits, n)
    assert 0.0 <= low <= hits / n + 1e-12
    assert hits / n - 1e-12 <= high <= 1.0
    assert (1 - high, 1 - low) == pytest.approx(wilson(n - hits, n))
