"""Models whose logprobs the learner would get wrong are refused by name, and unknown ones by asking them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import (
    Cohere2Config,
    Cohere2ForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    PhiConfig,
    PhiForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from envsdk.errors import UsageError
from tests.fakes.episode_records import tiny_llama
from trainer.learner import Learner
from trainer.learner_config import LearnerConfig
from trainer.supported_model import require_supported

SMALL: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "pad_token_id": 0,
}


def test_llamas_and_qwens_are_supported() -> None:
    require_supported(tiny_llama().eval())
    require_supported(Qwen2ForCausalLM(Qwen2Config(**SMALL)).eval())


@pytest.mark.parametrize(
    ("kind", "config", "left_out"),
    [
        (Gemma2ForCausalLM, Gemma2Config(**SMALL, head_dim=8), "final_logit_softcapping"),
        (Cohere2ForCausalLM, Cohere2Config(**SMALL), "logit_scale"),
        (PhiForCausalLM, PhiConfig(**SMALL | {"num_key_value_heads": 4}), "bias"),
    ],
)
def test_what_the_learner_would_leave_out_is_refused_by_name(kind: Any, config: Any, left_out: str) -> None:
    with pytest.raises(UsageError, match=left_out) as caught:
        require_supported(kind(config).eval())
    assert caught.value.code == "unsupported_model"


def test_what_nobody_has_named_yet_is_found_by_asking_the_model() -> None:
    model = tiny_llama().eval()
    model.lm_head.register_forward_hook(lambda _module, _inputs, logits: logits * 3)
    with pytest.raises(UsageError, match="other logprobs, by"):
        require_supported(model)


def test_a_learner_refuses_before_it_does_anything() -> None:
    torch.manual_seed(0)
    with pytest.raises(UsageError, match="PhiForCausalLM"):
        Learner(None, LearnerConfig(), model=PhiForCausalLM(PhiConfig(**SMALL | {"num_key_value_heads": 4})))
