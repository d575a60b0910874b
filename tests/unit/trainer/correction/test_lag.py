"""Lag: known for every trained token or an error; rules reject what they say; metrics count tokens."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from envsdk.episode.record import VersionSpan
from envsdk.errors import UsageError
from trainer.correction.lag import lag_drop_group, lag_drop_sample, lag_mask, lag_weight, refuse
from trainer.correction.lag_metrics import lag_metrics
from trainer.correction.versions import TokenLags, token_lags

VERSION = 10
rows = st.lists(st.lists(st.integers(0, VERSION), min_size=1, max_size=6), min_size=1, max_size=5)


def lags_of(
    versions: list[list[int]], mask: list[list[int]] | None = None, *, trainer_version: int = VERSION
) -> TokenLags:
    width = max(map(len, versions))
    spans = [[VersionSpan(version=v, start=t, end=t + 1) for t, v in enumerate(row)] for row in versions]
    full = [[1] * len(row) + [0] * (width - len(row)) for row in versions]
    return token_lags(spans, torch.tensor(mask or full), trainer_version=trainer_version)


@given(rows, st.randoms(use_true_random=False))
def test_the_order_of_spans_does_not_matter(versions: list[list[int]], draw) -> None:
    width = max(map(len, versions))
    spans = [[VersionSpan(version=v, start=t, end=t + 1) for t, v in enumerate(row)] for row in versions]
    for row in spans:
        draw.shuffle(row)
    mask_BT = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in versions])
    assert torch.equal(token_lags(spans, mask_BT, trainer_version=VERSION).lag_BT, lags_of(versions).lag_BT)


@given(rows)
def test_the_histogram_counts_every_trained_token_once(versions: list[list[int]]) -> None:
    metrics = lag_metrics(lags_of(versions))
    flat = [VERSION - v for row in versions for v in row]
    assert metrics.histogram == {lag: flat.count(lag) for lag in sorted(set(flat))}
    assert metrics.n_tok == len(flat)
    assert metrics.oldest == tuple(max(VERSION - v for v in row) for row in versions)
    assert metrics.mean_token_lag == pytest.approx(sum(flat) / len(flat))


@given(rows, st.integers(0, 5))
def test_stricter_rules_keep_less(versions: list[list[int]], max_lag: int) -> None:
    lags = lags_of(versions)
    by_token = lag_mask(lags, max_lag=max_lag).kept_BT
    by_sample = lag_drop_sample(lags, max_lag=max_lag).kept_BT
    by_group = lag_drop_group(lags, ["g"] * len(versions), max_lag=max_lag).kept_BT
    assert (by_sample <= by_token).all()
    assert (by_group <= by_sample).all()


@given(rows, st.integers(0, 5))
def test_no_kept_token_is_over_the_bound(versions: list[list[int]], max_lag: int) -> None:
    lags = lags_of(versions)
    for result in (lag_mask(lags, max_lag=max_lag), lag_weight(lags, gamma=0.5, max_lag=max_lag)):
        assert (lags.lag_BT[result.kept_BT] <= max_lag).all()
        assert (lags.lag_BT[lags.mask_BT & ~result.kept_BT] > max_lag).all()


def test_a_stale_sibling_drops_its_own_group_only() -> None:
    result = lag_drop_group(lags_of([[9], [5], [9]]), ["a", "b", "b"], max_lag=2)
    assert result.seq_keep == [True, False, False]


def test_weights_fall_by_gamma_for_each_version() -> None:
    result = lag_weight(lags_of([[10, 9, 8, 3]]), gamma=0.5, max_lag=4)
    assert result.weight_BT.tolist() == [[1.0, 0.5, 0.25, 0.0]]


def test_tokens_that_carry_no_loss_need_no_version() -> None:
    lags = token_lags([[VersionSpan(version=8, start=1, end=2)]], torch.tensor([[0, 1, 0]]), trainer_version=10)
    assert lags.oldest_B == [2]
    assert lag_metrics(lags).histogram == {2: 1}


def test_a_row_without_trained_tokens_has_no_oldest() -> None:
    lags = lags_of([[3]], [[0]])
    assert lags.oldest_B == [None]
    assert lag_metrics(lags).max_oldest is None
    assert lag_drop_sample(lags, max_lag=0).seq_keep == [None]


def test_empty_spans_are_legal_whatever_their_version() -> None:
    spans = [[VersionSpan(version=99, start=1, end=1), VersionSpan(version=8, start=0, end=2)]]
    assert token_lags(spans, torch.tensor([[1, 1]]), trainer_version=10).oldest_B == [2]


@pytest.mark.parametrize(
    ("spans", "says"),
    [
        ([(8, 0, 1)], "token 1 of row 0 has no weight version"),
        ([(8, 0, 2), (9, 1, 2)], "overlaps another version"),
        ([(11, 0, 2)], "version 11"),
        ([(8, 2, 0)], "ends before it starts"),
    ],
)
def test_spans_that_leave_the_lag_open_are_errors(spans: list[tuple[int, int, int]], says: str) -> None:
    row = [VersionSpan(version=v, start=a, end=b) for v, a, b in spans]
    with pytest.raises(ValueError, match=says):
        token_lags([row], torch.tensor([[1, 1]]), trainer_version=10)


def test_the_same_version_twice_over_a_token_is_fine() -> None:
    row = [VersionSpan(version=8, start=0, end=2), VersionSpan(version=8, start=1, end=2)]
    assert token_lags([row], torch.tensor([[1, 1]]), trainer_version=8).oldest_B == [0]


def test_spans_for_another_number_of_rows_are_an_error() -> None:
    with pytest.raises(ValueError, match="2 lists of spans for 1 rows"):
        token_lags([[], []], torch.tensor([[0]]), trainer_version=0)


def test_refusing_names_the_lag_and_the_bound() -> None:
    refuse(lags_of([[8]]), max_lag=2)
    with pytest.raises(UsageError, match="3 versions old and the bound is 2") as caught:
        refuse(lags_of([[7]]), max_lag=2)
    assert caught.value.code == "lag_above_bound"
