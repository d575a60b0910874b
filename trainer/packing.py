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
    """Segments of about one length at one depth of the tree, adjacent in the row; none of them sees another.

    Attributes:
        lengths: tokens of each, in row order.
        shared: tokens at the start of the row that all of them see: the root, unless this is the root itself.
        paths: for each, the places in the row (start, end) of what else it sees, from the first token on.
    """

    lengths: tuple[int, ...]
    shared: int
    paths: tuple[tuple[tuple[int, int], ...], ...]


@dataclass(frozen=True, slots=True)
class PackedRow:
    """One micro-batch. Legend: N tokens in the row, B samples, M trained tokens of all samples, sample by sample.

    Attributes:
        samples: [B] as given.
        ids, positions: [N] token and its position in its samples.
        siblings: the row in pieces, and who may attend to whom; the root, if it is not empty, is the first piece alone.
        predictors: [M] place in the row whose output predicts the trained token.
        targets: [M] id of the trained token.
    """

    samples: tuple[TrainSample, ...]
    ids: tuple[int, ...]
    positions: tuple[int, ...]
    siblings: tuple[Siblings, ...]
    predictors: tuple[int, ...]
    targets: tuple[int, ...]


_Placed = tuple[Segment, tuple[tuple[int, int], ...]]
"""A segment and the places in the row of its path below the root."""


def pack(samples: Sequence[TrainSample]) -> PackedRow:
    """Lay out at least one sample in one row."""
    root = grow(samples)
    ids: list[int] = []
    positions: list[int] = []
    siblings: list[Siblings] = []
    runs: list[list[tuple[int, int]]] = [[] for _ in samples]  # (first position, place in the row) along each path
    level: list[_Placed] = [(root, ())] if root.length else [(child, ()) for child in root.children]
    while level:
        below: list[_Placed] = []
        for together in _alike(level):
            for segment, path in together:
                place = len(ids)
                for member in segment.members:
                    runs[member].append((segment.start, place))
                ids.extend(samples[segment.members[0]].ids[segment.start : segment.end])
                positions.extend(range(segment.start, segment.end))
                onward = path if segment is root else (*path, (place, len(ids)))
                below.extend((child, onward) for child in segment.children)
            siblings.append(
                Siblings(
                    lengths=tuple(segment.length for segment, _ in together),
                    shared=0 if together[0][0] is root else root.length,
                    paths=tuple(path for _, path in together),
                )
            )
        level = below
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


def _alike(level: Sequence[_Placed]) -> list[list[_Placed]]:
    """Segments of a level by length, to the next power of two: padding at most doubles what a kernel call computes."""
    by_size: dict[int, list[_Placed]] = {}
    for segment, path in level:
        by_size.setdefault((segment.length - 1).bit_length(), []).append((segment, path))
    return list(by_size.values())


def _place(runs: Sequence[tuple[int, int]], position: int) -> int:
    """Place in the row of a sample's ``position``."""
    start, place = next(run for run in reversed(runs) if run[0] <= position)
    return place + position - start
