"""One update: independent of its cutting, safe from what is not finite, honest about what it did."""

from __future__ import annotations

import math
import os

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from envsdk.errors import EnvsdkError, UsageError
from tests.fakes.episode_records import make_record, tiny_llama, updated
from tests.fakes.episodes import make_draw, make_group
from trainer import learner as learner_module
from trainer.batch import Batch, build_batch
from trainer.group import CompleteGroup, EndedMember
from trainer.learner import Learner
from trainer.learner_config import CorrectionConfig, LearnerConfig
from trainer.loss.config import LossConfig
from trainer.loss.preset import PRESETS


def a_batch(*, version: int = 1, groups: int = 3, logprob: float = -4.0) -> Batch:
    records = [
        [
            make_record(
                reward=float(i % 2),
                own=[4 + i, 5, 6 + g, 7][: 2 + i % 3],
                group=str(g),
                index=i,
                version=i % 2,
                logprob=logprob,
            )
            for i in range(4)
        ]
        for g in range(groups)
    ]
    return build_batch(records, trainer_version=version)


def learner(**settings: object) -> Learner:
    return Learner(
        None, LearnerConfig.model_validate({"precision": "fp32", "lr": 1e-2, **settings}), model=tiny_llama()
    )


def weights_after(one: Learner, batch: Batch) -> dict[str, torch.Tensor]:
    updated(one, batch)
    return {name: weight.detach().clone() for name, weight in one.weights.masters.items()}


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_preset_makes_an_update_with_finite_metrics(name: str) -> None:
    one = Learner(
        None,
        LearnerConfig.model_validate({"precision": "fp32", "lr": 1e-2, "loss": name}).for_replies(16),
        model=tiny_llama(),
    )
    metrics = updated(one, a_batch())
    assert metrics["updated"] == 1.0
    assert metrics["grad_norm"] > 0
    assert all(math.isfinite(value) for value in metrics.values())


@settings(max_examples=6, deadline=None)
@given(budget=st.integers(1, 60), agg=st.sampled_from(["token_mean", "seq_mean_token_mean", "seq_mean_token_sum_norm"]))
def test_the_cutting_into_micro_batches_changes_no_gradient(budget: int, agg: str) -> None:
    norms = []
    for token_budget in (10_000, budget):
        one = learner(token_budget=token_budget, loss=LossConfig(agg=agg, length=16.0), anchor="recomputed")
        norms.append(updated(one, a_batch())["grad_norm"])
    assert norms[0] == pytest.approx(norms[1], rel=1e-4)


def test_an_excluded_episode_changes_nothing() -> None:
    given_records = [[make_record(reward=float(i % 2), own=[4 + i, 5], index=i) for i in range(4)]]
    with_failure = [[*given_records[0], make_record(reward=None, index=4, in_gradient=False, in_baseline=False)]]
    plain = weights_after(learner(), build_batch(given_records, trainer_version=0))
    other = weights_after(learner(), build_batch(with_failure, trainer_version=0))
    assert all(torch.equal(plain[name], other[name]) for name in plain)


def test_a_better_reply_becomes_more_likely_and_a_worse_one_less() -> None:
    one = learner(lr=1e-3)
    records = [make_record(reward=1.0, own=[10, 11], index=0), make_record(reward=0.0, own=[20, 21], index=1)]
    before = one.logprobs([[1, 2, 3, 10, 11], [1, 2, 3, 20, 21]])
    updated(one, build_batch([records], trainer_version=0, config=one.config.batch))
    after = one.logprobs([[1, 2, 3, 10, 11], [1, 2, 3, 20, 21]])
    assert sum(after[0][2:]) > sum(before[0][2:])
    assert sum(after[1][2:]) < sum(before[1][2:])


def test_an_empty_batch_changes_nothing_and_says_so() -> None:
    one = learner()
    before = {name: weight.detach().clone() for name, weight in one.weights.masters.items()}
    metrics = updated(one, build_batch([[make_record(reward=1.0), make_record(reward=1.0)]], trainer_version=0))
    assert metrics["updated"] == 0.0
    assert one.updates == 0
    assert all(torch.equal(before[name], weight) for name, weight in one.weights.masters.items())


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_non_finite_gradient_never_moves_the_weights_and_stops_the_run_after_a_few(precision: str) -> None:
    one = learner(max_skipped=2, precision=precision)
    with torch.no_grad():
        one.weights.masters["model.norm.weight"][0] = float("inf")
    one.weights.to_model()
    before = {name: weight.detach().clone() for name, weight in one.weights.masters.items()}
    metrics = updated(one, a_batch())
    assert (metrics["updated"], metrics["skipped_in_a_row"]) == (0.0, 1.0)
    assert "loss" not in metrics
    with pytest.raises(EnvsdkError) as caught:
        updated(one, a_batch())
    assert caught.value.code == "non_finite_gradient"
    assert all(torch.equal(before[name], weight) for name, weight in one.weights.masters.items())


