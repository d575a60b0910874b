"""Logprobs of given tokens from hidden states, in chunks: the logits of a whole batch never exist at once.

The backward pass computes a chunk's logits again instead of keeping them. Logits are divided by the sampling
temperature before the softmax, so that both sides of every ratio mean the same distribution.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

CHUNK = 256


def token_logprobs(hidden_MD: Tensor, head_VD: Tensor, targets_M: Tensor, *, temperature: float = 1.0) -> Tensor:
    """[M] log-probability of each target in float32 (float64 for float64 input).

    Args:
        hidden_MD: last hidden state at the token before each target.
        head_VD: weights of the output layer.
        targets_M: token ids.
        temperature: of the sampling.

    Raises:
        ValueError: the temperature is not positive.
    """
    if temperature <= 0:
        raise ValueError(f"temperature is {temperature}: greedy sampling has no logprobs to train on")
    logprobs: Tensor = _TokenLogprobs.apply(hidden_MD, head_VD, targets_M, temperature)  # type: ignore[no-untyped-call]
    return logprobs


def _logits(hidden_CD: Tensor, head_VD: Tensor, temperature: float) -> Tensor:
    logits_CV = hidden_CD @ head_VD.T
    wide = logits_CV.to(torch.float64 if logits_CV.dtype == torch.float64 else torch.float32)
    return wide if temperature == 1.0 else wide.div_(temperature)


class _TokenLogprobs(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden_MD: Tensor, head_VD: Tensor, targets_M: Tensor, temperature: float) -> Tensor:
        parts, norms = [], []
        for hidden_CD, targets_C in zip(torch.split(hidden_MD, CHUNK), torch.split(targets_M, CHUNK), strict=True):
            logits_CV = _logits(hidden_CD, head_VD, temperature)
            norm_C = torch.logsumexp(logits_CV, dim=-1)
            parts.append(logits_CV.gather(1, targets_C[:, None])[:, 0] - norm_C)
            norms.append(norm_C)
        ctx.save_for_backward(hidden_MD, head_VD, targets_M, torch.cat(norms))
        ctx.temperature = temperature
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, grad_M: Tensor) -> tuple[Tensor, Tensor, None, None]:
        hidden_MD, head_VD, targets_M, norm_M = ctx.saved_tensors
        grad_hidden_MD, grad_head_VD = torch.empty_like(hidden_MD), None
        # In bf16 a sum over many chunks stops growing where a chunk's part is below its last digit.
        sum_dtype = torch.promote_types(head_VD.dtype, torch.float32)
        for start in range(0, len(targets_M), CHUNK):
            here = slice(start, start + CHUNK)
            # d logp_t / d logit_v = [v = t] - p_v, written over the logits: there is no larger tensor to copy.
            grad_CV = _logits(hidden_MD[here], head_VD, ctx.temperature).sub_(norm_M[here, None]).exp_().neg_()
            grad_CV[torch.arange(len(grad_CV)), targets_M[here]] += 1
            grad_CV = grad_CV.mul_(grad_M[here, None] / ctx.temperature).to(hidden_MD.dtype)
            grad_hidden_MD[here] = grad_CV @ head_VD
            part_VD = grad_CV.T @ hidden_MD[here]
            grad_head_VD = part_VD.to(sum_dtype) if grad_head_VD is None else grad_head_VD.add_(part_VD)
        assert grad_head_VD is not None
        return grad_hidden_MD, grad_head_VD.to(head_VD.dtype), None, None
