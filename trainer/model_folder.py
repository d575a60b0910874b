"""A trained model as a folder: weights in safetensors, configuration and tokenizer of the model it came from.

``envsdk.json`` names the lineage (the model that training started from), the weight version, and the digests of the
weights and of every task that the model was trained on, so that whoever serves the folder says who it is, and whoever
evaluates it whether it saw the tasks.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envsdk.errors import UsageError
from trainer.tensor_file import save_tensors

if TYPE_CHECKING:
    import torch

ORIGIN = "envsdk.json"
_WEIGHTS = "*.safetensors*"


def write_model(
    folder: Path,
    weights: Iterable[tuple[str, torch.Tensor]],
    model_dir: Path,
    *,
    lineage: str,
    version: int,
    trained_on: Iterable[str] = (),
) -> None:
    """Write the folder in place of what was there, by one rename.

    Args:
        folder: to write.
        weights: by name.
        model_dir: the model that training began with; what that was trained on is kept.
        lineage: name of the first model.
        version: of the weights.
        trained_on: digests of the tasks that training took episodes of.

    Raises OSError where the system refuses it; what was there is untouched then, and nothing half-written stays.
    """
    growing = folder.with_name(f".growing-{folder.name}")
    shutil.rmtree(growing, ignore_errors=True)
    try:
        shutil.copytree(model_dir, growing, ignore=shutil.ignore_patterns(_WEIGHTS, ORIGIN))
        values = {name: tensor.contiguous() for name, tensor in weights}
        save_tensors(values, growing / "model.safetensors", metadata={"format": "pt"})
        said = {
            "lineage": lineage,
            "weight_version": version,
            "weights_digest": weights_digest(growing),
            "trained_on": sorted({*trained_on, *(seen_in_training(model_dir) or ())}),
        }
        (growing / ORIGIN).write_text(json.dumps(said), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        growing.rename(folder)
    finally:
        shutil.rmtree(growing, ignore_errors=True)


def origin(model_dir: Path) -> tuple[str, int]:
    """(lineage, weight version) of a model folder; its own name and 0 for a model that was not trained here.

    Raises:
        UsageError: ``not_a_model``: what it says of itself cannot be read.
    """
    said = _said(model_dir)
    return (str(said["lineage"]), int(said["weight_version"])) if said else (model_dir.name, 0)


def revision(model_dir: Path) -> str:
    """Weight version and digest of the weights: two models of one lineage never share it. Raises as `origin` does.

    A folder that does not name its digest is read whole, about a second for each GiB.
    """
    digest = str(_said(model_dir).get("weights_digest") or weights_digest(model_dir))
    return f"{origin(model_dir)[1]}-{digest[:12]}"


def seen_in_training(model_dir: Path) -> frozenset[str] | None:
    """Digests of the tasks that a model was trained on here. Raises as `origin` does.

    `None` for one that was trained before folders said so; where training went on from such a one, what came after.
    """
    said = _said(model_dir)
    if not said:
        return frozenset()
    return frozenset(said["trained_on"]) if "trained_on" in said else None


def weights_digest(model_dir: Path) -> str:
    """sha256 over names and contents of a folder's weights."""
    digest = hashlib.sha256()
    for path in sorted(model_dir.glob(_WEIGHTS)):
        with path.open("rb") as file:
            digest.update(f"{path.name}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()


def _said(model_dir: Path) -> dict[str, Any]:
    """What a folder says of itself; nothing for a model that was not trained here."""
    try:
        said = json.loads((model_dir / ORIGIN).read_text(encoding="utf-8"))
        str(said["lineage"]), int(said["weight_version"])
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, KeyError) as error:
        raise UsageError(
            f"{ORIGIN} is damaged: {type(error).__name__}: {error}",
            code="not_a_model",
            hint='it holds {"lineage": name, "weight_version": number}; removed, the model is its own lineage',
            where=str(model_dir),
        ) from error
    return dict(said)
