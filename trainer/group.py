"""The group, from its dispatch to its completion: the unit that is scheduled and trained.

A `Draw` is a group on its way; a `CompleteGroup` is one whose members have all ended. Times are seconds on the run's
monotonic clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from envsdk.digest import sha256_hex
from envsdk.episode.record import EpisodeRecord
from envsdk.spec.model import Task
from trainer.advantage import NoSignal, group_advantages
from trainer.batch import is_valid


@dataclass(frozen=True, slots=True)
class Draw:
    """A task given out to ``size`` members. ``order`` counts the run's groups, ``version`` is that of its dispatch."""

    group_id: str
    order: int
    task: Task
    size: int
    version: int
    dispatched_at: float


@dataclass(frozen=True, slots=True)
class Member:
    """One episode of a group: its ``attempt``-th try at place ``index``."""

    draw: Draw
    index: int
    attempt: int

    @property
    def episode_id(self) -> str:
        """The key under which it is dispatched once and ends once, here and in the registry."""
        return f"{self.draw.group_id}-{self.index}.{self.attempt}"

    def seed(self, run_seed: int) -> int:
        """Of its sampling: the same in every run of this seed, and far from that of any other member's turns."""
        return int(sha256_hex(f"{run_seed}/{self.draw.order}/{self.index}/{self.attempt}".encode())[:12], 16)


@dataclass(frozen=True, slots=True)
class EndedMember:
    """A member's last attempt. ``started_at``: it got its slot; the record's stamps count from there."""

    record: EpisodeRecord
    started_at: float
    ended_at: float


@dataclass(frozen=True, slots=True)
class CompleteGroup:
    """A group whose members have all ended: one `EndedMember` for each place, in their order.

    ``refilled``: attempts that failed for reasons of the machinery and were made again.
    """

    draw: Draw
    members: tuple[EndedMember, ...]
    completed_at: float
    completion_order: int
    refilled: int = 0

    @property
    def group_id(self) -> str:
        """The draw's id."""
        return self.draw.group_id

    @property
    def dispatch_order(self) -> int:
        """Position among all groups of the run."""
        return self.draw.order

    @property
    def episodes(self) -> tuple[EpisodeRecord, ...]:
        """The members' records."""
        return tuple(member.record for member in self.members)

    @property
    def oldest_version(self) -> int:
        """Lowest weight version that made a token the learner may train on; the dispatch's where there is none."""
        versions = [
            record.weight_version_oldest
            for record in self.episodes
            if record.outcome.in_gradient and record.weight_version_oldest is not None
        ]
        return min(versions, default=self.draw.version)

    @property
    def flawed(self) -> bool:
        """A member is missing from gradient and baseline although its refills were used up."""
        return any(not record.outcome.in_gradient for record in self.episodes)

    @property
    def no_signal(self) -> NoSignal | None:
        """Why the group would train nothing, `None` where it trains."""
        return signal(self.episodes)


def signal(records: Sequence[EpisodeRecord]) -> NoSignal | None:
    """Why these siblings train nothing (fewer than two valid, or all rewards equal); `None` where they train."""
    rewards = [record.outcome.reward for record in records]
    valid = [is_valid(record) for record in records]
    return group_advantages(rewards, ["group"] * len(records), valid).groups["group"].reason
