"""The probe: do engine and trainer agree on fixed prompts at the same weights?

A reload can leave an engine with a mixture of old and new weights without any error, some of it only on the second
update (vLLM's layerwise reload with tied embeddings; RFC vllm#48312). So the trainer's logprobs are compared with each
replica's before any update, which gives the *baseline* that numerics alone make, and after every update.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from envsdk.errors import EngineError
from trainer.engines.base import Engine, Request

Score = Callable[[Sequence[tuple[int, ...]]], Awaitable[list[list[float]]]]
"""The trainer's logprob of each token but the first, for each sequence, at temperature 1."""

PROBE_TEXTS = (
    "Water boils at one hundred degrees. Ice melts at zero degrees. Iron melts at a far higher temperature than both.",
    "for name in sorted(names):\n    print(name.upper())\n    total += len(name)\nprint(total)",
    "ls -l /var/log | head -n 3 && wc -l /etc/hosts && echo done",
    "2 + 3 = 5, 7 + 6 = 13, 12 - 4 = 8, 9 * 9 = 81, 100 / 4 = 25",
)
WORST_BASELINE = 0.2
"""Nats a token that numerics alone can explain. In bf16 0.05 was measured; other weights differ by far more."""
_FLOOR = 0.01  # nats; below it a doubled difference is noise of bf16, not a fault
_FACTOR = 2.0
_GENERATED = 8


@dataclass(frozen=True, slots=True)
class Reading:
    """One comparison on one replica. Absolute logprob differences in nats: mean and maximum over ``tokens``.

    ``divergence``: what `trainer.mismatch` makes of the same tokens: at one version, numerics alone.
    """

    replica: str
    version: int
    mean: float
    maximum: float
    tokens: int
    divergence: Mapping[str, float] = field(default_factory=dict)


class Probe:
    """Compares replicas with the trainer on fixed token sequences.

    Args:
        sequences: tokenised probe texts.
        score: the trainer's side.
    """

    def __init__(self, sequences: Sequence[tuple[int, ...]], score: Score) -> None:
        self._sequences = tuple(sequences)
        self._score = score
        self.baseline: float | None = None

    @property
    def limit(self) -> float:
        """The largest mean difference that is accepted: twice the baseline, or the floor where that is larger."""
        return max(_FACTOR * (self.baseline or 0.0), _FLOOR)

    async def measure_baseline(self, replicas: Sequence[Engine]) -> list[Reading]:
        """Compare before any update; the largest replica's mean becomes the baseline.

        Raises:
            EngineError: ``engine_disagrees``: they differ by more than numerics can explain.
        """
        readings = [await self.read(replica) for replica in replicas]
        for reading in readings:
            if not reading.mean <= WORST_BASELINE:  # NaN too
                raise EngineError(
                    f"engine and learner differ by {reading.mean:.3f} nats a token before any update, and "
                    f"{WORST_BASELINE} is the most that numerics explain: they do not compute the same model",
                    code="engine_disagrees",
                    hint="see that both load this folder's weights, and try engine.dtype float32 and learner.precision "
                    "fp32: if they agree then, bf16 is too coarse, else one of them does not support this model",
                    where=f"engine {reading.replica}",
                )
        self.baseline = max(reading.mean for reading in readings)
        return readings

    async def read(self, replica: Engine) -> Reading:
        """Compare one replica now. Both ways to a logprob are used: scoring a prompt, and generating after it."""
        salt = f"probe-{replica.version}"
        made = await asyncio.gather(
            *(
                replica.generate(Request(f"{salt}-{i}", sequence, _GENERATED, seed=i, salt=salt))
                for i, sequence in enumerate(self._sequences)
            )
        )
        prompts = [await replica.score(sequence, salt=f"{salt}-s{i}") for i, sequence in enumerate(self._sequences)]
        engine = [[*prompt, *reply.logprobs] for prompt, reply in zip(prompts, made, strict=True)]
        full = [(*sequence, *reply.ids) for sequence, reply in zip(self._sequences, made, strict=True)]
        trainer = await self._score(full)
        differences = [
            abs(ours - theirs)
            for row, other in zip(trainer, engine, strict=True)
            for ours, theirs in zip(row, other, strict=True)
        ]
        return Reading(
            replica=replica.name,
            version=replica.version,
            mean=sum(differences) / len(differences),
            maximum=max(differences),
            tokens=len(differences),
            divergence=_divergence(trainer, engine),
        )

    def accepts(self, reading: Reading) -> bool:
        """Does a reading agree with the baseline? A difference that is no number does not."""
        return reading.mean <= self.limit  # false for NaN


def _divergence(trainer: Sequence[Sequence[float]], engine: Sequence[Sequence[float]]) -> dict[str, float]:
    """Of the sequences' logprobs on both sides."""
    import torch
    from torch.nn.utils.rnn import pad_sequence

    from trainer.correction.drift import drift
    from trainer.mismatch import divergence

    logp_BT, engine_BT, mask_BT = (
        pad_sequence([torch.tensor(row, dtype=torch.float64) for row in rows], batch_first=True)
        for rows in (trainer, engine, [[1.0] * len(row) for row in trainer])
    )
    return {k: v for k, v in divergence(drift(logp_BT, engine_BT, mask_BT.bool())).items() if math.isfinite(v)}
