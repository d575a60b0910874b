"""The policy protocol: what generates, and nothing about how.

A policy opens one *session* per episode. The session holds the conversation in tokens, so that what the engine
generated is trained on as generated (law 5): the caller hands over only what is new, and never a re-rendered history.
Policies are named ``kind:rest`` (``vllm:MODEL``, ``openai:URL``) and found through the entry-point group
``envsdk.policies``: each entry is a callable ``(rest: str, **options) -> Policy``. ``oracle`` and ``noop`` are
agents, not policies: they generate nothing (see `envsdk.episode.agents`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

from envsdk.episode.record import PolicyId, TokenTrace
from envsdk.errors import EngineError
from envsdk.frozen import Frozen


class InferenceError(EngineError):
    """The engine's answer was an error, or none came.

    ``inference`` holds the facts of the exchange (`envsdk.outcome.facts.InferenceFact`): status, code, attempts,
    choices, completion_tokens, finish_reason, replica_healthy. They decide whose failure it was.
    """

    default_code = "inference_failed"

    def __init__(
        self, message: str, *, inference: Mapping[str, Any], code: str | None = None, hint: str = "", where: str = ""
    ) -> None:
        super().__init__(message, code=code, hint=hint, where=where)
        self.inference = dict(inference)


Finish = Literal["stop", "length", "context_full"]


class Message(Frozen):
    """One chat message. ``tool`` output is sent as role ``user``: small models know no other."""

    role: Literal["system", "user", "assistant"]
    content: str


class Reply(Frozen):
    """One generated turn.

    Attributes:
        finish: ``stop`` (end of turn or stop string), ``length`` (reply budget used up), ``context_full``.
        queue_s, prefill_s, decode_s: the engine's own split of the time, where it tells.
        weight_version: the newest version that generated a token of this reply.
    """

    text: str
    finish: Finish
    generated_tokens: int = 0
    prompt_tokens: int = 0
    cached_prompt_tokens: int = 0
    weight_version: int | None = None
    queue_s: float = 0.0
    prefill_s: float = 0.0
    decode_s: float = 0.0


@runtime_checkable
class Session(Protocol):
    """One episode's conversation. Raises `EngineError` where the engine fails; never an empty reply for a failure."""

    async def reply(
        self,
        new_messages: Sequence[Message],
        *,
        max_tokens: int,
        stop: Sequence[str] = (),
        timeout_s: float | None = None,
    ) -> Reply: ...

    def trace(self) -> TokenTrace | None:
        """Every token so far, or `None` where the engine gives none (a plain chat API)."""
        ...

    async def close(self) -> None: ...


@runtime_checkable
class Policy(Protocol):
    """Something that generates: an engine with a model in it."""

    id: PolicyId

    async def begin(self, *, session_id: str, group_id: str = "", seed: int | None = None) -> Session: ...
    async def close(self) -> None: ...
