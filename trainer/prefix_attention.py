"""Attention over a packed row: each sample attends to its group's prefix and to itself, and to nothing else.

Registered with transformers under `NAME`, so that every model which goes through its attention interface runs packed
rows unchanged. One kernel call for a block's prefix and one for its suffixes: a mask over the whole row would score
every token against every other sample's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface

from trainer.attention_kernel import attend
from trainer.packing import Block, PackedRow

NAME = "envsdk_shared_prefix"


@dataclass(frozen=True, slots=True)
class _Suffixes:
    """Suffixes of one block, padded to the longest for one kernel call. S samples, T the longest, P the prefix.

    gather_ST: place among the block's suffix tokens of each padded entry (a pad repeats its sample's last). real: flat
    places in S x T that are tokens. mask_TK: [T, P + T] who attends to whom: the whole prefix, and oneself up to one's
    own place. A pad comes after every token of its sample, so that no token ever sees one.
    """

    count: int
    gather_ST: Tensor
    real: Tensor
    mask_TK: Tensor


@dataclass(frozen=True, slots=True)
class AttentionPlan:
    """What the attention of every layer needs to know about a row; made once a row."""

    blocks: tuple[tuple[Block, _Suffixes | None], ...]


def plan(row: PackedRow, device: torch.device) -> AttentionPlan:
    """The plan of ``row``, its tensors on ``device``."""
    return AttentionPlan(tuple((block, _suffixes(block, device)) for block in row.blocks))


def _suffixes(block: Block, device: torch.device) -> _Suffixes | None:
    longest = max(block.suffixes, default=0)
    if longest == 0:
        return None
    gather: list[int] = []
    real: list[int] = []
    place = 0
    kept = [length for length in block.suffixes if length]
    for sample, length in enumerate(kept):
        gather.extend(place + min(t, length - 1) for t in range(longest))
        real.extend(sample * longest + t for t in range(length))
        place += length
    own_TT = torch.ones(longest, longest, dtype=torch.bool).tril()
    mask_TK = torch.cat([torch.ones(longest, block.prefix, dtype=torch.bool), own_TT], dim=1)
    return _Suffixes(
        len(kept), torch.tensor(gather, device=device), torch.tensor(real, device=device), mask_TK.to(device)
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
    # Split, not sliced: the gradient of a slice is a zero-filled copy of the whole row, for every block and layer.
    sizes = [size for block, _ in plan.blocks for size in (block.prefix, sum(block.suffixes))]
    parts = [iter(torch.split(x_1HND, sizes, dim=2)) for x_1HND in (query_1HND, key_1GND, value_1GND)]
    pieces = []
    for block, suffixes in plan.blocks:
        q, k, v = (next(part) for part in parts)
        own_q, own_k, own_v = (next(part) for part in parts)
        if block.prefix:
            pieces.append(attend(q, k, v, mask_TK=None, scale=scaling)[0])
        if suffixes is not None:
            keys = torch.cat([k.expand(suffixes.count, -1, -1, -1), _padded(own_k, suffixes)], dim=2)
            values = torch.cat([v.expand(suffixes.count, -1, -1, -1), _padded(own_v, suffixes)], dim=2)
            out_SHTD = attend(_padded(own_q, suffixes), keys, values, mask_TK=suffixes.mask_TK, scale=scaling)
            pieces.append(out_SHTD.transpose(0, 1).flatten(1, 2).index_select(1, suffixes.real))
    return torch.cat(pieces, dim=1).transpose(0, 1).unsqueeze(0), None


def _padded(x_1HND: Tensor, suffixes: _Suffixes) -> Tensor:
    """[S, H, T, D]: every sample's own entries."""
    picked = x_1HND[0].index_select(1, suffixes.gather_ST)
    return picked.view(picked.shape[0], suffixes.count, -1, picked.shape[2]).transpose(0, 1)


AttentionInterface.register(NAME, shared_prefix_attention)
