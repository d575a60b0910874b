"""The owner's end against a helper played by the test: what it sends, and what it makes of each answer."""

import asyncio
import struct
from collections.abc import AsyncIterator, Callable

import pytest

from envsdk.errors import SandboxError
from envsdk.sandboxes.base import ExecResult
from envsdk.sandboxes.channel import Channel
from envsdk.sandboxes.frames import Op, Parser, frame


class PlayedHelper(asyncio.Transport):
    """Collects requests; the test answers them with the nonce it saw."""

    def __init__(self, channel: Channel) -> None:
        super().__init__()
        self.channel = channel
        self.requests: list[tuple[str, int, bytes]] = []
        self.is_closed = False
        self._nonce = b""
        self._parser: Parser | None = None

    def write(self, data: bytes | bytearray | memoryview) -> None:
        data = bytes(data)
        if self._parser is None:
            self._nonce = data[:16]
            self._parser = Parser(self._nonce)
        self.requests += [(chr(kind), number, payload) for kind, number, payload in self._parser.feed(data)]

    def close(self) -> None:
        self.is_closed = True

    def answer(self, kind: bytes, number: int, payload: bytes = b"") -> None:
        self.channel.data_received(frame(self._nonce, kind, number, payload))

    def end(self, number: int, *, how: int = 0, code: int = 0, timed_out: bool = False, total: int = 0) -> None:
        self.answer(b"X", number, struct.pack("<BIBQQQ", how, code, timed_out, total, 1_500_000, 0))


def connected() -> tuple[Channel, PlayedHelper]:
    channel = Channel()
    helper = PlayedHelper(channel)
    channel.connection_made(helper)
    return channel, helper


async def run(channel: Channel, act: Callable[[int], None], helper: PlayedHelper, **options: object) -> ExecResult:
    task = asyncio.ensure_future(channel.run(Op.SHELL, ["x"], user="agent", **options))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    act(helper.requests[-1][1])
    return await task


async def test_output_is_kept_apart_and_counted() -> None:
    channel, helper = connected()

    def act(number: int) -> None:
        helper.answer(b"O", number, b"out")
        helper.answer(b"E", number, b"err")
        helper.answer(b"O", number, b"put")
        helper.end(number, code=3, total=9)

    result = await run(channel, act, helper)
    assert (result.stdout, result.stderr, result.exit_code) == (b"output", b"err", 3)
    assert (result.truncated, result.seconds) == (False, 1.5)


async def test_what_was_not_kept_is_said_to_be_cut() -> None:
    channel, helper = connected()
    result = await run(channel, lambda number: helper.end(number, total=10), helper)
    assert result.truncated
    assert result.total_bytes == 10


async def test_a_signal_is_no_exit_code() -> None:
    channel, helper = connected()
    result = await run(channel, lambda number: helper.end(number, how=1, code=9), helper)
    assert (result.exit_code, result.signal) == (None, 9)


async def test_a_deadline_leaves_no_exit_code_even_where_the_command_slipped_out_in_time() -> None:
    channel, helper = connected()
    result = await run(channel, lambda number: helper.end(number, code=0, timed_out=True), helper)
    assert (result.timed_out, result.exit_code, result.ok) == (True, None, False)


async def test_a_broken_link_ends_every_command_with_what_it_wrote() -> None:
    channel, helper = connected()
    tasks = [asyncio.ensure_future(channel.run(Op.SHELL, ["x"], user="agent")) for _ in range(3)]
    await asyncio.sleep(0)
    helper.answer(b"O", helper.requests[1][1], b"half")
    channel.connection_lost(ConnectionResetError("gone"))
    results = await asyncio.gather(*tasks)
    assert [result.channel_lost for result in results] == [True, True, True]
    assert [result.stdout for result in results] == [b"", b"half", b""]
    assert all(result.exit_code is None for result in results)


