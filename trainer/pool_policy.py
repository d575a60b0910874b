"""Which complete groups the learner takes, which are too old, and which running ones cannot become usable any more.

Pure decisions on a small view of a group, shared by the pool and by the simulation. Oldest first with carry-over is the
default: taking whatever finished first prefers short episodes, and a group that is never taken is never trained on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeVar

TakePolicy = Literal["oldest_complete_first", "first_complete"]


class ReadyGroup(Protocol):
    """A complete group, as a decision sees it.

    ``dispatch_order``: position among all dispatched groups. ``completion_order``: position among all complete ones.
    ``oldest_version``: lowest weight version that produced a token of it.
    """

    @property
    def dispatch_order(self) -> int: ...
    @property
    def completion_order(self) -> int: ...
    @property
    def oldest_version(self) -> int: ...


G = TypeVar("G", bound=ReadyGroup)


def choose(ready: Sequence[G], *, count: int, policy: TakePolicy) -> list[G] | None:
    """The ``count`` groups of the next batch in the policy's order, or `None` while there are fewer."""
    if len(ready) < count:
        return None
    if policy == "oldest_complete_first":
        return sorted(ready, key=lambda group: group.dispatch_order)[:count]
    return sorted(ready, key=lambda group: group.completion_order)[:count]


def too_old(ready: Sequence[G], *, version: int, max_lag: int | None) -> list[G]:
    """Ready groups whose oldest token is more than ``max_lag`` versions behind; `None` is no bound.

    They are dropped before every attempt to take, counted, and leave the accepted count.
    """
    if max_lag is None:
        return []
    return [group for group in ready if version - group.oldest_version > max_lag]


def doomed(oldest_version: int, *, next_version: int, max_lag: int | None) -> bool:
    """Would a group that is still running be too old under ``next_version``? Then it is cancelled before the pause."""
    return max_lag is not None and next_version - oldest_version > max_lag
