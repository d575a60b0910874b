"""Which models the learner computes rightly: refused otherwise, before a step is trained on wrong logprobs.

The learner multiplies the last hidden states by the output layer's weights itself, and brings its own attention
(`trainer.prefix_forward`), so whatever else a model does to scores or logits would be left out without an error. What
is known to be so is refused by name. What is not known is found by asking: the model's own forward pass gives the same
logprobs, or the model is refused. Not promised: that the engine agrees; its probe says (`trainer.probe`).
"""

from __future__ import annotations

from typing import Any

import torch

from envsdk.errors import UsageError
from trainer.packing import pack
from trainer.prefix_forward import row_logprobs
from trainer.sample import whole_sample

_LEFT_OUT = {
    "attn_logit_softcapping": "attention scores are soft-capped",
    "final_logit_softcapping": "logits are soft-capped",
    "output_logit_soft_cap": "logits are soft-capped",
    "logit_scale": "logits are scaled",
    "logits_scaling": "logits are scaled",
    "output_multiplier": "logits are scaled",
    "lm_head_multiplier": "logits are scaled",
}
_NEUTRAL = (None, 0, 1)
_TOKENS = 12
_TOLERANCE = 0.01  # nats; the model is in float32 when it is asked


def require_supported(model: Any) -> None:
    """Raise where the learner's logprobs are not ``model``'s own. The model is in evaluation mode.

    Raises:
        UsageError: ``unsupported_model``, naming what would be left out.
    """
    config = model.config.get_text_config()
    left_out = [f"{what} ({key})" for key, what in _LEFT_OUT.items() if getattr(config, key, None) not in _NEUTRAL]
    head = model.get_output_embeddings()
    if getattr(head, "bias", None) is not None:
        left_out.append("the output layer has a bias")
    if any(name.endswith(".sinks") for name, _ in model.named_parameters()):
        left_out.append("attention has sinks")
    if not left_out and (off := _difference(model)) > _TOLERANCE:
        left_out.append(f"its own forward pass gives other logprobs, by {off:.3f} nats")
    if left_out:
        raise UsageError(
            f"the learner cannot train a {type(model).__name__}: {'; '.join(left_out)}",
            code="unsupported_model",
            hint="take a model whose logits are its output layer's products alone, as Llama's, Qwen's or Mistral's are",
            where=str(config.name_or_path),
        )


def _difference(model: Any) -> float:
    """Largest difference in nats between the learner's logprobs of a few tokens and the model's own."""
    last = model.get_input_embeddings().num_embeddings - 1
    ids = [1 + (7 * place) % last for place in range(_TOKENS)]
    with torch.no_grad():
        ours_M = row_logprobs(model, pack([whole_sample(ids)]))
        device = ours_M.device
        logits_TV = model(input_ids=torch.tensor([ids], device=device), use_cache=False).logits[0]
        own_TV = logits_TV.to(ours_M.dtype).log_softmax(dim=-1)
        own_M = own_TV[:-1].gather(1, torch.tensor(ids[1:], device=device)[:, None])[:, 0]
    return float((ours_M - own_M).abs().max())
