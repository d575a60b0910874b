"""Algorithms by the names that the field knows: the loss, and what else of a learner's settings its paper sets.

A preset is where a run begins, not a lock: a setting given beside it stays. Learning rates and batch sizes are left
out, for they belong to a model. What a paper does not say, and what is not copied, is said here:

    grpo       2402.03300: advantages over the deviation, KL 0.04 in the loss; it names no clip, 0.2 is PPO's. The
               gradient of the KL is k2's (`trainer.kl`), where the paper differentiates k3.
    dapo       2503.14476: groups without variance are rejected for every loss here; its soft penalty on long replies is
               a reward, and not ours to add.
    dr_grpo    2503.20783: no deviation, no KL, one constant length: that of the longest reply the tasks allow.
    gspo       2507.18071.
    cispo      2506.13585: no lower bound; it tunes the upper one and names no figure: 0.28 is ours.
    tis        public note of F. Yao and others (2025), cap 2; it names no advantage, the default's is taken.
    decoupled  2110.00641 with 2505.24298's clip and the cap of its code; its advantages are PPO's over the whole batch,
               which are not offered: the default's are taken.
"""

from __future__ import annotations

from typing import Any

from envsdk.errors import UsageError
from envsdk.frozen import Frozen
from trainer.advantage import Estimator
from trainer.loss.config import Anchor, LossConfig


class Preset(Frozen):
    """What a name stands for. ``estimator``: of the batch's advantages; the others are a learner's settings."""

    loss: LossConfig
    estimator: Estimator
    anchor: Anchor = "engine"
    kl_coef: float = 0.0

    @property
    def settings(self) -> dict[str, Any]:
        """The same in the shape of a `trainer.learner_config.LearnerConfig`."""
        return {
            "loss": self.loss.model_dump(),
            "batch": {"estimator": self.estimator},
            "anchor": self.anchor,
            "kl_coef": self.kl_coef,
        }


PRESETS: dict[str, Preset] = {
    "grpo": Preset(loss=LossConfig(eps_high=0.2, agg="seq_mean_token_mean"), estimator="grpo", kl_coef=0.04),
    "dapo": Preset(loss=LossConfig(), estimator="grpo"),
    "dr_grpo": Preset(loss=LossConfig(eps_high=0.2, agg="seq_mean_token_sum_norm"), estimator="dr_grpo"),
    "gspo": Preset(
        loss=LossConfig(loss="gspo", eps_low=3e-4, eps_high=4e-4, agg="seq_mean_token_mean"), estimator="grpo"
    ),
    "cispo": Preset(loss=LossConfig(loss="cispo", eps_low=1.0, eps_high=0.28), estimator="grpo"),
    "tis": Preset(loss=LossConfig(loss="tis_pg", cap=2.0), estimator="dr_grpo"),
    "decoupled": Preset(
        loss=LossConfig(loss="decoupled_ppo", eps_high=0.2, rho_cap=5.0), estimator="dr_grpo", anchor="recomputed"
    ),
}


def preset(name: str) -> Preset:
    """The preset called ``name``.

    Raises:
        UsageError: code ``unknown_loss``.
    """
    if name not in PRESETS:
        raise UsageError(
            f"no loss preset {name!r}", code="unknown_loss", hint=f"one of {', '.join(sorted(PRESETS))}", where=name
        )
    return PRESETS[name]
