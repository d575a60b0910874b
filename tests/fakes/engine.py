"""A fake inference engine: tokens without a model, but caches, pauses, versions and failures as a real one has them.

Every token's logprob is a function of the *true* weights (loaded or stale, see ``stale_after_load``) and of its context,
so a test can tell what an engine really computed from what it claims. Prefix blocks are keyed by salt and content and
remember the version that computed them; ``stale_hits`` counts cached tokens that older weights had computed.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from envsdk.episode.record import VersionSpan
from envsdk.errors import EngineError
from trainer.engines.base import Generation, Request

END = 2


def true_logprob(version: int, context: Sequence[int], token: int) -> float:
    """What weights of ``version`` give ``token`` after ``context``: deterministic, different for every version."""
    digest = hashlib.sha256(repr((version, tuple(context), token)).encode()).digest()
    return -0.1 - digest[0] / 64


async def trainer_scores(version: int, sequences: Sequence[tuple[int, ...]]) -> list[list[float]]:
    """The trainer's side of a probe, at ``version``."""
    return [[true_logprob(version, ids[:i], ids[i]) for i in range(1, len(ids))] for ids in sequences]


class FakeEngine:
    """Implements `trainer.engines.base.Engine`.

    ``reply`` gives the tokens of a request. ``fail`` holds the names of calls that raise: pause, load, resume, generate.
    ``stale_after_load``: from this load on (1 is the first) the weights stay what they were, silently.
    """

    def __init__(
        self,
        name: str = "0",
        *,
        max_model_len: int = 512,
        reply: Callable[[Request], Sequence[int]] = lambda request: (11, 12, 13, END),
        version: int = 0,
    ) -> None:
        self.name = name
        self.max_model_len = max_model_len
        self.reply = reply
        self.fail: set[str] = set()
        self.stale_after_load: int | None = None
        self.calls: list[str] = []
        self.requests: list[Request] = []
        self.closed = False
        self.stale_hits = 0
        self.hits = 0
        self._label = version
        self._weights = version
        self._loads = 0
        self._open = asyncio.Event()
        self._open.set()
        self._cache: dict[tuple[str, tuple[int, ...]], int] = {}

    @property
    def alive(self) -> bool:
        return not self.closed

    @property
    def version(self) -> int:
        return self._label

    async def generate(self, request: Request) -> Generation:
        self._enter("generate")
        self.requests.append(request)
        cached = self._prefill(request)
        ids: list[int] = []
        logprobs: list[float] = []
        versions: list[int] = []
        for token in list(self.reply(request))[: request.max_tokens]:
            await self._open.wait()
            await asyncio.sleep(0)
            self._enter("token")
            logprobs.append(true_logprob(self._weights, (*request.prompt_ids, *ids), token))
            versions.append(self._label)
            ids.append(token)
        return Generation(
            ids=tuple(ids),
            logprobs=tuple(logprobs),
            text=" ".join(str(token) for token in ids if token != END),
            finish="stop" if ids and ids[-1] == END else "length",
            versions=_spans(versions),
            cached_tokens=cached,
        )

    async def made_tokens(self, count: int) -> None:
        """Wait until so many tokens were made in all."""
        while self.calls.count("token") < count:  # noqa: ASYNC110 - the loop is what lets the engine run
            await asyncio.sleep(0)

    async def score(self, ids: Sequence[int], *, salt: str) -> list[float]:
        self._enter("score")
        return [true_logprob(self._weights, ids[:i], ids[i]) for i in range(1, len(ids))]

    async def learner_that_agrees(self, sequences: Sequence[tuple[int, ...]]) -> list[list[float]]:
        """The trainer's side of a probe that finds no difference: for episodes that were recorded, not generated."""
        return await trainer_scores(self._weights, sequences)

    async def pause(self) -> None:
        self._enter("pause")
        self._open.clear()

    async def load(self, path: Path, *, version: int) -> None:
        self._enter("load")
        assert not self._open.is_set(), "weights change only while paused"
        self._loads += 1
        self._label = version
        if self.stale_after_load is None or self._loads < self.stale_after_load:
            self._weights = version

    async def resume(self) -> None:
        self._enter("resume")
        self._open.set()

    async def close(self) -> None:
        self.closed = True
        self._open.set()

    def _enter(self, call: str) -> None:
        self.calls.append(call)
        if self.closed:
            raise EngineError("the engine is closed", where=self.name)
        if call in self.fail:
            raise EngineError(f"{call}: 500", code="internal", where=self.name)

    def _prefill(self, request: Request) -> int:
        prompt, hit = request.prompt_ids, 0
        for length in range(1, len(prompt)):
            made_by = self._cache.get((request.salt, prompt[:length]))
            if made_by is None:
                break
            hit = length
            self.stale_hits += made_by != self._weights
        for length in range(1, len(prompt) + 1):
            self._cache.setdefault((request.salt, prompt[:length]), self._weights)
        self.hits += hit
        return hit


def _spans(versions: Sequence[int]) -> tuple[VersionSpan, ...]:
    spans: list[VersionSpan] = []
    for position, version in enumerate(versions):
        if spans and spans[-1].version == version:
            spans[-1] = VersionSpan(version=version, start=spans[-1].start, end=position + 1)
        else:
            spans.append(VersionSpan(version=version, start=position, end=position + 1))
    return tuple(spans)
