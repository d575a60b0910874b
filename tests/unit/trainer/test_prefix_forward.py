"""Packed rows with a shared prefix give the plain padded forward's values and gradients, whatever the traces look like."""

from __future__ import annotations

import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.episode_records import VOCABULARY, make_sample, random_groups, tiny_llama
from trainer import prefix_tree
from trainer.packing import pack
from trainer.prefix_forward import padded_logprobs, row_logprobs, takes_packed_rows
from trainer.sample import TrainSample


def values_and_gradients(forward, model, row, *, temperature: float = 1.0):
    model.zero_grad()
    logprobs_M = forward(model, row, temperature=temperature)
    weights_M = torch.linspace(-1, 1, len(logprobs_M), dtype=logprobs_M.dtype)
    (logprobs_M * weights_M).sum().backward()
    return logprobs_M.detach(), {name: p.grad.clone() for name, p in model.named_parameters()}


@pytest.fixture(autouse=True)
def share_whatever_is_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefix_tree, "WORTH_SHARING", 1)


def flat(groups: list[list[TrainSample]]) -> list[TrainSample]:
    return [sample for group in groups for sample in group]


def assert_equal(model, groups: list[list[TrainSample]], *, within: float, temperature: float = 1.0) -> None:
    row = pack(flat(groups))
    packed, packed_grads = values_and_gradients(row_logprobs, model, row, temperature=temperature)
    plain, plain_grads = values_and_gradients(padded_logprobs, model, row, temperature=temperature)
    torch.testing.assert_close(packed, plain, rtol=0, atol=within)
    for name, gradient in plain_grads.items():
        torch.testing.assert_close(packed_grads[name], gradient, rtol=0, atol=within, msg=lambda m, n=name: f"{n}: {m}")


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**20), turns=st.integers(1, 3), size=st.integers(1, 4), head=st.integers(0, 8))
def test_values_and_gradients_equal_the_padded_forward_in_float64(seed: int, turns: int, size: int, head: int) -> None:
    model = tiny_llama(exact_norms=True).double()
    assert takes_packed_rows(model)
    assert_equal(model, random_groups(seed, size=size, turns=turns, head=head), within=1e-12)


def test_they_agree_in_float32_through_the_models_own_norms() -> None:
    assert_equal(tiny_llama(), random_groups(7, turns=2), within=2e-5)


@pytest.mark.parametrize("temperature", [0.5, 0.7, 1.3])
def test_logits_are_divided_by_the_temperature_on_both_ways(temperature: float) -> None:
    assert_equal(tiny_llama(exact_norms=True).double(), random_groups(3), within=1e-12, temperature=temperature)


def test_values_equal_transformers_own_logits() -> None:
    model = tiny_llama(exact_norms=True).double()
    groups = random_groups(5, turns=2)
    got = iter(row_logprobs(model, pack(flat(groups)), temperature=0.7).tolist())
    for sample in (sample for group in groups for sample in group):
        logits_TV = model(input_ids=torch.tensor([sample.ids])).logits[0] / 0.7
        for t in sample.trained:
            assert next(got) == pytest.approx(logits_TV[t - 1].log_softmax(-1)[sample.ids[t]].item(), abs=1e-12)


def test_a_sample_that_is_a_prefix_of_its_sibling_changes_nothing() -> None:
    prompt = [1, 2, 3, 4]
    groups = [[make_sample(prompt, [5, 6]), make_sample(prompt, [5, 6, 7, 8]), make_sample(prompt, [5, 6])]]
    assert_equal(tiny_llama(exact_norms=True).double(), groups, within=1e-12)


def test_siblings_without_a_common_token_share_nothing_and_still_agree() -> None:
    groups = [[make_sample([1, 2], [3, 4]), make_sample([7, 8], [9, 10])]]
    assert len(pack(flat(groups)).siblings[0].lengths) == 2
    assert_equal(tiny_llama(exact_norms=True).double(), groups, within=1e-12)


def test_a_neighbour_in_the_row_changes_no_logprob() -> None:
    model = tiny_llama(exact_norms=True).double()
    first, second = random_groups(11, groups=2)
    alone = row_logprobs(model, pack(first))
    torch.testing.assert_close(row_logprobs(model, pack([*first, *second]))[: len(alone)], alone, rtol=0, atol=1e-13)


def test_untied_heads_agree_too() -> None:
    assert_equal(tiny_llama(exact_norms=True, tie_word_embeddings=False).double(), random_groups(2), within=1e-12)


def test_a_model_with_sliding_windows_runs_padded() -> None:
    from transformers import MistralConfig, MistralForCausalLM

    draw = random.Random(0)
    config = MistralConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        sliding_window=4,
    )
    model = MistralForCausalLM(config)
    assert not takes_packed_rows(model)
    row = pack([make_sample([draw.randrange(VOCABULARY) for _ in range(12)], [1, 2, 3])])
    torch.testing.assert_close(row_logprobs(model, row), padded_logprobs(model, row))


def test_the_models_own_attention_is_back_after_a_row() -> None:
    model = tiny_llama()
    before = model.config._attn_implementation
    row_logprobs(model, pack(flat(random_groups(0))))
    assert model.config._attn_implementation == before
