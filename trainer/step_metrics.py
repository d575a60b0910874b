"""What one update did, as numbers: loss, gradient, divergence split into mismatch and lag, shares clipped and rejected.

Mismatch is over tokens of the learner's own version (numerics alone), lag over the rest; both on raw ratios, before any
cap or rejection. Where generation always runs one version ahead no batch has a token of the first kind: the probe's
reading beside it (`trainer.probe`) never lacks. Names follow the field's where it has one. A metric that has nothing to
measure is left out, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import torch
from torch import Tensor

from trainer.batch import BatchReport
from trainer.correction.drift import drift
from trainer.mismatch import divergence
from trainer.token_table import TokenTable


@dataclass(frozen=True, slots=True)
class Update:
    """What happened to the weights. ``updated`` is False for an empty batch and for a non-finite gradient.

    ``shares``: of what was clipped, capped and rejected, by the names of `trainer.tally`.
    """

    updated: bool
    loss: float
    kl_loss: float
    grad_norm: float
    lr: float
    skipped_in_a_row: int
    shares: Mapping[str, float]
    micro_batches: int
    computed_tokens: int
    plain_tokens: int
    forward_backward_s: float
    optimizer_s: float


def step_metrics(update: Update, table: TokenTable | None, logp_BT: Tensor | None) -> dict[str, float]:
    """One flat row of finite numbers; booleans are 0 or 1.

    Args:
        update: of the step.
        table: of the whole batch, `None` for an empty one.
        logp_BT: the policy's logprobs before the update, laid out as ``table``.
    """
    row = asdict(update)
    shares = row.pop("shares")
    out = {name: float(value) for name, value in row.items()} | shares
    if table is None or logp_BT is None:
        return _finite({**out, "n_tok": 0.0, "n_seq": 0.0})
    n_tok, n_seq = int(table.mask_BT.sum()), int(table.mask_BT.any(dim=-1).sum())
    out |= {"n_tok": float(n_tok), "n_seq": float(n_seq)}
    # The entropy of the policy, from the tokens that were sampled: unbiased where they are its own.
    out["entropy"] = float(-logp_BT[table.mask_BT].mean())
    out["shared_prefix_gain"] = update.plain_tokens / max(update.computed_tokens, 1)
    for name, mask_BT in (
        ("all", table.mask_BT),
        ("mismatch", table.mask_BT & (table.lag_BT == 0)),
        ("lag", table.mask_BT & (table.lag_BT > 0)),
    ):
        found = divergence(drift(logp_BT, table.engine_BT, mask_BT))
        out |= {f"{name}/{key}": value for key, value in found.items()}
    return _finite(out)


def composition_metrics(report: BatchReport) -> dict[str, float]:
    """What the batch was made of: groups given and trained, coverage, age, and what was excluded by cause (law 11)."""
    out = {
        "groups": float(len(report.fates)),
        "groups_trained": float(sum(fate.reason is None for fate in report.fates)),
        "coverage": report.coverage,
        "frac_lag_masked": report.frac_lag_masked,
        "mean_tokens": report.mean_tokens,
        **{f"excluded/{cause}": float(count) for cause, count in report.excluded.items()},
    }
    return out if report.oldest_lag is None else {**out, "oldest_lag": float(report.oldest_lag)}


def _finite(row: dict[str, float]) -> dict[str, float]:
    values = torch.tensor(list(row.values()), dtype=torch.float64)
    return {name: value for (name, value), fine in zip(row.items(), values.isfinite().tolist(), strict=True) if fine}
