"""Whether a run's disk has room for what the run will keep there, told before an engine starts.

Counted are the checkpoints that lie there at once (each weight in float32 with two moments of the optimizer's, and one
more checkpoint than are kept, while it grows) and the trained model. What a refused disk lacks, the run would have
lacked. Not promised: that a disk which passes suffices; the ledger grows too, and others write to it.
"""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

from envsdk.errors import PrerequisiteError
from trainer import checkpoint
from trainer.config import TrainConfig
from trainer.run_dir import CHECKPOINTS

_CHECKPOINT_BYTES = 12
"""A weight in a checkpoint: a float32 master and AdamW's two float32 moments."""
_SERVED_BYTES = {"float32": 4}
_LEAST_BYTES = 2
_LARGEST_BYTES = 4
_GIB = 1 << 30


def require_room(run: Path, config: TrainConfig, model_dir: Path) -> None:
    """Compare what is free under ``run``, or under the nearest folder that exists, with what is still to be written.

    Raises:
        PrerequisiteError: ``disk_too_small``: it will not fit.
    """
    needed = needed_bytes(run, config, model_dir)
    folder = next(folder for folder in (run, *run.absolute().parents) if folder.exists())
    free = shutil.disk_usage(folder).free
    if needed <= free:
        return
    once = config.model_copy(update={"checkpoint_every": config.steps})
    fewer = needed_bytes(run, once, model_dir)
    or_fewer = f", or write one only: --set checkpoint_every={config.steps}" if fewer <= free else ""
    raise PrerequisiteError(
        f"the run's checkpoints and model need {needed / _GIB:.1f} GiB, and {free / _GIB:.1f} GiB are free",
        code="disk_too_small",
        hint=f"free {(needed - free) / _GIB:.1f} GiB more, or put the run on another disk{or_fewer}",
        where=str(run),
    )


def needed_bytes(run: Path, config: TrainConfig, model_dir: Path) -> int:
    """What a run will add to its disk at the most crowded moment, beside what its checkpoints hold of it already."""
    weights = weight_count(model_dir)
    folder = run / CHECKPOINTS
    whole = checkpoint.complete(folder)
    done = checkpoint.step_of(whole[-1]) if whole else 0
    steps, every = config.steps, config.checkpoint_every
    coming = sum(checkpoint.is_due(step, every=every, last=steps) for step in range(done + 1, steps + 1))
    there = len(whole) + coming
    one = weights * _CHECKPOINT_BYTES
    model = weights * _SERVED_BYTES.get(config.engine.dtype, _LEAST_BYTES)
    crowded = max(min(there, checkpoint.KEPT + 1) * one, min(there, checkpoint.KEPT) * one + model)
    replaced = [*whole, *folder.glob(".growing-*")]
    held = sum(path.stat().st_size for kept in replaced for path in kept.rglob("*") if path.is_file())
    return max(0, crowded - held)


def weight_count(model_dir: Path) -> int:
    """Weights of a model, each tied one once, from its files' headers; where those tell nothing, at least so many."""
    from safetensors import safe_open

    tied = bool(_json(model_dir / "config.json").get("tie_word_embeddings"))
    count = 0
    for path in _weight_files(model_dir):
        with safe_open(path, framework="np") as file:
            for name in file.keys():  # noqa: SIM118 - no mapping, whatever it is called
                if not (tied and name == "lm_head.weight"):
                    count += math.prod(file.get_slice(name).get_shape())
    if count:
        return count
    others = [path for pattern in ("*.bin", "*.pt") for path in model_dir.glob(pattern)]
    return sum(path.stat().st_size for path in others) // _LARGEST_BYTES


def _weight_files(model_dir: Path) -> set[Path]:
    """The files that a loader takes: some folders hold the same weights once more under other names."""
    index, whole = model_dir / "model.safetensors.index.json", model_dir / "model.safetensors"
    if index.is_file():
        return {model_dir / part for part in _json(index)["weight_map"].values()}
    return {whole} if whole.is_file() else set(model_dir.glob("*.safetensors"))


def _json(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8")))
