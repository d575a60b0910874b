"""A learner on disk: masters, optimizer, schedule and random state, in safetensors and JSON; no pickle.

Promises: after `load`, the next update is bit for bit the one that would have followed `save`, on the same machine in
deterministic mode. Not promised: atomicity, which `trainer.checkpoint` adds around it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors.torch import load_file
from torch import Tensor

from envsdk.errors import StoreError
from trainer.tensor_file import save_tensors

if TYPE_CHECKING:
    from trainer.learner import Learner

_MOMENTS = ("exp_avg", "exp_avg_sq")


def save(learner: Learner, folder: Path) -> None:
    """Write ``learner`` into ``folder``, which exists. Raises OSError where the system refuses it."""
    masters = learner.weights.masters
    values = {name: weight.detach().contiguous() for name, weight in masters.items()}
    save_tensors(values, folder / "masters.safetensors")
    moments = {
        f"{moment}/{name}": learner.optimizer.state[weight][moment]
        for name, weight in masters.items()
        if weight in learner.optimizer.state
        for moment in _MOMENTS
    }
    save_tensors({**moments, **_random_states(learner.model.device)}, folder / "optimizer.safetensors")
    counters = {
        "updates": learner.updates,
        "skipped": learner.skipped,
        "skipped_in_a_row": learner.skipped_in_a_row,
        "config": learner.config.model_dump(mode="json"),
    }
    (folder / "learner.json").write_text(json.dumps(counters, indent=1, sort_keys=True), encoding="utf-8")


def load(learner: Learner, folder: Path) -> None:
    """Read into ``learner`` what `save` wrote.

    Raises:
        StoreError: ``wrong_checkpoint``: it holds another model's weights.
    """
    masters = learner.weights.masters
    stored = load_file(folder / "masters.safetensors")
    shapes = {name: tuple(weight.shape) for name, weight in masters.items()}
    if {name: tuple(weight.shape) for name, weight in stored.items()} != shapes:
        raise StoreError(
            "the checkpoint holds the weights of another model",
            code="wrong_checkpoint",
            hint="resume with the model the run was started with",
            where=str(folder),
        )
    counters = json.loads((folder / "learner.json").read_text(encoding="utf-8"))
    moments = load_file(folder / "optimizer.safetensors")
    with torch.no_grad():
        for name, weight in masters.items():
            weight.copy_(stored[name])
            if f"exp_avg/{name}" in moments:
                learner.optimizer.state[weight] = optimizer_state(weight, name, moments, updates=counters["updates"])
    _restore_random(moments, learner.model.device)
    learner.weights.to_model()
    learner.updates = counters["updates"]
    learner.skipped = counters["skipped"]
    learner.skipped_in_a_row = counters["skipped_in_a_row"]


def optimizer_state(weight: Tensor, name: str, moments: Mapping[str, Tensor], *, updates: int) -> dict[str, Tensor]:
    """AdamW's state of one weight, beside it: the file is read into the machine's memory, whatever device trains."""
    return {
        "step": torch.tensor(float(updates), device=weight.device),
        **{moment: moments[f"{moment}/{name}"].to(weight.device) for moment in _MOMENTS},
    }


def _random_states(device: torch.device) -> dict[str, Tensor]:
    states = {"torch_rng": torch.get_rng_state()}
    return states | {"cuda_rng": torch.cuda.get_rng_state(device)} if device.type == "cuda" else states


def _restore_random(states: Mapping[str, Tensor], device: torch.device) -> None:
    torch.set_rng_state(states["torch_rng"])
    if device.type == "cuda" and "cuda_rng" in states:  # a run may go on where there is no GPU, or for the first time
        torch.cuda.set_rng_state(states["cuda_rng"], device)
