"""A learner's state goes back to the device that trains, with its random numbers; the CPU's path is in test_checkpoint."""

from __future__ import annotations

import pytest
import torch

from trainer import learner_state
from trainer.learner_state import optimizer_state


def test_moments_lie_beside_their_weight_wherever_that_is() -> None:
    # The meta device stands for any that is not the CPU: reading from the file would leave the moments behind.
    weight = torch.zeros(3, device="meta")
    moments = {"exp_avg/w": torch.ones(3), "exp_avg_sq/w": torch.ones(3)}
    state = optimizer_state(weight, "w", moments, updates=7)
    assert {name: tensor.device.type for name, tensor in state.items()} == dict.fromkeys(state, "meta")
    assert optimizer_state(torch.zeros(3), "w", moments, updates=7)["step"].item() == 7.0


def test_a_gpus_random_state_is_kept_and_a_cpus_run_asks_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = torch.device("cuda", 1)
    restored: list[tuple[torch.Tensor, torch.device]] = []
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda device: torch.tensor([device.index], dtype=torch.uint8))
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda state, device: restored.append((state, device)))
    states = learner_state._random_states(gpu)
    learner_state._restore_random(states, gpu)
    assert [(state.tolist(), device) for state, device in restored] == [([1], gpu)]
    assert set(learner_state._random_states(torch.device("cpu"))) == {"torch_rng"}
    learner_state._restore_random(states, torch.device("cpu"))
    assert len(restored) == 1
