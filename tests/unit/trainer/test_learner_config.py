"""The learner's settings: every combination is either one that the rules can run, or refused when it is read."""

from __future__ import annotations

import inspect
import itertools
import typing

import pytest
import torch
from pydantic import ValidationError

from envsdk.errors import UsageError
from trainer.batch_config import BatchConfig
from trainer.config import flatten
from trainer.correction.drift import drift
from trainer.correction.rule import DRIFT_RULES
from trainer.learner_config import Anchor, CorrectionConfig, CorrectionRule, LearnerConfig
from trainer.loss.aggregate import count_denominators
from trainer.loss.config import LossConfig, LossName
from trainer.loss.policy import policy_loss
from trainer.loss.preset import PRESETS
from trainer.loss.term import LossInputs

RULES = typing.get_args(CorrectionRule)
ANCHORS = typing.get_args(Anchor)
LOSSES = typing.get_args(LossName)

_DRIFT = drift(torch.tensor([[-0.5, -1.0]]), torch.tensor([[-1.0, -0.2]]), torch.tensor([[True, True]]))


def only_rejects(rule: str) -> bool:
    """Told by what the rule does, not by its name: every weight it gives is 0 or 1."""
    if rule == "none":
        return True
    weights = DRIFT_RULES[rule](_DRIFT, **CorrectionConfig(rule=rule, lo=None, hi=None).options()).weight_BT
    return bool(((weights == 0) | (weights == 1)).all())


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule != "none"])
def test_the_options_of_a_rule_are_the_keywords_that_it_takes(rule: str) -> None:
    options = CorrectionConfig(rule=rule).options()  # type: ignore[arg-type]
    keywords = {
        name: parameter
        for name, parameter in inspect.signature(DRIFT_RULES[rule]).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }
    required = {name for name, parameter in keywords.items() if parameter.default is parameter.empty}
    assert required <= options.keys() <= keywords.keys()


def test_no_rule_has_no_options() -> None:
    assert CorrectionConfig().options() == {}


@pytest.mark.parametrize(("anchor", "rule", "loss"), [*itertools.product(ANCHORS, RULES, LOSSES)])
def test_the_engines_ratio_is_applied_at_most_once(anchor: str, rule: str, loss: str) -> None:
    settings = {"anchor": anchor, "correction": {"rule": rule}, "loss": {"loss": loss}}
    applied = [anchor == "engine", not only_rejects(rule)]
    by_the_loss = loss in {"tis_pg", "decoupled_ppo"} and not only_rejects(rule)
    without_a_proximal_policy = loss == "decoupled_ppo" and anchor == "engine"
    if all(applied) or by_the_loss or without_a_proximal_policy:
        with pytest.raises(ValidationError, match=r"twice|doubles|makes both one"):
            LearnerConfig.model_validate(settings)
    else:
        assert LearnerConfig.model_validate(settings).correction.rule == rule


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_preset_can_be_named_and_gives_a_finite_loss(name: str) -> None:
    config = LearnerConfig.model_validate({"loss": name}).for_replies(512)
    logp_BT = torch.tensor([[-1.0, -2.0, -0.5]], requires_grad=True)
    mask_BT = torch.tensor([[True, False, True]])
    inputs = LossInputs.of(
        logp_BT=logp_BT, logp_old_BT=logp_BT, logp_mu_BT=logp_BT, mask_BT=mask_BT, advantage=torch.tensor([1.0])
    )
    loss = policy_loss(inputs, config.loss, count_denominators(mask_BT, length=config.loss.length)).loss
    assert loss.isfinite()


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        # What each paper sets, from the papers and not from the table.
        ("grpo", {"batch.estimator": "grpo", "kl_coef": 0.04, "loss.agg": "seq_mean_token_mean", "loss.eps_high": 0.2}),
        ("dapo", {"batch.estimator": "grpo", "kl_coef": 0.0, "loss.agg": "token_mean", "loss.eps_high": 0.28}),
        ("dr_grpo", {"batch.estimator": "dr_grpo", "kl_coef": 0.0, "loss.agg": "seq_mean_token_sum_norm"}),
        ("gspo", {"batch.estimator": "grpo", "loss.loss": "gspo", "loss.eps_low": 3e-4, "loss.eps_high": 4e-4}),
        ("cispo", {"batch.estimator": "grpo", "loss.loss": "cispo", "loss.eps_low": 1.0, "loss.agg": "token_mean"}),
        ("decoupled", {"anchor": "recomputed", "loss.loss": "decoupled_ppo"}),
    ],
)
def test_a_preset_sets_all_that_its_paper_does(name: str, settings: dict[str, object]) -> None:
    found = flatten(LearnerConfig.model_validate({"loss": name}).model_dump())
    assert {key: found[key] for key in settings} == settings


def test_what_is_set_beside_a_preset_stays() -> None:
    beside = {"loss": "grpo", "kl_coef": 0.0, "batch": BatchConfig(max_lag=2)}
    config = LearnerConfig.model_validate(beside)
    assert (config.kl_coef, config.batch.max_lag, config.batch.estimator) == (0.0, 2, "grpo")


@pytest.mark.parametrize("given", [None, 33.0])
def test_a_length_that_nobody_set_is_that_of_the_longest_replies(given: float | None) -> None:
    config = LearnerConfig(loss=LossConfig(agg="seq_mean_token_sum_norm", length=given))
    assert config.for_replies(2048).loss.length == (given or 2048.0)
    assert LearnerConfig().for_replies(2048) == LearnerConfig()


def test_an_unknown_preset_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match="ppo3000") as caught:
        LearnerConfig.model_validate({"loss": "ppo3000"})
    assert caught.value.code == "unknown_loss"
    assert "dapo" in caught.value.hint


@pytest.mark.parametrize("decay", ["linear", "cosine"])
@pytest.mark.parametrize(("warmup", "total", "good"), [(0, 1, True), (3, 4, True), (3, 3, False), (0, 0, False)])
def test_a_decay_needs_steps_to_decay_over(decay: str, warmup: int, total: int, good: bool) -> None:
    settings = {"decay": decay, "warmup_steps": warmup, "total_steps": total}
    if good:
        assert LearnerConfig.model_validate(settings).total_steps == total
    else:
        with pytest.raises(ValidationError, match="total_steps"):
            LearnerConfig.model_validate(settings)


@pytest.mark.parametrize(
    ("field", "value"),
    [("lr", 0), ("grad_clip", 0), ("kl_coef", -1), ("temperature", 0), ("token_budget", 0), ("beta2", 1.0)],
)
def test_a_value_that_no_update_could_use_is_refused(field: str, value: float) -> None:
    with pytest.raises(ValidationError, match=field):
        LearnerConfig.model_validate({field: value})


def test_settings_survive_their_own_json() -> None:
    config = LearnerConfig(loss=LossConfig(loss="cispo", eps_low=1.0), anchor="recomputed")
    assert LearnerConfig.model_validate_json(config.model_dump_json()) == config
