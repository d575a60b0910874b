"""Which loss a run uses, as data.

A new mechanism is one file with one function of `LossInputs`, one member of `LossName` and one line in
`trainer.loss.policy`; names that the field knows are in `trainer.loss.preset`. Nothing here loads torch.
"""

from __future__ import annotations

from typing import Literal

from envsdk.frozen import Frozen

Aggregation = Literal["token_mean", "seq_mean_token_mean", "seq_mean_token_sum_norm"]
Anchor = Literal["engine", "recomputed"]
LossName = Literal["ppo_clip", "gspo", "cispo", "tis_pg", "decoupled_ppo"]


class LossConfig(Frozen):
    """A mechanism, its bounds and its aggregation; bounds that the mechanism does not have are not read.

    Attributes:
        eps_low, eps_high: the ratio may move in [1 - eps_low, 1 + eps_high].
        dual_clip: bound c on the loss of a token with A < 0, at most -c A; `None` for none.
        cap: truncation of the importance weight (``tis_pg``).
        rho_cap: truncation of the behaviour weight (``decoupled_ppo``); `None` for none.
        agg: how token losses become one number.
        length: the constant L of ``seq_mean_token_sum_norm``, in tokens; `None` for what the tasks allow an episode
            to generate, which `trainer.learner_config.LearnerConfig.for_replies` puts in.
        log_ratio_clamp: bound on |log ratio| before exp.
    """

    loss: LossName = "ppo_clip"
    eps_low: float = 0.2
    eps_high: float = 0.28
    dual_clip: float | None = None
    cap: float = 2.0
    rho_cap: float | None = None
    agg: Aggregation = "token_mean"
    length: float | None = None
    log_ratio_clamp: float = 20.0
