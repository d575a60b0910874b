"""KL to a reference policy: estimators per token, differentiable, and the exact divergence of two distributions.

Promises: masked tokens are 0 in value and gradient whatever stands there (law 4); k3 keeps its digits near 0; every
clamp's derivative is 0 where it is active. Legend: l = logp - logp_ref at trained tokens.
Source: J. Schulman's note on approximating KL (2020); the weighted forms follow arXiv 2512.02556.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from trainer.loss.aggregate import Denominators, aggregate
from trainer.loss.config import Aggregation
from trainer.loss.ratio import at_trained, log_ratio

KlKind = Literal["k1", "k2", "k3", "k3_value_k2_grad", "k3_weighted", "k3_weighted_detached"]
KL_KINDS: tuple[KlKind, ...] = get_args(KlKind)


@dataclass(frozen=True, slots=True)
class KlClamps:
    """Bound on |log ratio| before exp, and on |k3| after; `None` for none. The project's own choice is 20 and 10."""

    before: float | None = 20.0
    after: float | None = 10.0


def kl_per_token(
    kind: KlKind,
    logp_BT: Tensor,
    logp_ref_BT: Tensor,
    mask_BT: Tensor,
    *,
    clamps: KlClamps = KlClamps(),
    logp_old_BT: Tensor | None = None,
) -> Tensor:
    """[B, T] the estimator's value at trained tokens, 0 elsewhere.

    ``k1`` l; ``k2`` l^2 / 2; ``k3`` e^-l + l - 1; ``k3_value_k2_grad``: value of k3, gradient of k2;
    ``k3_weighted``: r k3 with r = exp(logp - logp_old) differentiated too; ``k3_weighted_detached``: sg(r) k3.

    Raises:
        ValueError: a weighted kind without ``logp_old_BT``; an unknown kind.
    """
    mask_BT = mask_BT.bool()
    l_BT = log_ratio(logp_BT, logp_ref_BT.detach(), mask_BT, clamp=clamps.before)
    match kind:
        case "k1":
            return l_BT
        case "k2":
            return l_BT.square() / 2
        case "k3":
            return _k3(l_BT, clamps)
        case "k3_value_k2_grad":
            k2_BT = l_BT.square() / 2
            return k2_BT - k2_BT.detach() + _k3(l_BT, clamps).detach()
        case "k3_weighted" | "k3_weighted_detached":
            if logp_old_BT is None:
                raise ValueError(f"{kind} needs the behaviour's logprobs")
            r_BT = log_ratio(logp_BT, logp_old_BT.detach(), mask_BT, clamp=clamps.before).exp()
            return (r_BT if kind == "k3_weighted" else r_BT.detach()) * _k3(l_BT, clamps)
    raise ValueError(f"unknown KL estimator {kind!r}: one of {', '.join(KL_KINDS)}")


def _k3(l_BT: Tensor, clamps: KlClamps) -> Tensor:
    value_BT: Tensor = _K3.apply(l_BT)  # type: ignore[no-untyped-call]
    return value_BT if clamps.after is None else value_BT.clamp(-clamps.after, clamps.after)


class _K3(torch.autograd.Function):
    """e^-l + l - 1 through expm1, and its derivative 1 - e^-l the same way: autograd's own loses the digits near 0."""

    @staticmethod
    def forward(ctx, l_BT: Tensor) -> Tensor:  # type: ignore[no-untyped-def]  # noqa: ANN001
        ctx.save_for_backward(l_BT)
        return torch.expm1(-l_BT) + l_BT

    @staticmethod
    def backward(ctx, grad_BT: Tensor) -> Tensor:  # type: ignore[no-untyped-def]  # noqa: ANN001
        (l_BT,) = ctx.saved_tensors
        return -torch.expm1(-l_BT) * grad_BT


def kl_loss(value_BT: Tensor, mask_BT: Tensor, *, coef: float, how: Aggregation, denominators: Denominators) -> Tensor:
    """``coef`` times this share's part of the global batch's mean, a mean of the loss's kind; 0 for an empty batch.

    Source: arXiv 2402.03300 has the KL inside the loss's own means.
    """
    mask_BT = mask_BT.bool()
    return coef * aggregate(at_trained(value_BT, mask_BT), mask_BT, how, denominators)


def exact_kl(probs_V: Tensor, probs_ref_V: Tensor) -> Tensor:
    """Sum p log(p / q) over V tokens; a token with p = 0 adds nothing. Differentiable where p > 0."""
    here_V = probs_V > 0
    one = torch.ones((), dtype=probs_V.dtype)
    log_ratio_V = torch.where(here_V, probs_V, one).log() - torch.where(here_V, probs_ref_V, one).log()
    return (probs_V * log_ratio_V).sum()
