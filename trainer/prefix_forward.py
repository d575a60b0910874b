"""Logprobs of a packed row's trained tokens, differentiable, from any model that takes `trainer.prefix_attention`.

Promises: values and gradients equal those of the plain padded forward (up to the order of floating-point sums), at the
cost of computing once what samples share. A model whose layers don't all attend to everything before them, or
that brings its own attention code, runs padded instead: same values, more tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from trainer import prefix_attention
from trainer.packing import PackedRow
from trainer.token_logprobs import token_logprobs


def takes_packed_rows(model: Any) -> bool:
    """Whether the model goes through transformers' attention interface and every layer attends to the full context."""
    layers = getattr(model.config, "layer_types", None)
    full = layers is None or set(layers) == {"full_attention"}
    windowed = layers is None and getattr(model.config, "sliding_window", None) is not None
    return bool(getattr(model, "_supports_attention_backend", False)) and full and not windowed


def row_logprobs(model: Any, row: PackedRow, *, temperature: float = 1.0) -> Tensor:
    """[M] logprob of every trained token of ``row``, sample by sample."""
    if takes_packed_rows(model):
        return _packed(model, row, temperature)
    return padded_logprobs(model, row, temperature=temperature)


def _packed(model: Any, row: PackedRow, temperature: float) -> Tensor:
    before = model.config._attn_implementation  # noqa: SLF001 - transformers has a setter, and no public getter
    if before != prefix_attention.NAME:
        model.set_attn_implementation(prefix_attention.NAME)
    device = _device(model)
    hidden_1ND = model.base_model(
        input_ids=torch.tensor([row.ids], device=device),
        position_ids=torch.tensor([row.positions], device=device),
        use_cache=False,
        plan=prefix_attention.plan(row, device),
    ).last_hidden_state
    if before != prefix_attention.NAME:
        model.set_attn_implementation(before)
    return _at_targets(model, hidden_1ND[0], row.predictors, row, temperature)


def padded_logprobs(model: Any, row: PackedRow, *, temperature: float = 1.0) -> Tensor:
    """[M] the same from the plain forward: one row a sample, right-padded, the prefix computed for each."""
    width = max(sample.needed for sample in row.samples)
    ids_BT = torch.zeros(len(row.samples), width, dtype=torch.long)
    real_BT = torch.zeros(len(row.samples), width, dtype=torch.long)
    predictors: list[int] = []
    for b, sample in enumerate(row.samples):
        ids_BT[b, : sample.needed] = torch.tensor(sample.ids[: sample.needed])
        real_BT[b, : sample.needed] = 1
        predictors.extend(b * width + t - 1 for t in sample.trained)
    device = _device(model)
    hidden_BTD = model.base_model(
        input_ids=ids_BT.to(device), attention_mask=real_BT.to(device), use_cache=False
    ).last_hidden_state
    return _at_targets(model, hidden_BTD.flatten(0, 1), predictors, row, temperature)


def _at_targets(model: Any, hidden_ND: Tensor, predictors: Sequence[int], row: PackedRow, temperature: float) -> Tensor:
    predictors_M, targets_M = (torch.tensor(x, device=hidden_ND.device) for x in (predictors, row.targets))
    head_VD = model.get_output_embeddings().weight
    return token_logprobs(hidden_ND.index_select(0, predictors_M), head_VD, targets_M, temperature=temperature)


def _device(model: Any) -> torch.device:
    device: torch.device = next(model.parameters()).device
    return device
