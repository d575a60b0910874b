"""What the trainer needs of an inference engine, and nothing about vLLM.

One *engine* serves one replica of the model. Its weights carry an integer version; `generate` tells which version made
each token. Changing weights takes three calls, so that `trainer.weights` can make a transaction of them: nothing here
decides whether a version counts. Every failure is an `EngineError`; a request that ran out of its time is not one (see
`Generation`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from envsdk.episode.record import VersionSpan


@dataclass(frozen=True, slots=True)
class Request:
    """One turn to generate.

    Attributes:
        prompt_ids: [P] the whole context so far, as tokens.
        stop: strings that end the reply.
        salt: requests with different salts share no cached prefix.
        timeout_s: seconds after which the reply is cut off where it stands; `None` for no limit.
    """

    request_id: str
    prompt_ids: tuple[int, ...]
    max_tokens: int
    temperature: float = 1.0
    stop: tuple[str, ...] = ()
    seed: int | None = None
    salt: str = ""
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class Generation:
    """What the engine made of a `Request`. T = generated tokens.

    Attributes:
        ids: [T] as sampled, the end-of-turn token included where it was sampled.
        logprobs: [T] of the sampled tokens, after temperature.
        text: decoded, without end-of-turn token and stop string.
        finish: ``cut`` where the time ran out; what was generated until then is here.
        versions: spans over 0..T that cover every token.
        cached_tokens: of the prompt, found in the prefix cache.
    """

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    text: str
    finish: Literal["stop", "length", "cut"]
    versions: tuple[VersionSpan, ...]
    cached_tokens: int = 0
    queue_s: float = 0.0
    prefill_s: float = 0.0
    decode_s: float = 0.0


@runtime_checkable
class Engine(Protocol):
    """One replica. ``max_model_len`` bounds prompt and reply together, in tokens."""

    name: str
    max_model_len: int

    @property
    def alive(self) -> bool:
        """It can still serve; an engine that died stays dead."""
        ...

    @property
    def version(self) -> int:
        """Version of the weights that serve now, committed or not (`trainer.weights` commits)."""
        ...

    async def generate(self, request: Request) -> Generation: ...

    async def score(self, ids: Sequence[int], *, salt: str) -> list[float]:
        """[N-1] logprob of each token of ``ids`` but the first, given those before it, at temperature 1."""
        ...

    async def pause(self) -> None:
        """Freeze running requests where they are; new ones wait. Nothing is lost, caches stay."""
        ...

    async def load(self, path: Path, *, version: int) -> None:
        """Replace the weights by those of a weight file and label what follows with ``version``. Only while paused."""
        ...

    async def resume(self) -> None: ...
    async def close(self) -> None: ...
