"""Which tokens samples share: a tree of segments, each computed once for all samples that pass through it.

Sharing is by content alone: equal ids from the first token on mean equal hidden states, whether two samples are
siblings, or two groups of one family whose few-shot prompt is the same. A deeper tree costs attention calls in every
layer, so what would save few tokens is computed by each sample for itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainer.sample import TrainSample

WORTH_SHARING = 16
"""Tokens a shared segment must save to be one."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Positions ``start``..``end`` of ``members`` (numbers of samples), and the segments that go on from there.

    A member that needs nothing beyond ``end`` is in no child.
    """

    start: int
    end: int
    members: tuple[int, ...]
    children: tuple[Segment, ...]

    @property
    def length(self) -> int:
        """Tokens of this segment alone."""
        return self.end - self.start

    @property
    def tokens(self) -> int:
        """Tokens of this segment and all below it: what a forward pass computes."""
        return self.length + sum(child.tokens for child in self.children)


def grow(samples: Sequence[TrainSample]) -> Segment:
    """The tree of at least one sample; its root is empty where the first tokens differ."""
    return _grow(samples, tuple(range(len(samples))), 0)


def _grow(samples: Sequence[TrainSample], members: tuple[int, ...], start: int) -> Segment:
    end = _common(samples, members, start)
    ways: dict[int, list[int]] = {}
    for member in members:
        if samples[member].needed > end:
            ways.setdefault(samples[member].ids[end], []).append(member)
    children: list[Segment] = []
    for together in ways.values():
        shared = _common(samples, together, end) - end
        if shared * (len(together) - 1) >= WORTH_SHARING:
            children.append(_grow(samples, tuple(together), end))
        else:
            children.extend(Segment(end, samples[member].needed, (member,), ()) for member in together)
    return Segment(start, end, members, tuple(children))


def _common(samples: Sequence[TrainSample], members: Sequence[int], start: int) -> int:
    """End of the run of tokens that all ``members`` share and need, given that they share all before ``start``."""
    first = samples[members[0]]
    end = min(samples[member].needed for member in members)
    for member in members[1:]:
        ids = samples[member].ids
        if ids[start:end] != first.ids[start:end]:
            end = next(t for t in range(start, end) if ids[t] != first.ids[t])
    return end
