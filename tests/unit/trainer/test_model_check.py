"""A model's folder that lost a part is named before an engine is started on it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.fakes.models import write_model
from trainer.model_check import model_fault
from trainer.tensor_file import save_tensors


def write_parts(folder: Path) -> None:
    """A model in two parts."""
    write_model(folder)
    (folder / "model.safetensors").rename(folder / "model-1.safetensors")
    save_tensors({"v": torch.ones(4)}, folder / "model-2.safetensors")
    parts = {"w": "model-1.safetensors", "v": "model-2.safetensors"}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": parts}))


@pytest.mark.parametrize("write", [write_model, write_parts])
def test_a_whole_model_has_no_fault(tmp_path: Path, write: Callable[[Path], None]) -> None:
    write(tmp_path)
    assert model_fault(tmp_path) == ""


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda folder: (folder / "config.json").unlink(), "no config.json"),
        (lambda folder: (folder / "config.json").write_text("{"), "no JSON object"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "no tokenizer"),
        (lambda folder: (folder / "model-2.safetensors").unlink(), "model-2.safetensors is missing"),
        (lambda folder: (folder / "model.safetensors.index.json").write_text("[]"), "index.json is damaged"),
        (lambda folder: os.truncate(folder / "model-1.safetensors", 70), "model-1.safetensors is damaged"),
        (lambda folder: [path.unlink() for path in folder.glob("*.safetensors")], "no weights"),
    ],
)
def test_what_is_missing_or_cut_off_is_named(tmp_path: Path, spoil: Callable[[Path], object], said: str) -> None:
    write_parts(tmp_path)
    spoil(tmp_path)
    assert said in model_fault(tmp_path)
