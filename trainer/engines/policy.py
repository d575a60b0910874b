"""The policy ``vllm:MODEL``: from a model's name to a running `TokenPolicy`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Any

from envsdk.episode.record import PolicyId
from envsdk.policy import Session
from trainer.engines.chat import ChatTokens
from trainer.engines.rotation import Rotation
from trainer.engines.token_policy import Sampling, TokenPolicy, Watcher
from trainer.engines.vllm_engine import EngineOptions, VllmEngine
from trainer.model_folder import origin
from trainer.models import resolve_model

Progress = Callable[[str], None]


async def start_policy(
    model_dir: Path,
    *,
    engine: EngineOptions,
    sampling: Sampling,
    watcher: Watcher | None = None,
) -> TokenPolicy:
    """Start a replica of the model in ``model_dir`` and return the policy over it; 20-60 s.

    Raises:
        PrerequisiteError, EngineError: as `VllmEngine.start`.
    """
    replica = await VllmEngine.start(model_dir, engine, version=origin(model_dir)[1])
    return TokenPolicy(
        Rotation([replica]),
        ChatTokens(load_tokenizer(model_dir)),
        identity=policy_id(model_dir, engine=engine, sampling=sampling),
        sampling=sampling,
        watcher=watcher,
    )


def open_policy(rest: str, **options: Any) -> LazyPolicy:
    """The entry point ``vllm:MODEL``: a policy whose engine starts with its first session.

    Args:
        rest: a name or folder that `trainer.models.resolve_model` knows.
        options: fields of `EngineOptions` and `Sampling`.

    Raises:
        UsageError: no such model.
        pydantic.ValidationError: an unknown option or a value out of range.
    """
    sampling = {key: value for key, value in options.items() if key in Sampling.model_fields}
    engine = {key: value for key, value in options.items() if key not in sampling}
    return LazyPolicy(resolve_model(rest), EngineOptions(**engine), Sampling(**sampling))


class LazyPolicy:
    """A `TokenPolicy` that is started when it is first needed, once, however many episodes ask at the same time."""

    def __init__(self, model_dir: Path, engine: EngineOptions, sampling: Sampling) -> None:
        self.id = policy_id(model_dir, engine=engine, sampling=sampling)
        self._model_dir = model_dir
        self._options = engine
        self._sampling = sampling
        self._lock = asyncio.Lock()
        self._started: TokenPolicy | None = None

    async def begin(self, *, session_id: str, group_id: str = "", seed: int | None = None) -> Session:
        async with self._lock:
            if self._started is None:
                self._started = await start_policy(self._model_dir, engine=self._options, sampling=self._sampling)
        return await self._started.begin(session_id=session_id, group_id=group_id, seed=seed)

    async def close(self) -> None:
        if self._started is not None:
            await self._started.close()


def policy_id(model_dir: Path, *, engine: EngineOptions, sampling: Sampling) -> PolicyId:
    """Name the policy that this machine's vLLM makes of a model folder."""
    distribution = packages_distributions().get("vllm", ["vllm"])[0]
    return PolicyId(
        model=model_dir.name,
        lineage=origin(model_dir)[0],
        engine=f"{distribution} {version(distribution)}",
        precision=engine.dtype,
        sampling=sampling.model_dump(),
    )


def load_tokenizer(model_dir: Path) -> Any:
    """The tokenizer of a model folder, without a look at any network."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(model_dir, local_files_only=True)
