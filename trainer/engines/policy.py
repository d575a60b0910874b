"""The policy ``vllm:MODEL``: from a model's name to a running `TokenPolicy`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Any, Protocol

from envsdk.episode.record import PolicyId
from envsdk.policy import Session
from trainer.engines.base import Engine
from trainer.engines.chat import ChatTokens
from trainer.engines.environment import threads_of
from trainer.engines.options import EngineOptions
from trainer.engines.rotation import Rotation
from trainer.engines.token_policy import Sampling, TokenPolicy, Watcher
from trainer.engines.vllm_engine import VllmEngine
from trainer.model_folder import origin, revision
from trainer.models import resolve_model
from trainer.placement import place, sharing, visible_gpus

Progress = Callable[[str], None]


class StartEngine(Protocol):
    """Starts one replica, as `VllmEngine.start` does."""

    async def __call__(
        self, model_dir: Path, options: EngineOptions, *, name: str, version: int, gpus: tuple[int, ...]
    ) -> Engine: ...


async def start_policy(
    model_dir: Path,
    *,
    engine: EngineOptions,
    sampling: Sampling,
    watcher: Watcher | None = None,
    gpus: Sequence[tuple[int, ...]] = (),
) -> TokenPolicy:
    """Start the replicas of the model in ``model_dir`` and return the policy over them; 20-60 s each.

    Args:
        model_dir: of the model.
        engine: of every replica.
        sampling: of every turn.
        watcher: hears what sessions wait for.
        gpus: of each replica, as `trainer.placement` gives them; empty for vLLM's own choice.

    Raises:
        PrerequisiteError, EngineError: as `VllmEngine.start`; those that had started are closed.
    """
    return TokenPolicy(
        Rotation(await start_replicas(model_dir, engine, gpus=gpus)),
        ChatTokens(load_tokenizer(model_dir)),
        identity=policy_id(model_dir, engine=engine, sampling=sampling),
        sampling=sampling,
        watcher=watcher,
    )


async def start_replicas(
    model_dir: Path,
    engine: EngineOptions,
    *,
    gpus: Sequence[tuple[int, ...]] = (),
    start: StartEngine = VllmEngine.start,
) -> list[Engine]:
    """The replicas, named by number: all, or none where one did not start.

    One after the other: a replica on a CPU reads its threads from this process's environment, and those that share a
    GPU measure what is free of it.
    """
    started: list[Engine] = []
    try:
        for number in range(engine.replicas):
            threads = engine.threads or threads_of(number, engine.replicas)
            started.append(
                await start(
                    model_dir,
                    engine.model_copy(update={"threads": threads}),
                    name=str(number),
                    version=origin(model_dir)[1],
                    gpus=gpus[number] if gpus else (),
                )
            )
    except BaseException:  # an interrupt too: what runs without an owner would go on running
        for replica in started:
            await replica.close()
        raise
    return started


def open_policy(rest: str, **options: Any) -> LazyPolicy:
    """The entry point ``vllm:MODEL``: a policy whose engine starts with its first session.

    Where the model is made first, which takes half a minute, stderr hears of it: every command opens policies here.

    Args:
        rest: a name or folder that `trainer.models.resolve_model` knows.
        options: fields of `EngineOptions` and `Sampling`.

    Raises:
        UsageError: no such model.
        pydantic.ValidationError: an unknown option or a value out of range.
    """
    sampling = {key: value for key, value in options.items() if key in Sampling.model_fields}
    engine = {key: value for key, value in options.items() if key not in sampling}
    model_dir = resolve_model(rest, progress=partial(print, file=sys.stderr, flush=True))
    return LazyPolicy(model_dir, EngineOptions(**engine), Sampling(**sampling))


class LazyPolicy:
    """A `TokenPolicy` that is started when it is first needed, once, however many episodes ask at the same time."""

    def __init__(self, model_dir: Path, engine: EngineOptions, sampling: Sampling) -> None:
        self.id = policy_id(model_dir, engine=engine, sampling=sampling)
        self._model_dir = model_dir
        self._options = engine
        self._sampling = sampling
        self._lock = asyncio.Lock()
        self._started: TokenPolicy | None = None

    @property
    def ready(self) -> bool:
        """Whether the engine runs; until the first session asked for it and it has started, it doesn't."""
        return self._started is not None

    async def begin(self, *, session_id: str, group_id: str = "", seed: int | None = None) -> Session:
        async with self._lock:
            if self._started is None:
                engine = self._options
                placed = place(
                    visible_gpus(), learner=None, replicas=engine.replicas, per_replica=engine.tensor_parallel
                )
                self._started = await start_policy(
                    self._model_dir,
                    engine=sharing(engine, placed),
                    sampling=self._sampling,
                    gpus=placed.replicas,
                )
        return await self._started.begin(session_id=session_id, group_id=group_id, seed=seed)

    async def close(self) -> None:
        if self._started is not None:
            await self._started.close()


def policy_id(model_dir: Path, *, engine: EngineOptions, sampling: Sampling) -> PolicyId:
    """Name the policy that this machine's vLLM makes of a model folder: by its lineage, where it was trained here."""
    lineage = origin(model_dir)[0]
    distribution = packages_distributions().get("vllm", ["vllm"])[0]
    return PolicyId(
        model=lineage,
        revision=revision(model_dir),
        lineage=lineage,
        engine=f"{distribution} {version(distribution)}",
        precision=engine.dtype,
        sampling=sampling.model_dump(),
    )


def load_tokenizer(model_dir: Path) -> Any:
    """The tokenizer of a model folder, without a look at any network."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(model_dir, local_files_only=True)
