"""How samples are laid out for one forward pass: all of them in one row, each group's common prefix once.

Promises: every trained token is predicted from exactly the context it was generated in, whatever shares a row with it.
Positions are those of the sample, not of the row. The common prefix is the longest run of equal ids, so a group's
shared prompt, and any first tokens that happen to agree, are computed once; a sample alone is its own prefix.
Nothing here loads torch: a layout is plain integers, made off the critical path.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trainer.sample import TrainSample


@dataclass(frozen=True, slots=True)
class Block:
    """A run of the row: ``prefix`` shared tokens at ``start``, then each sample's own ``suffixes`` tokens, adjacent."""

    start: int
    prefix: int
    suffixes: tuple[int, ...]

    @property
    def end(self) -> int:
        """First position of the row after the block."""
        return self.start + self.prefix + sum(self.suffixes)


@dataclass(frozen=True, slots=True)
class PackedRow:
    """One micro-batch. Legend: N tokens in the row, B samples, M trained tokens of all samples, sample by sample.

    Attributes:
        samples: [B] in row order.
        ids, positions: [N] token and its position in its sample.
        blocks: who may attend to whom.
        predictors: [M] place in the row whose output predicts the trained token.
        targets: [M] id of the trained token.
    """

    samples: tuple[TrainSample, ...]
    ids: tuple[int, ...]
    positions: tuple[int, ...]
    blocks: tuple[Block, ...]
    predictors: tuple[int, ...]
    targets: tuple[int, ...]


def common_prefix(samples: Sequence[TrainSample]) -> int:
    """Length of the longest prefix that all samples share, within what each of them needs computed."""
    limit = min(sample.needed for sample in samples)
    first = samples[0].ids
    for sample in samples[1:]:
        ids = sample.ids
        limit = next((i for i in range(limit) if ids[i] != first[i]), limit)
    return limit


def pack(groups: Iterable[Sequence[TrainSample]]) -> PackedRow:
    """Lay out whole groups, or parts of them, in one row."""
    samples: list[TrainSample] = []
    ids: list[int] = []
    positions: list[int] = []
    blocks: list[Block] = []
    predictors: list[int] = []
    targets: list[int] = []
    for group in groups:
        start, prefix = len(ids), common_prefix(group)
        ids.extend(group[0].ids[:prefix])
        positions.extend(range(prefix))
        for sample in group:
            suffix_start = len(ids)
            ids.extend(sample.ids[prefix : sample.needed])
            positions.extend(range(prefix, sample.needed))
            for t in sample.trained:
                predictors.append(start + t - 1 if t <= prefix else suffix_start + t - 1 - prefix)
                targets.append(sample.ids[t])
            samples.append(sample)
        blocks.append(Block(start, prefix, tuple(sample.needed - prefix for sample in group)))
    return PackedRow(tuple(samples), tuple(ids), tuple(positions), tuple(blocks), tuple(predictors), tuple(targets))


def micro_batches(groups: Sequence[Sequence[TrainSample]], *, token_budget: int) -> list[PackedRow]:
    """Rows of at most ``token_budget`` computed tokens each; a single sample above the budget gets a row of its own.

    Groups stay whole where they fit, since a group cut in two computes its prefix twice.
    """
    rows: list[list[Sequence[TrainSample]]] = []
    room = 0
    for part in (part for group in groups for part in _fitting(group, token_budget)):
        cost = _cost(part)
        if not rows or cost > room:
            rows.append([])
            room = token_budget
        rows[-1].append(part)
        room -= cost
    return [pack(row) for row in rows]


def _fitting(group: Sequence[TrainSample], token_budget: int) -> list[Sequence[TrainSample]]:
    parts: list[Sequence[TrainSample]] = []
    part: list[TrainSample] = []
    for sample in group:
        if part and _cost([*part, sample]) > token_budget:
            parts.append(part)
            part = []
        part.append(sample)
    return [*parts, part] if part else parts


def _cost(samples: Sequence[TrainSample]) -> int:
    prefix = common_prefix(samples)
    return prefix + sum(sample.needed - prefix for sample in samples)
