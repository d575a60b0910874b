"""Which GPU does what: the learner's, each replica's, and what they share.

The learner has a GPU of its own where there is more than one, and replicas have those that are left, in order. On a
single GPU all live together, so each replica takes a share of its memory and they start one after the other: vLLM
measures what is free, and the learner fills what it finds. `CUDA_VISIBLE_DEVICES` says what there is to place on; GPUs
are numbered among those. Nothing here loads torch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from envsdk.errors import PrerequisiteError
from trainer.engines.environment import built_for_cpu
from trainer.engines.options import EngineOptions

ENGINES_SHARE = 0.45
"""Of the memory of the learner's GPU, for all replicas on it: masters, moments and activations want the rest."""
ENGINES_ALONE = 0.9
"""The same of a GPU that several replicas share without a learner."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a run computes.

    Attributes:
        learner: torch's name of its device, `None` where there is no learner.
        replicas: of each, the GPUs it has; none on a CPU.
    """

    learner: str | None
    replicas: tuple[tuple[int, ...], ...]

    @property
    def shared(self) -> bool:
        """Whether a GPU has more than one tenant."""
        tenants = Counter(gpu for gpus in self.replicas for gpu in gpus)
        tenants.update([own] if (own := _number(self.learner or "")) is not None else [])
        return max(tenants.values(), default=0) > 1

    @property
    def gpu_share(self) -> float | None:
        """Share of its GPU's memory for a replica, `None` for vLLM's own choice where it is alone."""
        if not self.shared:
            return None
        beside_learner = any(_number(self.learner or "") in gpus for gpus in self.replicas)
        return (ENGINES_SHARE if beside_learner else ENGINES_ALONE) / len(self.replicas)


def place(gpus: int, *, learner: str | None, replicas: int, per_replica: int) -> Placement:
    """Place a learner and ``replicas`` replicas of ``per_replica`` GPUs each on a machine with ``gpus`` GPUs.

    Args:
        gpus: how many there are; 0 for a CPU.
        learner: its setting: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``; `None` where there is no learner.
        replicas: of the engine.
        per_replica: GPUs that hold one replica together.

    Raises:
        PrerequisiteError: ``no_such_gpu``: the learner's does not exist; ``too_few_gpus``: replicas are left without.
    """
    wanted = {"auto": "cuda" if gpus else "cpu"}.get(learner or "", learner)
    own = None if wanted is None else _number(wanted)
    if own is not None and own >= gpus:
        raise PrerequisiteError(
            f"the learner shall compute on {learner}, and there are {gpus} GPUs",
            code="no_such_gpu",
            where="learner.device",
            hint="auto takes what there is; CUDA_VISIBLE_DEVICES and torch's build decide what is seen",
        )
    device = wanted if own is None else f"cuda:{own}"
    if not gpus and per_replica == 1:
        return Placement(device, ((),) * replicas)
    if gpus == per_replica == 1:
        return Placement(device, ((0,),) * replicas)
    free = [gpu for gpu in range(gpus) if gpu != own]
    if len(free) < replicas * per_replica:
        raise PrerequisiteError(
            f"{replicas} replicas of {per_replica} GPUs want {replicas * per_replica}, and {len(free)} are left",
            code="too_few_gpus",
            where="engine.replicas",
            hint="lower engine.replicas or engine.tensor_parallel; the learner keeps one, unless learner.device is cpu",
        )
    starts = range(0, replicas * per_replica, per_replica)
    return Placement(device, tuple(tuple(free[at : at + per_replica]) for at in starts))


def sharing(options: EngineOptions, placement: Placement) -> EngineOptions:
    """``options`` with the share of a GPU's memory that ``placement`` leaves a replica, unless somebody set one."""
    if options.gpu_share is not None:
        return options
    return options.model_copy(update={"gpu_share": placement.gpu_share})


def visible_gpus(count: Callable[[], int] | None = None) -> int:
    """GPUs that torch sees and the installed vLLM can use; ``count`` is torch's question, given in a test."""
    if built_for_cpu():
        return 0
    if count is None:
        import torch

        count = torch.cuda.device_count
    return count()


def _number(device: str) -> int | None:
    kind, _, number = device.partition(":")
    return int(number or 0) if kind == "cuda" else None
