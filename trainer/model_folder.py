"""A trained model as a folder: weights in safetensors, configuration and tokenizer of the model it came from.

``envsdk.json`` names the lineage (the model that training started from) and the weight version, so that whoever serves
the folder says who it is.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

ORIGIN = "envsdk.json"
_WEIGHTS = "*.safetensors*"


def write_model(
    folder: Path, weights: Iterable[tuple[str, torch.Tensor]], model_dir: Path, *, lineage: str, version: int
) -> None:
    """Write the folder in place of what was there, by one rename."""
    from safetensors.torch import save_file

    growing = folder.with_name(f".growing-{folder.name}")
    shutil.rmtree(growing, ignore_errors=True)
    shutil.copytree(model_dir, growing, ignore=shutil.ignore_patterns(_WEIGHTS, ORIGIN))
    save_file({name: tensor.contiguous() for name, tensor in weights}, growing / "model.safetensors", {"format": "pt"})
    (growing / ORIGIN).write_text(json.dumps({"lineage": lineage, "weight_version": version}), encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    growing.rename(folder)


def origin(model_dir: Path) -> tuple[str, int]:
    """(lineage, weight version) of a model folder; its own name and 0 for a model that was not trained here."""
    try:
        written = json.loads((model_dir / ORIGIN).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return model_dir.name, 0
    return str(written["lineage"]), int(written["weight_version"])
