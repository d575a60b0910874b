"""A server in the agent's box may say what it likes, as long as it likes: it fills no memory, and its end has a reason."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterable, Awaitable, Callable
from typing import Any

import pytest
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCResponse

from envsdk.episode import mcp_stdio
from envsdk.episode.mcp_stdio import BACKLOG_BYTES, LINE_BYTES, QUESTIONS, Ending, Lines, over_stdio
from envsdk.errors import SandboxError
from envsdk.sandboxes.base import ExecResult
from envsdk.spec.model import McpServer

SERVER = McpServer(name="near", transport="stdio", command="server")
Say = Callable[[str], None]


class FakeBox:
    """Runs a function in place of a command; ``was_ended``: it was cancelled."""

    def __init__(self, serve: Callable[[Say, AsyncIterable[bytes]], Awaitable[int]]) -> None:
        self._serve = serve
        self.was_ended = False

    async def exec(self, command: Any, *, feed: AsyncIterable[bytes], on_output: Any, **_: Any) -> ExecResult:
        on_output(2, b"last words")
        try:
            code = await self._serve(lambda text: on_output(1, text.encode()), feed)
        except asyncio.CancelledError:
            self.was_ended = True
            raise
        return ExecResult(exit_code=code, stdout=b"", stderr=b"")


def opened(serve: Callable[[Say, AsyncIterable[bytes]], Awaitable[int]], ending: Ending) -> tuple[FakeBox, Any]:
    box: Any = FakeBox(serve)
    return box, over_stdio(box, SERVER, ending)


def line(**fields: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", **fields}) + "\n"


ANSWER = line(id=1, result={})


async def for_ever(*_: Any) -> int:
    await asyncio.Event().wait()
    return 0


async def heard(heard_of: Any) -> list[Any]:
    return [item.message async for item in heard_of]


async def test_answers_are_heard_among_words_and_notifications_which_are_not() -> None:
    async def serve(say: Say, _feed: AsyncIterable[bytes]) -> int:
        say("words\n" + line(method="notifications/message", params={"level": "info", "data": "x"}) * 1000)
        say(ANSWER[:7])
        say(ANSWER[7:] + '{"half": ')
        return 0

    _, way = opened(serve, ending := Ending())
    async with way as (heard_of, _sent):
        assert [message.id for message in await heard(heard_of)] == [1]
    assert ending.why == "it ended with 0; it wrote: last words"


async def test_a_server_that_writes_faster_than_it_is_read_is_ended_with_that_reason() -> None:
    async def serve(say: Say, _feed: AsyncIterable[bytes]) -> int:
        text = "y\n" * (1 << 16)
        for _ in range(BACKLOG_BYTES // len(text) + 1):
            say(text)
        return await for_ever()

    box, way = opened(serve, ending := Ending())
    streams = await way.__aenter__()
    assert await heard(streams[0]) == []
    closed = RuntimeError("what a session raises whose connection was closed")
    with pytest.raises(SandboxError, match="faster than they could be read") as caught:
        await way.__aexit__(RuntimeError, closed, None)
    assert (caught.value.code, caught.value.where) == ("mcp_lost", "near")
    assert ending.why == caught.value.message
    assert box.was_ended


async def test_what_nobody_reads_is_bounded_and_gone_with_the_server() -> None:
    lines = Lines(ending := Ending())
    held = 0
    while not ending.why:
        lines.take(b"x" * 1000 + b"\n")
        held += 1000
        assert held <= BACKLOG_BYTES
    lines.take(b"more\n")
    assert [each async for each in lines] == []


async def test_many_short_lines_count_for_what_they_take() -> None:
    lines = Lines(ending := Ending())
    lines.take(b"y\n" * (BACKLOG_BYTES // 100))
    assert ending.why


async def test_what_was_read_counts_no_more() -> None:
    lines = Lines(ending := Ending())
    reading = aiter(lines)
    for _ in range(4):
        lines.take(b"x" * (BACKLOG_BYTES // 2) + b"\n")
        assert len(await anext(reading)) == BACKLOG_BYTES // 2
    assert not ending.why


async def test_a_line_without_an_end_ends_its_server() -> None:
    lines = Lines(ending := Ending())
    lines.take(b"x" * LINE_BYTES)
    assert not ending.why
    lines.take(b"x")
    assert "a line of more than 16 MiB" in ending.why


async def test_a_server_that_asks_and_reads_no_answer_is_ended() -> None:
    async def serve(say: Say, _feed: AsyncIterable[bytes]) -> int:
        for number in range(QUESTIONS + 1):
            say(line(id=number, method="ping"))
        return await for_ever()

    box, way = opened(serve, ending := Ending())
    async with way as (heard_of, _sent):
        assert len(await heard(heard_of)) <= QUESTIONS + 1
    assert "read no answer" in ending.why
    assert box.was_ended


async def test_questions_that_are_answered_may_go_on() -> None:
    asked = QUESTIONS + 10

    async def serve(say: Say, feed: AsyncIterable[bytes]) -> int:
        number = 0
        say(line(id=number, method="ping"))
        async for _answer in feed:
            number += 1
            if number == asked:
                return 0
            say(line(id=number, method="ping"))
        return 1

    _, way = opened(serve, ending := Ending())
    async with way as (heard_of, sent):
        async for question in heard_of:
            answer = JSONRPCResponse(jsonrpc="2.0", id=question.message.id, result={})
            await sent.send(SessionMessage(answer))
    assert ending.why.startswith("it ended with 0")


async def test_a_server_that_is_left_is_ended_without_a_reason_of_its_own() -> None:
    box, way = opened(for_ever, ending := Ending())
    async with way:
        await asyncio.sleep(0)
    assert box.was_ended
    assert not ending.why


def test_the_backlog_has_room_for_the_longest_line() -> None:
    assert BACKLOG_BYTES > LINE_BYTES + mcp_stdio._HELD_BYTES
