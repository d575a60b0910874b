"""The least that counts as a model's folder: no engine could run it."""

from __future__ import annotations

from pathlib import Path

import torch

from trainer.tensor_file import save_tensors


def write_model(folder: Path) -> None:
    """Fill an existing folder."""
    (folder / "config.json").write_text("{}")
    (folder / "tokenizer.json").write_text("{}")
    save_tensors({"w": torch.ones(4)}, folder / "model.safetensors")
