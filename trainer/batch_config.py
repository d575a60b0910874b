"""How rewards become advantages, and what happens to tokens that are too old: settings, as data."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from envsdk.frozen import Frozen
from trainer.advantage import Estimator

LagRule = Literal["mask", "drop_sample", "drop_group", "weight", "error"]


class BatchConfig(Frozen):
    """Settings of `trainer.batch`.

    Attributes:
        estimator: see `trainer.advantage`.
        lag_rule: at tokens over ``max_lag``: ``mask`` the token, ``drop_sample``, ``drop_group``, ``weight`` by
            gamma^lag and 0 beyond, or ``error``: stop the run.
        max_lag: hard bound in weight versions, of the oldest token; `None` for none.
        lag_gamma: factor per version of lag (``weight``).
    """

    estimator: Estimator = "dr_grpo"
    lag_rule: LagRule = "mask"
    max_lag: int | None = Field(default=4, ge=0)
    lag_gamma: float = Field(default=0.8, gt=0, le=1)