def test_the_metrics_say_what_the_batch_was_made_of() -> None:
    records = [
        [make_record(reward=float(i % 2), own=[4 + i, 5], index=i) for i in range(4)],
        [make_record(reward=1.0), make_record(reward=1.0)],
        [make_record(reward=None, in_gradient=False, in_baseline=False, cause="host_lost")],
    ]
    metrics = updated(learner(), build_batch(records, trainer_version=0))
    assert (metrics["groups"], metrics["groups_trained"], metrics["excluded/host_lost"]) == (3, 1, 1)
    assert metrics["coverage"] == pytest.approx(6 / 7)


def test_a_good_update_ends_a_row_of_skipped_ones() -> None:
    one = learner()
    one.skipped_in_a_row = 2
    assert updated(one, a_batch())["skipped_in_a_row"] == 0.0


def test_a_bound_on_sequences_is_shared_over_sequences() -> None:
    # Engine logprobs far from the learner's: every sequence is beyond a bound of GSPO's, whatever its length.
    settings = {"loss": {"loss": "gspo", "eps_low": 0.1, "eps_high": 0.1, "agg": "seq_mean_token_mean"}}
    metrics = updated(learner(**settings), a_batch(logprob=-9.0))
    assert metrics["frac_clip_low"] + metrics["frac_clip_high"] == pytest.approx(0.5)  # half have A > 0


def test_a_cap_on_sequences_is_shared_over_sequences_however_they_are_cut() -> None:
    settings = {"anchor": "recomputed", "correction": {"rule": "seq_tis", "cap": 1.5}}
    for budget in (10_000, 1):
        metrics = updated(learner(**settings, token_budget=budget), a_batch(logprob=-9.0))
        assert metrics["frac_corrected"] == 1.0


def test_what_was_clipped_is_split_by_lag() -> None:
    metrics = updated(learner(), a_batch())
    n, young, old = metrics["n_tok"], metrics["mismatch/n_tok"], metrics["lag/n_tok"]
    for name in ("frac_clip_low", "frac_clip_high", "frac_rejected"):
        whole = metrics[f"mismatch/{name}"] * young + metrics[f"lag/{name}"] * old
        assert metrics[name] * n == pytest.approx(whole)


def test_divergence_is_split_by_the_version_of_the_tokens() -> None:
    metrics = updated(learner(), a_batch(version=1))
    assert metrics["mismatch/n_tok"] + metrics["lag/n_tok"] == metrics["n_tok"] == metrics["all/n_tok"]
    assert metrics["mismatch/n_tok"] > 0
    assert metrics["lag/k3"] > 0


def test_engine_logprobs_that_equal_the_learners_have_no_divergence() -> None:
    one = learner()
    records = [make_record(reward=1.0, own=[10, 11], index=0), make_record(reward=0.0, own=[20, 21], index=1)]
    exact = [sequence[2:] for sequence in one.logprobs([[1, 2, 3, 10, 11], [1, 2, 3, 20, 21]])]
    traced = [
        record.model_copy(update={"tokens": record.tokens.model_copy(update={"logprobs": (0.0, 0.0, 0.0, *own)})})
        for record, own in zip(records, exact, strict=True)
    ]
    metrics = updated(one, build_batch([traced], trainer_version=0))
    assert metrics["mismatch/k3"] == pytest.approx(0, abs=1e-8)
    assert metrics["mismatch/ess_token"] == pytest.approx(1)
    assert metrics["frac_clip_low"] == metrics["frac_clip_high"] == 0


def test_a_rejected_token_keeps_its_place_in_the_denominator() -> None:
    batch = a_batch(version=9)
    assert batch.report.frac_lag_masked == 1.0
    metrics = updated(learner(), batch)
    assert metrics["n_tok"] == batch.n_tok > 0
    assert metrics["frac_rejected"] == 1.0
    assert metrics["grad_norm"] == 0.0


def test_bf16_publishes_the_rounded_masters_and_computes_with_them() -> None:
    one = learner(precision="bf16")
    updated(one, a_batch())
    published = dict(one.named_weights())
    for name, weight in one.weights.masters.items():
        assert weight.dtype == torch.float32
        assert torch.equal(published[name], weight.to(torch.bfloat16))
    assert "lm_head.weight" not in published


