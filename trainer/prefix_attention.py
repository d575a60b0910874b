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
    """One set of siblings, padded to the longest for one kernel call. S siblings, T the longest, R the longest path.

    size: tokens of the set. padded_ST: place among them of each padded entry (a pad repeats its sibling's last token).
    real: flat places in S x T that are tokens. path_SR: places in the row of each sibling's path below the root, `None`
    where no sibling has one. mask: [S, 1, T, P + R + T], or [T, P + T] without paths: who attends to whom, the root's P
    tokens, the path, and oneself up to one's own place; `None` for plain causal attention. A pad comes after every
    token of its sibling, so that no token ever sees one.
    """

    count: int
    size: int
    shared: int
    padded_ST: Tensor
    real: Tensor
    path_SR: Tensor | None
    mask: Tensor | None


@dataclass(frozen=True, slots=True)
class AttentionPlan:
    """What the attention of every layer needs to know about a row; made once a row."""

    sets: tuple[_Together, ...]


def plan(row: PackedRow, device: torch.device) -> AttentionPlan:
    """The plan of ``row``, its tensors on ``device``."""
    return AttentionPlan(tuple(_together(siblings, device) for siblings in row.siblings))


def _together(siblings: Siblings, device: torch.device) -> _Together:
    count, longest = len(siblings.lengths), max(siblings.lengths)
    padded: list[int] = []
    real: list[int] = []
    place = 0
    for number, length in enumerate(siblings.lengths):
        padded.extend(place + min(t, length - 1) for t in range(longest))
        real.extend(number * longest + t for t in range(length))
        place += length
    paths = [[at for start, end in path for at in range(start, end)] for path in siblings.paths]
    path_length = max(map(len, paths))
    own_TT = torch.ones(longest, longest, dtype=torch.bool).tril()
    mask = torch.cat([torch.ones(longest, siblings.shared, dtype=torch.bool), own_TT], dim=1)
    path_SR = None
    if path_length:
        path_SR = torch.tensor([[*path, *[0] * (path_length - len(path))] for path in paths], device=device)
        seen_SR = torch.tensor([[1] * len(path) + [0] * (path_length - len(path)) for path in paths]).bool()
        parts = (mask[:, : siblings.shared], seen_SR[:, None, None, :], own_TT)
        mask = torch.cat([part.expand(count, 1, longest, -1) for part in parts], dim=3)
    return _Together(
        count=count,
        size=place,
        shared=siblings.shared,
        padded_ST=torch.tensor(padded, device=device),
        real=torch.tensor(real, device=device),
        path_SR=path_SR,
        mask=mask.to(device) if siblings.shared or path_length else None,
    )


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
    sizes = [together.size for together in plan.sets]
    queries, keys, values = (torch.split(x_1HND, sizes, dim=2) for x_1HND in (query_1HND, key_1GND, value_1GND))
    out = []
    for number, together in enumerate(plan.sets):
        out_SHTD = attend(
            _padded(queries[number], together),
            _seen(key_1GND, keys[0], _padded(keys[number], together), together),
            _seen(value_1GND, values[0], _padded(values[number], together), together),
            mask=together.mask,
            scale=scaling,
        )
        out.append(out_SHTD.transpose(0, 1).flatten(1, 2).index_select(1, together.real))
    return torch.cat(out, dim=1).transpose(0, 1).unsqueeze(0), None


def _padded(x_1HND: Tensor, together: _Together) -> Tensor:
    """[S, H, T, D]: every sibling's own entries."""
    if together.count == 1:
        return x_1HND
    return _gathered(x_1HND, together.padded_ST, together.count)


def _seen(row_1GND: Tensor, root_1GPD: Tensor, own_SGTD: Tensor, together: _Together) -> Tensor:
    """[S, G, P + R + T, D]: the root's entries, the same for every sibling, then its path's, then its own."""
    parts = [root_1GPD.expand(together.count, -1, -1, -1)] if together.shared else []
    if together.path_SR is not None:
        parts.append(_gathered(row_1GND, together.path_SR.flatten(), together.count))
    return torch.cat([*parts, own_SGTD], dim=2) if parts else own_SGTD


def _gathered(x_1HND: Tensor, places: Tensor, count: int) -> Tensor:
    picked = x_1HND[0].index_select(1, places)
    return picked.view(picked.shape[0], count, -1, picked.shape[2]).transpose(0, 1)


AttentionInterface.register(NAME, shared_prefix_attention)
