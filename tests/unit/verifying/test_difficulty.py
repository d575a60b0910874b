"""What graded episodes say of a task's difficulty."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsdk.verifying.difficulty import Measured, measured

PASS = {"graded": True, "outcome_class": "model_success"}
FAIL = {"graded": True, "outcome_class": "model_failure"}
LOST = {"graded": False, "outcome_class": "infra_failure"}


def test_ungraded_episodes_are_in_no_count() -> None:
    assert measured([PASS, FAIL, FAIL, LOST, LOST]) == Measured(passed=1, graded=3)


def test_without_a_graded_episode_there_is_no_rate_and_no_difficulty() -> None:
    assert measured([LOST]).as_json() == {"p": None, "low": 0.0, "high": 1.0, "n": 0, "difficulty": None}
    assert str(measured([])) == "nothing graded"


@given(st.integers(0, 200), st.integers(0, 200))
def test_difficulty_is_finite_odd_and_falls_with_the_passes(passed: int, failed: int) -> None:
    one, other = Measured(passed, passed + failed), Measured(failed, passed + failed)
    if one.difficulty is None or other.difficulty is None:
        assert passed + failed == 0
        return
    assert math.isfinite(one.difficulty)
    assert one.difficulty == pytest.approx(-other.difficulty)
    assert Measured(passed + 1, passed + failed + 1).difficulty < one.difficulty


def test_half_is_zero_and_the_text_says_rate_interval_and_difficulty() -> None:
    assert Measured(2, 4).difficulty == 0.0
    assert str(Measured(1, 4)) == "1 of 4 (0.05 to 0.70), difficulty +0.85"
