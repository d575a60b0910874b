"""Shares of what was clipped, capped and rejected: over the right units, split by lag, added up over micro-batches."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.episode_records import make_sample
from trainer.tally import Tally
from trainer.token_table import TokenTable, token_table


def table_of(lags: list[list[int]]) -> TokenTable:
    """One row a list, one token an entry."""
    return token_table(
        [
            dataclasses.replace(
                make_sample([1, 2], list(range(3, 3 + len(row)))), lags=tuple(row), lag_weights=(1.0,) * len(row)
            )
            for row in lags
        ]
    )


def hits(table: TokenTable, *places: tuple[int, int]) -> torch.Tensor:
    hit_BT = torch.zeros_like(table.mask_BT)
    for row, column in places:
        hit_BT[row, column] = True
    return hit_BT


def shares(tally: Tally, name: str) -> tuple[float | None, ...]:
    found = tally.shares()
    return tuple(found.get(f"{part}frac_{name}") for part in ("", "mismatch/", "lag/"))


def test_tokens_are_shared_over_tokens_and_split_by_their_own_lag() -> None:
    table, tally = table_of([[0, 0, 1], [2]]), Tally()
    tally.add("clip_low", hits(table, (0, 0), (1, 0)), table)
    assert shares(tally, "clip_low") == (2 / 4, 1 / 2, 1 / 2)


def test_sequences_are_shared_over_sequences_and_lag_where_any_token_does() -> None:
    table, tally = table_of([[0, 0, 1], [0, 0], [0]]), Tally()
    tally.add("clip_low", hits(table, (0, 0), (0, 1), (1, 0), (1, 1)), table, unit="sequence")
    assert shares(tally, "clip_low") == (pytest.approx(2 / 3), 1 / 2, 1.0)


def test_a_part_of_which_there_is_nothing_has_no_share() -> None:
    table, tally = table_of([[1, 1]]), Tally()
    tally.add("rejected", hits(table), table)
    assert shares(tally, "rejected") == (0.0, None, 0.0)


@given(
    st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=4), min_size=2, max_size=6),
    st.integers(0, 2**20),
    st.sampled_from(["token", "sequence"]),
)
def test_cutting_a_batch_changes_no_share(lags: list[list[int]], seed: int, unit: str) -> None:
    drawn = torch.Generator().manual_seed(seed)
    hit = [torch.rand(len(row), generator=drawn) < 0.5 for row in lags]
    if unit == "sequence":
        hit = [row.any().expand_as(row) for row in hit]
    found = []
    for parts in ([lags], [lags[:1], lags[1:]]):
        tally, at = Tally(), 0
        for part in parts:
            table = table_of(part)
            hit_BT = torch.zeros_like(table.mask_BT)
            for row in range(len(part)):
                hit_BT[row, : len(part[row])] = hit[at + row]
            tally.add("x", hit_BT, table, unit=unit)
            at += len(part)
        found.append(tally.shares())
    assert found[0] == found[1]
    assert all(0 <= share <= 1 for share in found[0].values())
