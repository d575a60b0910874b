"""What an update reports: finite numbers, nothing made up where there was nothing to measure, shares that add up."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.episode_records import make_sample
from trainer.batch import BatchReport, GroupFate
from trainer.sample import TrainSample
from trainer.step_metrics import Update, composition_metrics, step_metrics
from trainer.token_table import TokenTable, token_table


def an_update(**changes: object) -> Update:
    plain: dict[str, object] = {
        "updated": True,
        "loss": 0.5,
        "kl_loss": 0.0,
        "grad_norm": 1.0,
        "lr": 1e-5,
        "skipped_in_a_row": 0,
        "shares": {},
        "micro_batches": 1,
        "computed_tokens": 10,
        "plain_tokens": 30,
        "forward_backward_s": 0.1,
        "optimizer_s": 0.1,
    }
    return Update(**(plain | changes))  # type: ignore[arg-type]


def a_table(lags: list[list[int]]) -> TokenTable:
    samples = []
    for row in lags:
        sample = make_sample([1, 2], list(range(3, 3 + len(row))))
        samples.append(
            TrainSample(
                sample.episode_id,
                sample.group_id,
                sample.ids,
                sample.trained,
                sample.engine_logprobs,
                tuple(row),
                sample.lag_weights,
                sample.advantage,
            )
        )
    return token_table(samples)


def logprobs(table: TokenTable, *, off: float = 0.0) -> torch.Tensor:
    return torch.where(table.mask_BT, table.engine_BT + off, torch.zeros(()))


lag_rows = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4), min_size=1, max_size=4)


@given(lag_rows, st.floats(-5, 5))
def test_every_number_is_finite(lags: list[list[int]], off: float) -> None:
    table = a_table(lags)
    row = step_metrics(an_update(), table, logprobs(table, off=off))
    assert all(isinstance(value, float) and math.isfinite(value) for value in row.values())


@given(lag_rows)
def test_tokens_are_split_by_lag_and_none_is_counted_twice(lags: list[list[int]]) -> None:
    table = a_table(lags)
    row = step_metrics(an_update(), table, logprobs(table))
    tokens = [lag for some in lags for lag in some]
    assert row["all/n_tok"] == row["n_tok"] == len(tokens)
    assert row.get("mismatch/n_tok", 0) == tokens.count(0)
    assert row.get("mismatch/n_tok", 0) + row.get("lag/n_tok", 0) == len(tokens)


def test_what_has_nothing_to_measure_is_left_out_never_zero() -> None:
    table = a_table([[0, 0]])
    row = step_metrics(an_update(), table, logprobs(table))
    assert "mismatch/k3" in row
    assert "lag/k3" not in row


def test_equal_logprobs_have_no_divergence_and_an_effective_sample_of_all() -> None:
    table = a_table([[0, 1], [2]])
    row = step_metrics(an_update(), table, logprobs(table))
    assert row["all/k3"] == pytest.approx(0.0, abs=1e-6)
    assert row["all/ess_token"] == pytest.approx(1.0)
    assert row["all/ratio_q50"] == pytest.approx(1.0)
    assert row["all/logprob_diff_max"] == pytest.approx(0.0, abs=1e-6)


def test_an_empty_batch_says_that_it_was_empty() -> None:
    row = step_metrics(an_update(updated=False), None, None)
    assert (row["n_tok"], row["n_seq"], row["updated"]) == (0.0, 0.0, 0.0)
    assert not any(name.startswith(("all/", "lag/", "mismatch/")) for name in row)


def test_a_number_that_is_none_is_left_out_and_the_others_stay() -> None:
    row = step_metrics(an_update(loss=math.nan, grad_norm=math.inf), None, None)
    assert "loss" not in row
    assert "grad_norm" not in row
    assert row["lr"] == 1e-5


def test_shares_stand_beside_the_rest_under_their_own_names() -> None:
    row = step_metrics(an_update(shares={"frac_clip_low": 0.25, "lag/frac_clip_low": 0.5}), None, None)
    assert (row["frac_clip_low"], row["lag/frac_clip_low"]) == (0.25, 0.5)
    assert "mismatch/frac_clip_low" not in row


def test_what_sharing_prefixes_saved_is_padded_over_computed() -> None:
    table = a_table([[0]])
    assert step_metrics(an_update(), table, logprobs(table))["shared_prefix_gain"] == 3.0


@given(
    st.lists(st.none() | st.just("zero_variance"), max_size=6),
    st.dictionaries(st.sampled_from("ab"), st.integers(1, 9)),
)
def test_composition_counts_groups_given_and_trained_and_what_was_excluded(
    reasons: list[str | None], excluded: dict[str, int]
) -> None:
    fates = tuple(GroupFate("g", "t", 2, 2, 0.5, reason) for reason in reasons)
    report = BatchReport(fates, 4, 3, 0.5, excluded, {}, None, 0.0, 2.0)
    row = composition_metrics(report)
    assert (row["groups"], row["groups_trained"]) == (len(reasons), reasons.count(None))
    assert {name: row[f"excluded/{name}"] for name in excluded} == excluded
    assert row["coverage"] == 0.75
    assert "oldest_lag" not in row
