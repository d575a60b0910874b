"""Attention over a packed row: each sample attends to its own path and to nothing else.

Registered with transformers under `NAME`, so that every model which goes through its attention interface runs packed
rows unchanged. One kernel call for each set of siblings: a mask over the whole row would score every token against
every other sample's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface

from trainer.attention_kernel import attend
from trainer.packing import PackedRow, Siblings

NAME = "envsdk_shared_prefix"


@dataclass(frozen=True, slots=True)
class _Together:
    """One set of siblings, padded to the longest for one kernel call. S siblings, T the longest, P their path.

    padded_ST: place among the set's tokens of each padded entry (a pad repeats its sibling's last token). real: flat
    places in S x T that are tokens. mask_TK: [T, P + T] who attends to whom: the whole path, and oneself up to one's
    own place; `None` without a path, where that is plain causal attention. A pad comes after every token of its
    sibling, so that no token ever sees one.
    """

    siblings: Siblings
    padded_ST: Tensor
    real: Tensor
    mask_TK: Tensor | None


@dataclass(frozen=True, slots=True)
class AttentionPlan:
    """What the attention of every layer needs to know about a row; made once a row."""

    sets: tuple[_Together, ...]


def plan(row: PackedRow, device: torch.device) -> AttentionPlan:
    """The plan of ``row``, its tensors on ``device``."""
    parents = [length for siblings in row.siblings for length in siblings.lengths[: siblings.parents]]
    return AttentionPlan(
        tuple(_together(siblings, sum(parents[n] for n in siblings.path), device) for siblings in row.siblings)
    )


def _together(siblings: Siblings, path: int, device: torch.device) -> _Together:
    longest = max(siblings.lengths)
    padded: list[int] = []
    real: list[int] = []
    place = 0
    for number, length in enumerate(siblings.lengths):
        padded.extend(place + min(t, length - 1) for t in range(longest))
        real.extend(number * longest + t for t in range(length))
        place += length
    padded_ST, real_N = (torch.tensor(places, device=device) for places in (padded, real))
    if not path:
        return _Together(siblings, padded_ST, real_N, None)
    own_TT = torch.ones(longest, longest, dtype=torch.bool, device=device).tril()
    path_TP = torch.ones(longest, path, dtype=torch.bool, device=device)
    return _Together(siblings, padded_ST, real_N, torch.cat([path_TP, own_TT], dim=1))


def shared_prefix_attention(
    _module: torch.nn.Module,
    query_1HND: Tensor,
    key_1GND: Tensor,
    value_1GND: Tensor,
    _attention_mask: Tensor | None,
    *,
    plan: AttentionPlan,
    scaling: float | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """Attention of one layer over one row; H query heads, G key heads. Returns [1, N, H, D]."""
    # Split, not sliced: the gradient of a slice is a zero-filled copy of the whole row, for every set and layer.
    sizes = [sum(together.siblings.lengths) for together in plan.sets]
    pieces = zip(*(torch.split(x_1HND, sizes, dim=2) for x_1HND in (query_1HND, key_1GND, value_1GND)), strict=True)
    parent_keys: list[Tensor] = []
    parent_values: list[Tensor] = []
    out = []
    for together, (q, k, v) in zip(plan.sets, pieces, strict=True):
        path, count = together.siblings.path, len(together.siblings.lengths)
        keys = _after_path([parent_keys[n] for n in path], _padded(k, together), count)
        values = _after_path([parent_values[n] for n in path], _padded(v, together), count)
        out_SHTD = attend(_padded(q, together), keys, values, mask_TK=together.mask_TK, scale=scaling)
        out.append(out_SHTD.transpose(0, 1).flatten(1, 2).index_select(1, together.real))
        parent_keys += _parents(k, together.siblings)
        parent_values += _parents(v, together.siblings)
    return torch.cat(out, dim=1).transpose(0, 1).unsqueeze(0), None


def _padded(x_1HND: Tensor, together: _Together) -> Tensor:
    """[S, H, T, D]: every sibling's own entries."""
    count = len(together.siblings.lengths)
    if count == 1:
        return x_1HND
    picked = x_1HND[0].index_select(1, together.padded_ST)
    return picked.view(picked.shape[0], count, -1, picked.shape[2]).transpose(0, 1)


def _after_path(path: list[Tensor], own_SGTD: Tensor, count: int) -> Tensor:
    """[S, G, P + T, D]: the path's entries, the same for every sibling, then its own."""
    return torch.cat([*(part.expand(count, -1, -1, -1) for part in path), own_SGTD], dim=2)


def _parents(x_1GND: Tensor, siblings: Siblings) -> list[Tensor]:
    """Entries of each sibling that others go on from."""
    if not siblings.parents:
        return []
    lengths = siblings.lengths[: siblings.parents]
    return list(torch.split(x_1GND, [*lengths, x_1GND.shape[2] - sum(lengths)], dim=2)[: siblings.parents])


AttentionInterface.register(NAME, shared_prefix_attention)
