"""A policy over engines: sessions that hold a conversation as tokens.

The chat template is rendered once, for the first prompt; after that a turn appends the tokens between two replies and
what the engine generated, as generated (law 5). Every token carries its logprob, its mask and the weight version that
made it. A turn's cached prefix is salted by the version that serves when it starts, so no turn reuses what older
weights computed, and a group's siblings share their prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from envsdk.episode.record import PolicyId, TokenTrace, VersionSpan
from envsdk.frozen import Frozen
from envsdk.policy import Finish, Message, Reply, Session
from trainer.engines.base import Generation, Request
from trainer.engines.chat import ChatTokens
from trainer.engines.rotation import Rotation

_ABORT_MARGIN_S = 0.25
"""A reply is cut so long before its caller's deadline, so that the tokens made until then are handed over."""


class Sampling(Frozen):
    """How tokens are drawn. No truncation of the support: the trainer's ratios need the full distribution."""

    temperature: float = 1.0


class Watcher(Protocol):
    """Told when a session begins and ends to wait for the engine, and what it got: what idle times are made of."""

    def generating(self, session_id: str) -> None: ...
    def acting(self, session_id: str) -> None: ...
    def served(self, *, prompt_tokens: int, cached_tokens: int, generated_tokens: int) -> None: ...


class _NoWatcher:
    def generating(self, session_id: str) -> None: ...
    def acting(self, session_id: str) -> None: ...
    def served(self, *, prompt_tokens: int, cached_tokens: int, generated_tokens: int) -> None: ...


class TokenPolicy:
    """A policy over a rotation of engines. Close it to stop the engines."""

    def __init__(
        self,
        rotation: Rotation,
        chat: ChatTokens,
        *,
        identity: PolicyId,
        sampling: Sampling | None = None,
        watcher: Watcher | None = None,
    ) -> None:
        self.id = identity
        self.rotation = rotation
        self.chat = chat
        self.sampling = sampling or Sampling()
        self.watcher: Watcher = watcher or _NoWatcher()

    async def begin(self, *, session_id: str, group_id: str = "", seed: int | None = None) -> Session:  # noqa: ARG002
        """Start a conversation. Siblings of a group share their cached prompt without being told to."""
        return TokenSession(self, session_id, seed)

    async def close(self) -> None:
        await self.rotation.close()


class TokenSession:
    """One conversation, as tokens. N grows by appending only."""

    def __init__(self, policy: TokenPolicy, session_id: str, seed: int | None) -> None:
        self._policy = policy
        self._id = session_id
        self._seed = seed
        self._turns = 0
        self._ids: list[int] = []
        self._mask: list[int] = []
        self._logprobs: list[float] = []
        self._versions: list[VersionSpan] = []
        self._prompt_len = 0

    async def reply(
        self,
        new_messages: Sequence[Message],
        *,
        max_tokens: int,
        stop: Sequence[str] = (),
        timeout_s: float | None = None,
    ) -> Reply:
        """Append ``new_messages`` and generate.

        Raises:
            EngineError: the engine failed.
            TimeoutError: ``timeout_s`` passed before the first token: the engine kept everybody waiting. A reply that
                was cut off later is returned as far as it came, with finish ``length``.
        """
        self._append_context(new_messages)
        context = len(self._ids)
        async with self._policy.rotation.turn(self._id) as engine:
            room = engine.max_model_len - context
            if room < 1:
                return Reply(text="", finish="context_full", prompt_tokens=context)
            request = Request(
                request_id=f"{self._id}.{self._turns}",
                prompt_ids=tuple(self._ids),
                max_tokens=min(max_tokens, room),
                temperature=self._policy.sampling.temperature,
                stop=tuple(stop),
                seed=None if self._seed is None else self._seed + self._turns,
                salt=str(engine.version),
                timeout_s=None if timeout_s is None else max(timeout_s - _ABORT_MARGIN_S, timeout_s / 2),
            )
            self._policy.watcher.generating(self._id)
            try:
                made = await engine.generate(request)
            finally:
                self._policy.watcher.acting(self._id)
        self._policy.watcher.served(
            prompt_tokens=context, cached_tokens=made.cached_tokens, generated_tokens=len(made.ids)
        )
        if made.finish == "cut" and not made.ids:
            raise TimeoutError(f"no token came within {timeout_s} s")
        self._append_reply(made)
        return Reply(
            text=made.text,
            finish=_finish(made, room=room, max_tokens=max_tokens),
            generated_tokens=len(made.ids),
            prompt_tokens=context,
            cached_prompt_tokens=made.cached_tokens,
            weight_version=made.versions[-1].version if made.versions else None,
            queue_s=made.queue_s,
            prefill_s=made.prefill_s,
            decode_s=made.decode_s,
        )

    def trace(self) -> TokenTrace:
        """Every token so far."""
        return TokenTrace(
            ids=tuple(self._ids),
            loss_mask=tuple(self._mask),
            logprobs=tuple(self._logprobs),
            versions=tuple(self._versions),
            prompt_len=self._prompt_len,
        )

    async def close(self) -> None:
        self._policy.rotation.release(self._id)

    def _append_context(self, messages: Sequence[Message]) -> None:
        if not self._ids:
            new = self._policy.chat.first_prompt(messages)
            self._prompt_len = len(new)
        else:
            new = self._policy.chat.continuation(messages, after=self._ids[-1])
        self._ids += new
        self._mask += [0] * len(new)
        self._logprobs += [0.0] * len(new)

    def _append_reply(self, made: Generation) -> None:
        start = len(self._ids)
        self._ids += made.ids
        self._mask += [1] * len(made.ids)
        self._logprobs += made.logprobs
        self._versions += [
            VersionSpan(version=span.version, start=start + span.start, end=start + span.end) for span in made.versions
        ]
        self._turns += 1


def _finish(made: Generation, *, room: int, max_tokens: int) -> Finish:
    if made.finish == "stop":
        return "stop"
    return "context_full" if made.finish == "length" and room <= max_tokens else "length"
