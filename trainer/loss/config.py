"""Which loss a run uses, as data, and the presets the field knows by name.

A new mechanism is one file with one function of `LossInputs`, one member of `LossName` and one line in
`trainer.loss.policy`; a new preset is one line here. Nothing here loads torch.
"""

from __future__ import annotations

from typing import Literal

from envsdk.errors import UsageError
from envsdk.frozen import Frozen

Aggregation = Literal["token_mean", "seq_mean_token_mean", "seq_mean_token_sum_norm"]
LossName = Literal["ppo_clip", "gspo", "cispo", "tis_pg", "decoupled_ppo"]


class LossConfig(Frozen):
    """A mechanism, its bounds and its aggregation; bounds that the mechanism does not have are not read.

    Attributes:
        eps_low, eps_high: the ratio may move in [1 - eps_low, 1 + eps_high].
        dual_clip: bound c on the loss of a token with A < 0, at most -c A; `None` for none.
        cap: truncation of the importance weight (``tis_pg``).
        rho_cap: truncation of the behaviour weight (``decoupled_ppo``); `None` for none.
        agg: how token losses become one number.
        length: the constant L of ``seq_mean_token_sum_norm``, in tokens.
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


PRESETS: dict[str, LossConfig] = {
    "grpo": LossConfig(eps_high=0.2, agg="seq_mean_token_mean"),
    "dapo": LossConfig(),
    "dr_grpo": LossConfig(eps_high=0.2, agg="seq_mean_token_sum_norm", length=512.0),
    "gspo": LossConfig(loss="gspo", eps_low=3e-4, eps_high=4e-4, agg="seq_mean_token_mean"),
    "cispo": LossConfig(loss="cispo", eps_low=1.0, eps_high=0.28),
    "tis": LossConfig(loss="tis_pg", cap=2.0),
    "decoupled": LossConfig(loss="decoupled_ppo", eps_high=0.2, rho_cap=5.0),
}


def preset(name: str) -> LossConfig:
    """The preset called ``name``.

    Raises:
        UsageError: code ``unknown_loss``.
    """
    if name not in PRESETS:
        raise UsageError(
            f"no loss preset {name!r}", code="unknown_loss", hint=f"one of {', '.join(sorted(PRESETS))}", where=name
        )
    return PRESETS[name]
