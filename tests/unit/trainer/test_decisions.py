"""The scheduler's pure decisions: admission, which groups to take, which are too old, and in which order to start."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from trainer.admission import Admission
from trainer.launch_order import Launch, launch_order
from trainer.pool_policy import choose, doomed, too_old


@dataclass(frozen=True)
class Group:
    dispatch_order: int
    completion_order: int
    oldest_version: int = 0


ready = st.lists(st.integers(0, 50), unique=True, max_size=12).map(
    lambda orders: [Group(order, place, order % 5) for place, order in enumerate(orders)]
)


@given(st.integers(0, 5), st.integers(1, 8), st.integers(0, 100))
def test_each_published_version_admits_one_batch_more(s: int, p: int, version: int) -> None:
    admission = Admission(s, p)
    assert admission.limit(version + 1) - admission.limit(version) == p
    assert admission.admits(running=0, accepted=admission.limit(version) - 1, version=version)
    assert not admission.admits(running=1, accepted=admission.limit(version) - 1, version=version)


def test_without_staleness_one_batch_is_ahead() -> None:
    assert [Admission(0, 4).admits(running=n, accepted=0, version=0) for n in (3, 4)] == [True, False]


@given(ready, st.integers(1, 6))
def test_a_batch_is_whole_or_not_taken(groups: list[Group], count: int) -> None:
    for policy in ("oldest_complete_first", "first_complete"):
        batch = choose(groups, count=count, policy=policy)
        assert (batch is None) == (len(groups) < count)
        if batch is not None:
            assert len(set(batch)) == count


@given(ready)
def test_nothing_left_behind_is_older_than_what_was_taken(groups: list[Group]) -> None:
    batch = choose(groups, count=max(1, len(groups) // 2), policy="oldest_complete_first")
    if batch is not None:
        left = [group.dispatch_order for group in groups if group not in batch]
        assert max(group.dispatch_order for group in batch) < min(left, default=10**9)


@given(ready, st.integers(0, 10), st.integers(0, 5))
def test_too_old_is_beyond_the_bound_and_nothing_else(groups: list[Group], version: int, max_lag: int) -> None:
    stale = too_old(groups, version=version, max_lag=max_lag)
    assert [group for group in groups if version - group.oldest_version > max_lag] == stale
    assert too_old(groups, version=version, max_lag=None) == []


def test_a_running_group_is_doomed_when_the_next_version_makes_it_too_old() -> None:
    assert doomed(3, next_version=6, max_lag=2)
    assert not doomed(4, next_version=6, max_lag=2)
    assert not doomed(0, next_version=99, max_lag=None)


@given(st.lists(st.integers(1, 4), max_size=6), st.sampled_from(["group_order", "longest_first", "interleaved"]))
def test_every_member_starts_exactly_once(sizes: list[int], order: str) -> None:
    members = launch_order(sizes, [float(n % 3) for n in range(len(sizes))], order=order)
    assert sorted((m.group, m.place) for m in members) == [(g, i) for g, size in enumerate(sizes) for i in range(size)]


def test_siblings_stay_together_longest_expected_first_and_the_unknown_before_all() -> None:
    members = launch_order([1, 2, 1], [1.0, 5.0, None], order="longest_first")
    assert members == [Launch(2, 0), Launch(1, 0), Launch(1, 1), Launch(0, 0)]


def test_interleaving_starts_the_first_members_of_all_groups_first() -> None:
    members = launch_order([2, 1], [None, None], order="interleaved")
    assert members == [Launch(0, 0), Launch(1, 0), Launch(0, 1)]