async def test_a_forged_frame_loses_the_channel_rather_than_being_believed() -> None:
    channel, helper = connected()

    def act(number: int) -> None:
        channel.data_received(frame(b"?" * 16, b"X", number, struct.pack("<BIBQQQ", 0, 0, 0, 0, 0, 0)))

    result = await run(channel, act, helper)
    assert result.channel_lost
    assert helper.is_closed


async def test_a_command_after_the_loss_is_lost_at_once() -> None:
    channel, _ = connected()
    channel.close()
    result = await channel.run(Op.SHELL, ["x"], user="agent")
    assert result.channel_lost


async def test_cancelling_the_caller_kills_the_tree() -> None:
    channel, helper = connected()
    task = asyncio.ensure_future(channel.run(Op.SHELL, ["x"], user="agent"))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert helper.requests[-1][:2] == ("K", helper.requests[0][1])


async def test_answers_to_commands_nobody_awaits_are_dropped() -> None:
    channel, helper = connected()
    await run(channel, helper.end, helper)
    helper.end(1)
    helper.answer(b"O", 99, b"late")
    assert channel.lost is None


async def test_input_travels_in_pieces_that_add_up() -> None:
    channel, helper = connected()
    data = bytes(range(256)) * 2400
    task = asyncio.ensure_future(channel.run(Op.SHELL, ["x"], user="agent", stdin=data))
    await turns()
    for count in (1, 2, 3):
        pieces = [payload for kind, _, payload in helper.requests if kind == "D" and payload]
        assert len(pieces) == count  # the next one waits for its answer
        helper.answer(b"F", 1)
        await turns()
    assert b"".join(pieces) == data
    assert helper.requests[-1] == ("D", 1, b"")
    helper.end(1)
    assert (await task).ok


async def test_a_command_that_ends_without_reading_ends_its_input() -> None:
    channel, helper = connected()
    result = await run(channel, helper.end, helper, stdin=bytes(600_000))
    assert result.ok
    await turns()
    assert [len(payload) for kind, _, payload in helper.requests if kind == "D"] in ([], [0], [262144, 0])


async def test_input_waits_while_the_link_is_full() -> None:
    channel, helper = connected()
    channel.pause_writing()
    task = asyncio.ensure_future(channel.run(Op.SHELL, ["x"], user="agent", stdin=b"abc"))
    await asyncio.sleep(0)
    assert [kind for kind, *_ in helper.requests] == ["S"]
    channel.resume_writing()
    await asyncio.sleep(0)
    assert [kind for kind, *_ in helper.requests] == ["S", "D"]
    helper.end(1)
    await task


async def turns() -> None:
    """Let every task do what it can."""
    for _ in range(8):
        await asyncio.sleep(0)


async def pieces_of(queue: asyncio.Queue[bytes]) -> AsyncIterator[bytes]:
    while data := await queue.get():
        yield data


async def test_input_that_goes_on_travels_as_it_comes_until_it_ends() -> None:
    channel, helper = connected()
    queue: asyncio.Queue[bytes] = asyncio.Queue()
    task = asyncio.ensure_future(channel.run(Op.ARGV, ["x"], user="agent", feed=pieces_of(queue)))
    for data in (b"one\n", b"two\n", b""):
        queue.put_nowait(data)
        await turns()
        assert helper.requests[-1][::2] == ("D", data)
        helper.answer(b"F", 1)
    helper.end(1)
    await task


async def test_input_that_goes_on_stops_with_the_command() -> None:
    channel, helper = connected()
    queue: asyncio.Queue[bytes] = asyncio.Queue()
    task = asyncio.ensure_future(channel.run(Op.ARGV, ["x"], user="agent", feed=pieces_of(queue)))
    await asyncio.sleep(0)
    helper.end(1)
    await task
    queue.put_nowait(b"late")
    await turns()
    assert b"late" not in [payload for _, _, payload in helper.requests]


