"""A policy that says what it was given to say, and keeps what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from envsdk.episode.record import PolicyId, TokenTrace, VersionSpan
from envsdk.policy import Message, Reply, Session


@dataclass
class ScriptedPolicy:
    """Each session says ``replies`` in order; an exception among them is raised, a number is slept for before the next."""

    replies: Sequence[Reply | str | Exception | float]
    id: PolicyId = field(default_factory=lambda: PolicyId(model="scripted"))
    complete: bool | None = True
    heard: list[tuple[Message, ...]] = field(default_factory=list)
    open_sessions: int = 0

    async def begin(self, *, session_id: str, group_id: str = "", seed: int | None = None) -> Session:
        self.open_sessions += 1
        return ScriptedSession(self, list(self.replies))

    async def close(self) -> None:
        return None


@dataclass
class ScriptedSession:
    """One conversation; tokens are made up, one a word."""

    policy: ScriptedPolicy
    left: list[Reply | str | Exception | float]
    ids: list[int] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)

    async def reply(
        self,
        new_messages: Sequence[Message],
        *,
        max_tokens: int,
        stop: Sequence[str] = (),
        timeout_s: float | None = None,
    ) -> Reply:
        self.policy.heard.append(tuple(new_messages))
        said = self.left.pop(0)
        while isinstance(said, int | float):
            await asyncio.sleep(said)
            said = self.left.pop(0)
        if isinstance(said, Exception):
            raise said
        reply = (
            said
            if isinstance(said, Reply)
            else Reply(text=said, finish="stop", generated_tokens=len(said.split()) or 1)
        )
        self.ids += [7, *range(reply.generated_tokens)]
        self.mask += [0, *[1] * reply.generated_tokens]
        return reply

    def trace(self) -> TokenTrace | None:
        if self.policy.complete is None:
            return None
        spans, start = [], None
        for place, generated in enumerate([*self.mask, 0]):
            if generated and start is None:
                start = place
            elif not generated and start is not None:
                spans.append(VersionSpan(version=3, start=start, end=place))
                start = None
        return TokenTrace(
            ids=tuple(self.ids),
            loss_mask=tuple(self.mask),
            logprobs=tuple(-0.5 * bit for bit in self.mask),
            versions=tuple(spans),
            prompt_len=1,
            complete=self.policy.complete,
        )

    async def close(self) -> None:
        self.policy.open_sessions -= 1
