"""The learner's settings, as data: nothing here loads torch.

Combinations that are known to be wrong are refused when the settings are read, not found in a curve a day later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, Field, model_validator

from envsdk.frozen import Frozen
from trainer.batch_config import BatchConfig
from trainer.loss.config import Anchor, LossConfig
from trainer.loss.preset import preset

CorrectionRule = Literal[
    "none",
    "token_tis",
    "seq_tis",
    "token_mis",
    "seq_mis",
    "geo_reject",
    "geo_reject_token_tis",
    "veto",
    "k2_token",
    "k2_seq_mean",
    "k2_seq_max",
]
_REJECTS_ONLY = {"none", "geo_reject", "veto", "k2_token", "k2_seq_mean", "k2_seq_max"}


class CorrectionConfig(Frozen):
    """What is done about the difference between trainer and engine logprobs; see `trainer.correction`.

    Attributes:
        rule: one of `trainer.correction.rule`.
        cap: truncation of a weight. ``lo``, ``hi``: bounds of a kept ratio. ``k2_max``: bound of the k2 rules.
    """

    rule: CorrectionRule = "none"
    cap: float = Field(default=2.0, gt=0)
    lo: float | None = 0.5
    hi: float | None = 5.0
    k2_max: float = Field(default=0.5, gt=0)

    def options(self) -> dict[str, float | None]:
        """The keywords that `rule` takes."""
        match self.rule:
            case "none":
                return {}
            case "token_tis" | "seq_tis":
                return {"cap": self.cap}
            case "geo_reject_token_tis":
                return {"lo": self.lo, "hi": self.hi, "cap": self.cap}
            case "token_mis" | "seq_mis" | "geo_reject" | "veto":
                return {"lo": self.lo, "hi": self.hi}
            case "k2_token" | "k2_seq_mean" | "k2_seq_max":
                return {"max": self.k2_max}


class LearnerConfig(Frozen):
    """One learner.

    Attributes:
        lr: learning rate after ``warmup_steps`` steps of linear rise; then constant, or falling to 0 at
            ``total_steps``.
        grad_clip: largest norm of the whole gradient.
        loss: a mechanism with its bounds, or a name of `trainer.loss.preset`, which sets more than the loss.
        precision: of forward and backward; master weights and optimizer are float32 in any case.
        anchor: what the loss's ratio is taken against: the ``engine``'s logprobs, so that lag and mismatch are inside
            the trust region, or the policy at the start of the update, ``recomputed`` (the ratio is then 1, and a
            correction carries all that differs).
        batch: advantages and the lag rule.
        kl_coef: weight of the KL to the initial model; 0 keeps no copy of it.
        token_budget: tokens computed at once; memory grows with it, results do not change.
        max_skipped: updates in a row that a non-finite gradient may cost before the run stops.
        deterministic: only deterministic kernels; on the CPU bit for bit the same at the same number of threads.
        threads: of torch; 0 leaves torch's own choice.
        device: ``cpu``, ``cuda`` or ``cuda:N``; ``auto`` is the first GPU where there is one.
        seed: of torch; `None` for the run's, or 0 without a run.
    """

    lr: float = Field(default=1e-5, gt=0)
    warmup_steps: int = Field(default=0, ge=0)
    decay: Literal["constant", "linear", "cosine"] = "constant"
    total_steps: int = Field(default=0, ge=0)
    beta1: float = Field(default=0.9, ge=0, lt=1)
    beta2: float = Field(default=0.999, ge=0, lt=1)
    weight_decay: float = Field(default=0.0, ge=0)
    grad_clip: float = Field(default=1.0, gt=0)
    precision: Literal["bf16", "fp32"] = "bf16"
    loss: LossConfig = LossConfig()
    anchor: Anchor = "engine"
    correction: CorrectionConfig = CorrectionConfig()
    batch: BatchConfig = BatchConfig()
    kl_coef: float = Field(default=0.0, ge=0)
    temperature: float = Field(default=1.0, gt=0)
    token_budget: int = Field(default=4096, ge=1)
    max_skipped: int = Field(default=3, ge=1)
    deterministic: bool = False
    threads: int = Field(default=0, ge=0)
    device: str = Field(default="auto", pattern=r"^(auto|cpu|cuda(:[0-9]+)?)$")
    seed: int | None = None

    @model_validator(mode="before")
    @classmethod
    def _preset_by_name(cls, given: Any) -> Any:
        if not isinstance(given, Mapping) or not isinstance(name := given.get("loss"), str):
            return given
        return _over(preset(name).settings, {key: value for key, value in given.items() if key != "loss"})

    def for_replies(self, tokens: int) -> LearnerConfig:
        """The same for episodes that generate at most ``tokens`` tokens, where the loss divides by a length."""
        if self.loss.agg != "seq_mean_token_sum_norm" or self.loss.length is not None:
            return self
        return self.model_copy(update={"loss": self.loss.model_copy(update={"length": float(tokens)})})

    @model_validator(mode="after")
    def _parts_fit(self) -> LearnerConfig:
        if self.anchor == "engine" and self.loss.loss == "decoupled_ppo":
            raise ValueError(
                "decoupled_ppo needs a policy between the engine's and the current one, and anchor 'engine' makes both "
                "one, which is ppo_clip: take anchor 'recomputed', or loss ppo_clip"
            )
        if self.anchor == "engine" and self.correction.rule not in _REJECTS_ONLY:
            raise ValueError(
                f"anchor 'engine' has the engine's ratio inside the loss: {self.correction.rule} would apply it twice; "
                "take anchor 'recomputed', or a rule that only rejects"
            )
        if self.loss.loss in {"tis_pg", "decoupled_ppo"} and self.correction.rule not in _REJECTS_ONLY:
            raise ValueError(f"{self.loss.loss} weighs by the engine's ratio itself: {self.correction.rule} doubles it")
        if self.decay != "constant" and self.total_steps <= self.warmup_steps:
            raise ValueError(f"decay {self.decay!r} needs total_steps above warmup_steps ({self.warmup_steps})")
        return self


def _over(below: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """``given`` over ``below``, table by table; of a record, the fields that somebody set."""
    merged = dict(below)
    for key, value in given.items():
        inner = value.model_dump(exclude_unset=True) if isinstance(value, BaseModel) else value
        merged[key] = _over(below[key], inner) if isinstance(inner, Mapping) and key in below else value
    return merged
