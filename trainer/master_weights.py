"""Weights in two precisions: float32 masters that the optimizer moves, and the copy that computes and is published.

A bf16 weight cannot hold a step of the usual size, so the masters are float32 in any case. In bf16 the model's own
parameters are the rounded masters, the very numbers the engine gets, and each backward pass's gradients are added to
the masters' in float32 as they come. In fp32 the model's parameters are the masters.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor


class MasterWeights:
    """The masters of ``model``, whose parameters are brought to ``dtype``. Tied weights are held once."""

    def __init__(self, model: Any, *, dtype: torch.dtype) -> None:
        full = {name: parameter.detach().float().clone() for name, parameter in model.named_parameters()}
        model.to(dtype)
        self._computed: dict[str, Tensor] = dict(model.named_parameters())
        self._shared = dtype == torch.float32
        if self._shared:
            self.masters: dict[str, Tensor] = self._computed
            return
        self.masters = {name: weight.requires_grad_() for name, weight in full.items()}
        for name, parameter in self._computed.items():
            parameter.register_post_accumulate_grad_hook(_adder(self.masters[name]))

    def to_model(self) -> None:
        """Round the masters into the model's parameters."""
        if self._shared:
            return
        with torch.no_grad():
            for name, parameter in self._computed.items():
                parameter.copy_(self.masters[name])

    def drop_gradients(self) -> None:
        """Forget every gradient."""
        for weight in (*self.masters.values(), *self._computed.values()):
            weight.grad = None

    def fill_gradients(self) -> None:
        """A parameter that no sample touched has a gradient of 0, so that the optimizer treats all alike."""
        for weight in self.masters.values():
            if weight.grad is None:
                weight.grad = torch.zeros_like(weight)

    @contextmanager
    def perturbed(self, *, scale: float, seed: int) -> Iterator[None]:
        """Other weights for a while: each that is computed with times 1 + scale x noise; then the same as before."""
        kept = {name: parameter.detach().clone() for name, parameter in self._computed.items()}
        generator = torch.Generator().manual_seed(seed)
        try:
            with torch.no_grad():
                for parameter in self._computed.values():
                    noise = torch.randn(parameter.shape, generator=generator).to(parameter)
                    parameter.mul_(1 + scale * noise)
            yield
        finally:
            with torch.no_grad():
                for name, parameter in self._computed.items():
                    parameter.copy_(kept[name])

    def published(self) -> Iterator[tuple[str, Tensor]]:
        """Every (name, tensor) that is computed with, in the model's order. Read before the next update."""
        for name, parameter in self._computed.items():
            yield name, parameter.detach()


def _adder(master: Tensor) -> Any:
    def add(parameter: Tensor) -> None:
        assert parameter.grad is not None
        if master.grad is None:
            master.grad = parameter.grad.float()
        else:
            master.grad.add_(parameter.grad)
        parameter.grad = None

    return add