async def test_input_that_cannot_be_read_is_raised_and_not_what_came_of_half_of_it() -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"half"
        raise OSError("no more")

    channel, helper = connected()
    task = asyncio.ensure_future(channel.run(Op.ARGV, ["x"], user="agent", feed=broken()))
    await turns()
    helper.end(1, code=3)
    with pytest.raises(OSError, match="no more"):
        await task


async def test_output_is_streamed_to_a_listener_as_it_comes() -> None:
    channel, helper = connected()
    seen: list[tuple[int, bytes]] = []

    def act(number: int) -> None:
        helper.answer(b"O", number, b"a")
        helper.answer(b"E", number, b"b")
        assert seen == [(1, b"a"), (2, b"b")]
        helper.end(number, total=2)

    result = await run(channel, act, helper, on_output=lambda stream, data: seen.append((stream, data)))
    assert (result.stdout, result.stderr, result.truncated) == (b"", b"", False)


async def test_an_unknown_user_is_an_error_of_the_machinery() -> None:
    channel, helper = connected()
    with pytest.raises(SandboxError) as caught:
        await run(channel, lambda number: helper.end(number, how=2, code=1 << 16 | 2), helper)
    assert caught.value.code == "unknown_user"


async def test_no_process_left_is_the_commands_failure_and_no_error() -> None:
    channel, helper = connected()
    result = await run(channel, lambda number: helper.end(number, how=2, code=3 << 16 | 11), helper)
    assert result.exit_code == 126
    assert b"cannot start a process" in result.stderr


async def test_hello_tells_whether_there_is_a_shell() -> None:
    channel, helper = connected()
    task = asyncio.ensure_future(channel.hello("/app", "agent", timeout_s=5))
    await asyncio.sleep(0)
    helper.answer(b"R", 1, b"\x01\x00")
    assert await task is False


async def test_hello_names_a_work_folder_that_cannot_be_made() -> None:
    channel, helper = connected()
    task = asyncio.ensure_future(channel.hello("/proc/app", "agent", timeout_s=5))
    await asyncio.sleep(0)
    helper.answer(b"R", 1, b"\x02\x01")
    with pytest.raises(SandboxError, match="/proc/app") as caught:
        await task
    assert caught.value.code == "bad_workdir"


async def test_retiring_loses_what_is_under_way_and_tells_whether_all_are_gone() -> None:
    channel, helper = connected()
    running = asyncio.ensure_future(channel.run(Op.SHELL, ["sleep 9"], user="agent"))
    await asyncio.sleep(0)
    retiring = asyncio.ensure_future(channel.retire())
    await asyncio.sleep(0)
    (asked,) = [number for kind, number, _ in helper.requests if kind == "A"]
    helper.answer(b"N", asked, (1).to_bytes(4, "little"))
    assert await retiring
    assert ((await running).channel_lost, channel.lost) == (True, "the channel was closed")


async def test_a_broken_link_is_no_quiet_retirement_and_no_ping() -> None:
    channel, _ = connected()
    channel.connection_lost(None)
    assert not await channel.ping()
    assert not await channel.retire()


async def test_hello_of_a_broken_link_says_what_broke_it() -> None:
    channel, _ = connected()
    task = asyncio.ensure_future(channel.hello("/app", "agent", timeout_s=5))
    await asyncio.sleep(0)
    channel.connection_lost(None)
    with pytest.raises(SandboxError, match="closed at the other end") as caught:
        await task
    assert caught.value.code == "channel_lost"


async def test_hello_of_a_silent_helper_times_out() -> None:
    channel, _ = connected()
    with pytest.raises(SandboxError) as caught:
        await channel.hello("/app", "agent", timeout_s=0.01)
    assert caught.value.code == "start_timeout"


async def test_killing_all_returns_the_count() -> None:
    channel, helper = connected()
    task = asyncio.ensure_future(channel.kill_all())
    await asyncio.sleep(0)
    helper.answer(b"N", 1, (7).to_bytes(4, "little"))
    assert await task == 7
