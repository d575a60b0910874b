"""How samples are laid out for one forward pass: all of them in one row, what they share once.

Promises: every trained token is predicted from exactly the context it was generated in, whatever shares a row with it.
Positions are those of the sample, not of the row. Nothing here loads torch: a layout is plain integers, made off the
critical path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainer.prefix_tree import Segment, grow
from trainer.sample import TrainSample


@dataclass(frozen=True, slots=True)
class Siblings:
    """Segments of the row that follow the same path, adjacent in it; none of them sees another.

    Attributes:
        lengths: tokens of each, in row order; those that others go on from come first.
        path: numbers of the segments before them, from the first token on. A number counts the segments that others go
            on from, in the order of the row.
        parents: how many of ``lengths``, from the first, others go on from.
    """

    lengths: tuple[int, ...]
    path: tuple[int, ...]
    parents: int


@dataclass(frozen=True, slots=True)
class PackedRow:
    """One micro-batch. Legend: N tokens in the row, B samples, M trained tokens of all samples, sample by sample.

    Attributes:
        samples: [B] as given.
        ids, positions: [N] token and its position in its samples.
        siblings: the row in pieces, and who may attend to whom; a path's segments stand before what follows it.
        predictors: [M] place in the row whose output predicts the trained token.
        targets: [M] id of the trained token.
    """

    samples: tuple[TrainSample, ...]
    ids: tuple[int, ...]
    positions: tuple[int, ...]
    siblings: tuple[Siblings, ...]
    predictors: tuple[int, ...]
    targets: tuple[int, ...]


def pack(samples: Sequence[TrainSample]) -> PackedRow:
    """Lay out at least one sample in one row."""
    root = grow(samples)
    ids: list[int] = []
    positions: list[int] = []
    siblings: list[Siblings] = []
    runs: list[list[tuple[int, int]]] = [[] for _ in samples]  # (first position, place in the row) along each path
    waiting: list[tuple[tuple[Segment, ...], tuple[int, ...]]] = [((root,) if root.length else root.children, ())]
    parents = 0
    while waiting:
        segments, path = waiting.pop(0)
        ordered = sorted(segments, key=lambda segment: not segment.children)
        for segment in ordered:
            for member in segment.members:
                runs[member].append((segment.start, len(ids)))
            ids.extend(samples[segment.members[0]].ids[segment.start : segment.end])
            positions.extend(range(segment.start, segment.end))
            if segment.children:
                waiting.append((segment.children, (*path, parents)))
                parents += 1
        lengths = tuple(segment.length for segment in ordered)
        siblings.append(Siblings(lengths, path, sum(bool(segment.children) for segment in ordered)))
    predictors = [_place(runs[b], t - 1) for b, sample in enumerate(samples) for t in sample.trained]
    targets = [sample.ids[t] for sample in samples for t in sample.trained]
    return PackedRow(tuple(samples), tuple(ids), tuple(positions), tuple(siblings), tuple(predictors), tuple(targets))


def micro_batches(groups: Sequence[Sequence[TrainSample]], *, token_budget: int) -> list[PackedRow]:
    """Rows of at most ``token_budget`` computed tokens each; a single sample above the budget gets a row of its own.

    Groups stay whole where they fit, since a group cut in two computes what it shares twice.
    """
    rows: list[list[TrainSample]] = []
    for group in groups:
        whole = grow(group).tokens <= token_budget
        for unit in [group] if whole else [[sample] for sample in group]:
            if rows and grow([*rows[-1], *unit]).tokens <= token_budget:
                rows[-1].extend(unit)
            else:
                rows.append(list(unit))
    return [pack(row) for row in rows]


def _place(runs: Sequence[tuple[int, int]], position: int) -> int:
    """Place in the row of a sample's ``position``."""
    start, place = next(run for run in reversed(runs) if run[0] <= position)
    return place + position - start
