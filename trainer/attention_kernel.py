"""Causal and masked attention of a few short sequences, by whichever kernel is faster at that size.

On a CPU the fused kernel's backward is two to three times slower than plain matrix products while the scores are few
(measured at few-shot sizes); those scores are computed in float32, so that bf16 loses no more than in the fused one.
Many scores go to the fused kernel, which never holds them all. On a GPU the fused kernels that take a mask, or float32,
know nothing of shared key heads: torch would fall back to products without a word, so the heads are repeated for them.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

FEW_SCORES = 2**21
"""Score entries up to which plain products are taken: 8 MiB of float32 for each call and layer."""


def attend(q_SHTD: Tensor, k_SGKD: Tensor, v_SGKD: Tensor, *, mask: Tensor | None, scale: float | None) -> Tensor:
    """[S, H, T, D] attention of S sequences; H query heads share G key heads.

    Args:
        q_SHTD: queries of T tokens.
        k_SGKD: keys of K tokens.
        v_SGKD: values of K tokens.
        mask: [T, K] or [S, 1, T, K], True where a token attends; `None`: causal, T = K.
        scale: of the scores; `None`: 1 / sqrt(D).
    """
    sequences, heads, queries, width = q_SHTD.shape
    scores = sequences * heads * queries * k_SGKD.shape[2]
    if q_SHTD.device.type == "cpu" and scores <= FEW_SCORES:
        return _by_products(q_SHTD, k_SGKD, v_SGKD, mask, width**-0.5 if scale is None else scale)
    if repeats_heads(q_SHTD.device.type, q_SHTD.dtype, masked=mask is not None):
        shared = heads // k_SGKD.shape[1]
        k_SGKD, v_SGKD = (x_SGKD.repeat_interleave(shared, dim=1) for x_SGKD in (k_SGKD, v_SGKD))
    return scaled_dot_product_attention(
        q_SHTD,
        k_SGKD,
        v_SGKD,
        attn_mask=mask,
        is_causal=mask is None,
        scale=scale,
        enable_gqa=heads != k_SGKD.shape[1],
    )


def repeats_heads(device: str, dtype: torch.dtype, *, masked: bool) -> bool:
    """Whether key heads are repeated for the query heads that share them: no fused kernel would take them as they are.

    Source: torch's documentation of ``scaled_dot_product_attention``: of the fused kernels on CUDA, flash attention
    alone takes shared heads, and it takes no mask and no float32.
    """
    return device == "cuda" and (masked or dtype not in {torch.float16, torch.bfloat16})


def _by_products(q_SHTD: Tensor, k_SGKD: Tensor, v_SGKD: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    sequences, heads, queries, width = q_SHTD.shape
    groups = k_SGKD.shape[1]
    wide = torch.float64 if q_SHTD.dtype == torch.float64 else torch.float32
    if mask is None:
        mask = torch.ones(queries, queries, dtype=torch.bool, device=q_SHTD.device).tril()
    # Query heads that share a key head stand below one another, so that each product is one call for all of them.
    q_BQD = q_SHTD.reshape(sequences * groups, -1, width).to(wide) * scale
    k_BKD, v_BKD = k_SGKD.reshape(sequences * groups, -1, width), v_SGKD.reshape(sequences * groups, -1, width)
    scores_BQK = torch.bmm(q_BQD, k_BKD.to(wide).transpose(1, 2))
    scores_SHTK = scores_BQK.view(sequences, heads, queries, -1).masked_fill(~mask, -torch.inf)
    weights_BQK = scores_SHTK.softmax(dim=-1).view_as(scores_BQK).to(v_BKD.dtype)
    return torch.bmm(weights_BQK, v_BKD).view(sequences, heads, queries, width)
