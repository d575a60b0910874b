"""How far the trainer's probabilities are from the engine's: estimators of divergence, on raw ratios.

Raw means before any cap or rejection: a metric taken after truncation hides what it should show. Reported over the
probe's tokens after each publication (mismatch: numerics alone, `trainer.probe`), and by the learner over the batch's
tokens of its own version (the same), of older ones (lag), and all.
Legend: d = log pi_trainer - log mu_engine, w = e^d over N trainable tokens, W = exp(sum of d) over M rows that have
any.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import torch
from torch import Tensor

from trainer.correction.drift import Drift


@dataclass(frozen=True, slots=True)
class MismatchMetrics:
    """Divergence of one batch; every value but the counts is `None` where there is no trainable token.

    Source: k1 and k3 after J. Schulman's note (2020), samples from the engine; chi2 and ESS are standard.
    ``ppl_ratio``: mean over rows of the perplexity of trainer over engine; ``ppl_ratio_geo`` its geometric twin.
    """

    n_tok: int
    n_seq: int
    k1: float | None = None
    k3: float | None = None
    chi2_token: float | None = None
    chi2_seq: float | None = None
    ess_token: float | None = None
    ess_seq: float | None = None
    ess_token_capped: float | None = None
    ppl_ratio: float | None = None
    ppl_ratio_geo: float | None = None
    max_ratio: float | None = None
    min_ratio: float | None = None
    frac_above_cap: float | None = None
    frac_outside: float | None = None
    token_mult_prob_error: float | None = None


def mismatch_metrics(drift: Drift, *, cap: float, lo: float, hi: float) -> MismatchMetrics:
    """Metrics of one batch; ``cap``, ``lo`` and ``hi`` are the bounds whose crossings are counted."""
    rows_B = drift.mask_BT.any(dim=-1)
    d_N = drift.d_BT[drift.mask_BT]
    n_tok, n_seq = d_N.numel(), int(rows_B.sum())
    if n_tok == 0:
        return MismatchMetrics(0, 0)
    w_N = drift.ratio_BT[drift.mask_BT]
    product_M = drift.product_B1[rows_B]
    mean_d_M = drift.d_BT[rows_B].sum(dim=-1) / drift.tokens_B1[rows_B].squeeze(-1)
    return MismatchMetrics(
        n_tok=n_tok,
        n_seq=n_seq,
        k1=_mean(-d_N),
        k3=_mean(torch.expm1(d_N) - d_N),
        chi2_token=_mean(w_N.square()) - 1,
        chi2_seq=_mean(product_M.square()) - 1,
        ess_token=_ess(w_N),
        ess_seq=_ess(product_M),
        ess_token_capped=_ess(w_N.clamp(max=cap)),
        ppl_ratio=_mean((-mean_d_M).exp()),
        ppl_ratio_geo=float((-mean_d_M).mean().exp()),
        max_ratio=float(w_N.max()),
        min_ratio=float(w_N.min()),
        frac_above_cap=_mean((w_N > cap).to(w_N.dtype)),
        frac_outside=_mean(((w_N < lo) | (w_N > hi)).to(w_N.dtype)),
        token_mult_prob_error=_mean(d_N.abs().exp()),
    )


def ratio_quantiles(drift: Drift, at: tuple[float, ...] = (0.01, 0.5, 0.99)) -> dict[float, float]:
    """Quantiles of the ratio e^d over trainable tokens; empty for an empty batch."""
    w_N = drift.ratio_BT[drift.mask_BT]
    if w_N.numel() == 0:
        return {}
    return {q: float(torch.quantile(w_N, q)) for q in at}


CAP, LOW, HIGH = 2.0, 0.5, 5.0
"""The bounds whose crossings are counted in every report."""


def divergence(drift: Drift) -> dict[str, float]:
    """All of it in one flat row, for a report; what has nothing to measure is left out."""
    metrics: dict[str, float | None] = dict(asdict(mismatch_metrics(drift, cap=CAP, lo=LOW, hi=HIGH)))
    metrics |= {f"ratio_q{round(100 * q):02d}": value for q, value in ratio_quantiles(drift).items()}
    d_N = drift.d_BT[drift.mask_BT]
    if d_N.numel():
        metrics |= {"logprob_diff_mean": float(d_N.abs().mean()), "logprob_diff_max": float(d_N.abs().max())}
    return {key: float(value) for key, value in metrics.items() if value is not None}


def _mean(values: Tensor) -> float:
    return float(values.mean())


def _ess(weights: Tensor) -> float:
    # The scale cancels; dividing by the largest keeps the squares finite in float32.
    scaled = weights / weights.max()
    return float(scaled.sum().square() / (weights.numel() * scaled.square().sum()))
