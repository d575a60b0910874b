"""The learning rate rises to its value, and falls to nothing only where it was told to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.learner_config import LearnerConfig
from trainer.schedule import learning_rate


def config(**settings: object) -> LearnerConfig:
    return LearnerConfig.model_validate({"lr": 1.0, **settings})


def test_warm_up_is_linear_and_its_first_step_is_not_zero() -> None:
    rates = [learning_rate(config(warmup_steps=4), step=step) for step in range(6)]
    assert rates == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]


@pytest.mark.parametrize(("decay", "half"), [("linear", 0.5), ("cosine", 0.5), ("constant", 1.0)])
def test_decay_runs_from_the_end_of_the_warm_up_to_the_total(decay: str, half: float) -> None:
    settings = config(decay=decay, warmup_steps=2, total_steps=12)
    assert learning_rate(settings, step=2) == pytest.approx(1.0)
    assert learning_rate(settings, step=7) == pytest.approx(half)
    assert learning_rate(settings, step=12) == pytest.approx(1.0 if decay == "constant" else 0.0)


@given(st.integers(0, 200), st.sampled_from(["constant", "linear", "cosine"]), st.integers(0, 20))
def test_the_rate_never_leaves_its_range(step: int, decay: str, warmup: int) -> None:
    settings = config(decay=decay, warmup_steps=warmup, total_steps=warmup + 50)
    assert 0.0 <= learning_rate(settings, step=step) <= 1.0


@given(st.integers(20, 80), st.sampled_from(["linear", "cosine"]))
def test_after_the_warm_up_it_never_rises(step: int, decay: str) -> None:
    settings = config(decay=decay, warmup_steps=20, total_steps=70)
    assert learning_rate(settings, step=step + 1) <= learning_rate(settings, step=step) + 1e-12
