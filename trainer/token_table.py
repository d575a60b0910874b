"""A row's trained tokens as a table: one line a sample, holes closed, so that the losses' [B, T] formulae apply.

Columns count a sample's trained tokens in order; what stood between them (prompt, tool output) is not in the table at
all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from trainer.sample import TrainSample


@dataclass(frozen=True, slots=True)
class TokenTable:
    """[B, T] of what is known before the forward pass. ``place_M``: where each trained token stands, flattened."""

    mask_BT: Tensor
    engine_BT: Tensor
    lag_BT: Tensor
    lag_weight_BT: Tensor
    advantage_B: Tensor
    place_M: Tensor

    def spread(self, values_M: Tensor) -> Tensor:
        """[B, T] of ``values_M``, 0 where there is no token; differentiable."""
        flat = torch.zeros(self.mask_BT.numel(), dtype=values_M.dtype, device=values_M.device)
        return flat.index_copy(0, self.place_M, values_M).view(self.mask_BT.shape)


def token_table(
    samples: Sequence[TrainSample], *, dtype: torch.dtype = torch.float32, device: torch.device | None = None
) -> TokenTable:
    """The table of ``samples``, in their order."""
    width = max(len(sample.trained) for sample in samples)
    place_M = torch.tensor([b * width + t for b, sample in enumerate(samples) for t in range(len(sample.trained))])

    def of(values: Sequence[float], fill: float, kind: torch.dtype) -> Tensor:
        flat = torch.full((len(samples) * width,), fill, dtype=kind)
        return flat.index_copy(0, place_M, torch.tensor(values, dtype=kind)).view(len(samples), width).to(device)

    return TokenTable(
        mask_BT=of([1.0] * len(place_M), 0.0, torch.float32).bool(),
        engine_BT=of([x for s in samples for x in s.engine_logprobs], 0.0, dtype),
        lag_BT=of([x for s in samples for x in s.lags], -1.0, torch.long),
        lag_weight_BT=of([x for s in samples for x in s.lag_weights], 0.0, dtype),
        advantage_B=torch.tensor([sample.advantage for sample in samples], dtype=dtype, device=device),
        place_M=place_M.to(device),
    )
