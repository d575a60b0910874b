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

from envsdk.errors import UsageError
from trainer.tensor_file import save_tensors

if TYPE_CHECKING:
    import torch

ORIGIN = "envsdk.json"
_WEIGHTS = "*.safetensors*"


def write_model(
    folder: Path, weights: Iterable[tuple[str, torch.Tensor]], model_dir: Path, *, lineage: str, version: int
) -> None:
    """Write the folder in place of what was there, by one rename.

    Raises OSError where the system refuses it; what was there is untouched then, and nothing half-written stays.
    """
    growing = folder.with_name(f".growing-{folder.name}")
    shutil.rmtree(growing, ignore_errors=True)
    try:
        shutil.copytree(model_dir, growing, ignore=shutil.ignore_patterns(_WEIGHTS, ORIGIN))
        values = {name: tensor.contiguous() for name, tensor in weights}
        save_tensors(values, growing / "model.safetensors", metadata={"format": "pt"})
        (growing / ORIGIN).write_text(json.dumps({"lineage": lineage, "weight_version": version}), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        growing.rename(folder)
    finally:
        shutil.rmtree(growing, ignore_errors=True)


def origin(model_dir: Path) -> tuple[str, int]:
    """(lineage, weight version) of a model folder; its own name and 0 for a model that was not trained here.

    Raises:
        UsageError: ``not_a_model``: what it says of itself cannot be read.
    """
    try:
        written = json.loads((model_dir / ORIGIN).read_text(encoding="utf-8"))
        return str(written["lineage"]), int(written["weight_version"])
    except FileNotFoundError:
        return model_dir.name, 0
    except (ValueError, TypeError, KeyError) as error:
        raise UsageError(
            f"{ORIGIN} is damaged: {type(error).__name__}: {error}",
            code="not_a_model",
            hint='it holds {"lineage": name, "weight_version": number}; removed, the model is its own lineage',
            where=str(model_dir),
        ) from error
