"""Publishing a weight version, as a transaction over all replicas (law 6).

    learner's weights -> mapped file -> pause (keep) -> load on every replica -> resume -> probe -> commit

The version counts only after the last step. A replica on which any step fails leaves the rotation and is closed, so
that nothing it generated from weights nobody vouches for can reach the learner: its requests fail and are dispatched
again; one that does not answer within a limit has failed too. `publish` then raises and the committed version stays;
the caller may publish again to the replicas that are left. Requests keep running across an update; each token is
labelled with the weights that made it. The probe runs after the resume because a paused vLLM serves nobody; tokens of
those tenths of a second stand or fall with their replica.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from envsdk.errors import EngineError
from trainer.engines.base import Engine
from trainer.engines.rotation import Rotation
from trainer.probe import Probe, Reading

_REHEARSAL_SCALE = 0.05
_REHEARSAL_VERSION = -1
_RESUME = "`envsdk train --resume` goes on from the last checkpoint"
LIMIT_S = 600.0
"""How long a replica may take to swap its weights, to be probed, or to close: minutes for the largest models."""


class Perturbed(Protocol):
    """Gives the learner clearly other weights for a while, and then its own back."""

    def __call__(self, *, scale: float, seed: int) -> AbstractAsyncContextManager[None]: ...


WriteWeights = Callable[[int], Awaitable[Path]]
"""Writes the learner's weights, stamped with a version, where every replica can map them."""


@dataclass(frozen=True, slots=True)
class Publication:
    """One committed version and what it cost. ``paused_s``: how long the slowest replica generated nothing."""

    version: int
    write_s: float
    paused_s: float
    probe_s: float
    readings: tuple[Reading, ...]

    @property
    def mismatch(self) -> float:
        """Mean absolute logprob difference on the probe, in nats, of the worst replica."""
        return self.worst.mean

    @property
    def worst(self) -> Reading:
        """The reading of the replica that is furthest from the learner."""
        return max(self.readings, key=lambda reading: reading.mean)


class WeightPublisher:
    """Owns the committed version of a run. ``limit_s``: see `LIMIT_S`."""

    def __init__(
        self, rotation: Rotation, probe: Probe, write: WriteWeights, *, version: int = 0, limit_s: float = LIMIT_S
    ) -> None:
        self._rotation = rotation
        self._probe = probe
        self._write = write
        self._limit_s = limit_s
        self.version = version

    async def start(self) -> list[Reading]:
        """Measure the probe's baseline before any update.

        Raises:
            EngineError: ``engine_disagrees``: engine and learner do not compute the same model; ``engine_hangs``: no
                answer.
        """
        replicas = self._rotation.active
        async with _answering(self._limit_s, ", ".join(replica.name for replica in replicas)):
            return await self._probe.measure_baseline(replicas)

    async def rehearse(self, perturbed: Perturbed) -> list[Publication]:
        """Two updates that change nothing in the end: to clearly other weights, and back.

        An optimizer step moves the weights so little that a layer left behind would hide under the probe's noise. Here
        it cannot: whatever does not arrive is off by ``_REHEARSAL_SCALE``, at the first update or at the second.

        Raises:
            EngineError: as `publish`.
        """
        async with perturbed(scale=_REHEARSAL_SCALE, seed=0):
            away = await self._bring(_REHEARSAL_VERSION)
        return [away, await self._bring(self.version)]

    async def publish(self) -> Publication:
        """Bring the learner's weights to every replica as version + 1.

        Raises:
            EngineError: ``sync_failed``: a replica could not load or disagrees on the probe; ``no_replica``: none is
                left.
        """
        publication = await self._bring(self.version + 1)
        self.version = publication.version
        return publication

    async def _bring(self, version: int) -> Publication:
        """Bring what the learner has now to every replica, and have the probe agree."""
        self._rotation.require()
        replicas = self._rotation.active  # fixed here: one that dies on the way must fail its step, not leave the list
        started = time.monotonic()
        path = await self._write(version)
        written = time.monotonic()
        await self._on_every(replicas, lambda replica: _swap(replica, path, version))
        swapped = time.monotonic()
        readings = await self._on_every(replicas, self._examine)
        return Publication(version, written - started, swapped - written, time.monotonic() - swapped, tuple(readings))

    async def _examine(self, replica: Engine) -> Reading:
        reading = await self._probe.read(replica)
        if not self._probe.accepts(reading):
            raise EngineError(
                f"after the update engine and trainer differ by {reading.mean:.3f} nats a token on the probe; "
                f"the limit is {self._probe.limit:.3f}",
                code="probe_disagrees",
                hint="a part of the weights did not arrive; the replica is taken out, and the version before it stays",
                where=f"engine {replica.name}",
            )
        return reading

    async def _on_every(self, replicas: list[Engine], step: Callable[[Engine], Coroutine[Any, Any, Any]]) -> list[Any]:
        """Run ``step`` on all at once; any that fails costs its replica the place and the caller the version."""
        results = await asyncio.gather(*(self._limited(step, replica) for replica in replicas), return_exceptions=True)
        failures = {}
        for replica, result in zip(replicas, results, strict=True):
            if isinstance(result, EngineError):
                failures[replica.name] = str(result)
                self._rotation.remove(replica, str(result))
                failures[replica.name] += await self._closed(replica)
            elif isinstance(result, BaseException):
                raise result
        if failures:
            raise EngineError(
                f"the weights were not published, version {self.version} stays: {failures}",
                code="sync_failed",
                hint="publish again to the replicas that are left" if self._rotation.active else _RESUME,
            )
        return results

    async def _limited(self, step: Callable[[Engine], Coroutine[Any, Any, Any]], replica: Engine) -> Any:
        async with _answering(self._limit_s, replica.name):
            return await step(replica)

    async def _closed(self, replica: Engine) -> str:
        """Close it, and say what came in the way; the replica is out in any case."""
        try:
            await self._limited(lambda engine: engine.close(), replica)
        except EngineError as error:
            return f"; closing it: {error}"
        return ""


@asynccontextmanager
async def _answering(limit_s: float, who: str) -> AsyncIterator[None]:
    """Within it a replica answers in time, or has failed."""
    try:
        async with asyncio.timeout(limit_s):
            yield
    except TimeoutError as error:
        raise EngineError(
            f"no answer within {limit_s:g} s",
            code="engine_hangs",
            where=f"engine {who}",
            hint="see vLLM's lines on stderr, and whether the machine swaps; the run goes on without this replica",
        ) from error


async def _swap(replica: Engine, path: Path, version: int) -> None:
    await replica.pause()
    await replica.load(path, version=version)
    if replica.version != version:
        raise EngineError(
            f"the engine says version {replica.version} after loading {version}",
            code="wrong_version",
            hint="the engine did not take the update; this needs the vLLM that `make setup` installs",
            where=f"engine {replica.name}",
        )
    await replica.resume()