def test_bf16_and_fp32_gradients_agree_to_bf16_precision() -> None:
    exact, rounded = (updated(learner(precision=p), a_batch())["grad_norm"] for p in ("fp32", "bf16"))
    assert rounded == pytest.approx(exact, rel=0.05)


def test_masters_move_where_bf16_weights_would_stand_still() -> None:
    one = learner(precision="bf16", lr=1e-6)
    before = {name: weight.detach().clone() for name, weight in one.weights.masters.items()}
    updated(one, a_batch())
    assert all(not torch.equal(before[name], weight) for name, weight in one.weights.masters.items())


def test_a_kl_to_the_initial_model_is_zero_before_any_update_and_pulls_after() -> None:
    one = learner(kl_coef=0.1)
    first = updated(one, a_batch())
    second = updated(one, a_batch())
    assert first["kl_loss"] == pytest.approx(0, abs=1e-3)
    assert second["kl_loss"] > first["kl_loss"]


def test_the_reference_of_the_kl_computes_as_the_learner_does() -> None:
    metrics = updated(learner(kl_coef=1.0, precision="fp32"), a_batch())
    assert metrics["kl_loss"] == pytest.approx(0, abs=1e-12)


def test_a_correction_weighs_the_loss_and_is_counted() -> None:
    tis = CorrectionConfig(rule="token_mis", lo=0.999, hi=1.001)
    metrics = updated(learner(anchor="recomputed", correction=tis), a_batch())
    assert metrics["frac_rejected"] == 1.0


@pytest.mark.parametrize(
    "settings",
    [
        {"anchor": "engine", "correction": {"rule": "token_tis"}},
        {"anchor": "recomputed", "loss": {"loss": "tis_pg"}, "correction": {"rule": "token_tis"}},
        {"decay": "linear", "total_steps": 0},
    ],
)
def test_combinations_that_are_known_to_be_wrong_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"twice|doubles|total_steps"):
        LearnerConfig.model_validate(settings)


def test_a_loss_may_be_given_by_the_name_of_its_preset() -> None:
    assert LearnerConfig.model_validate({"loss": "gspo"}).loss == PRESETS["gspo"].loss
    with pytest.raises(UsageError) as caught:
        LearnerConfig.model_validate({"loss": "best"})
    assert caught.value.code == "unknown_loss"


def test_dropout_never_makes_the_policy_differ_from_itself() -> None:
    model = tiny_llama(attention_dropout=0.5)
    one = Learner(None, LearnerConfig(precision="fp32"), model=model)
    assert one.logprobs([[1, 2, 3, 4]]) == one.logprobs([[1, 2, 3, 4]])
    assert not model.training


def test_a_deterministic_learner_asks_cublas_for_the_workspace_that_torch_wants(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(torch, "use_deterministic_algorithms", lambda *, mode: asked.append(mode))
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", "")
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG")
    learner()
    assert "CUBLAS_WORKSPACE_CONFIG" not in os.environ
    learner(deterministic=True)
    assert (asked, os.environ["CUBLAS_WORKSPACE_CONFIG"]) == ([True], ":4096:8")


def test_scores_are_those_of_the_model() -> None:
    one = learner()
    ids = [3, 1, 4, 1, 5]
    logits_TV = one.model(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)
    expected = [logits_TV[t, ids[t + 1]].item() for t in range(4)]
    assert one.logprobs([ids])[0] == pytest.approx(expected, abs=1e-5)


def test_it_builds_batches_from_complete_groups() -> None:
    batch = learner().build([make_group(0), make_group(1)], version=0).batch
    assert (len(batch.groups), batch.n_seq, batch.n_tok) == (2, 4, 8)


def test_a_built_batch_is_laid_out_already_so_that_no_update_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    one = learner(token_budget=5)
    records = [make_record(reward=float(i % 2), own=[4 + i, 5], index=i) for i in range(4)]
    group = CompleteGroup(make_draw(), tuple(EndedMember(record, 0.0, 1.0) for record in records), 1.0, 0)
    packed = one.build([group], version=0)
    assert sorted(sample.episode_id for row in packed.rows for sample in row.samples) == sorted(
        record.episode_id for record in records
    )
    for name in ("pack", "micro_batches"):
        monkeypatch.setattr(learner_module, name, None)
    assert one.step(packed)["micro_batches"] == len(packed.rows) > 1
