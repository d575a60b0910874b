"""Commands whose input goes on while they run, over real sandboxes' channels."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from envsdk.home import BASE_IMAGE
from envsdk.sandboxes import open_provider
from envsdk.sandboxes.base import Limits, SandboxSpec
from tests.fakes.back_ends import BACK_ENDS

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=BACK_ENDS)
async def box(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    provider: Any = open_provider(request.param)
    image = await provider.ensure_image(None, BASE_IMAGE)
    yield await provider.start(SandboxSpec(image=image, limits=Limits(memory_mib=96)), 60.0)
    await provider.close()


class Conversation:
    """A command's input and output, line by line."""

    def __init__(self) -> None:
        self._input: asyncio.Queue[bytes] = asyncio.Queue()
        self._output: asyncio.Queue[bytes] = asyncio.Queue()

    async def feed(self) -> AsyncIterator[bytes]:
        while data := await self._input.get():
            yield data

    def hear(self, _stream: int, data: bytes) -> None:
        self._output.put_nowait(data)

    async def ask(self, data: bytes) -> bytes:
        self._input.put_nowait(data)
        return await self._output.get()

    def end(self) -> None:
        self._input.put_nowait(b"")


async def test_a_command_answers_line_by_line_and_ends_with_its_input(box: Any) -> None:
    talk = Conversation()
    running = asyncio.ensure_future(
        box.exec("while read x; do echo got $x; done", feed=talk.feed(), on_output=talk.hear)
    )
    for number in range(50):
        assert await talk.ask(b"%d\n" % number) == b"got %d\n" % number
    assert (await box.exec("echo beside")).stdout == b"beside\n"
    talk.end()
    assert (await running).exit_code == 0


async def test_much_input_arrives_whole_where_it_is_read(box: Any) -> None:
    async def megabytes() -> AsyncIterator[bytes]:
        for _ in range(64):
            yield bytes(65536)
            await asyncio.sleep(0.005)

    assert (await box.exec(["wc", "-c"], feed=megabytes())).stdout.strip() == b"4194304"


async def test_input_waits_for_its_reader_and_holds_up_nobody_else(box: Any) -> None:
    running = asyncio.ensure_future(box.exec("sleep 1; wc -c", stdin=bytes(4194304)))
    assert (await box.exec("echo on")).stdout == b"on\n"
    assert (await running).stdout == b"4194304\n"


async def test_a_command_that_leaves_its_input_unread_ends_by_itself(box: Any) -> None:
    results = await asyncio.gather(
        *(box.exec(script, stdin=bytes(4194304)) for script in ("exit 3", "exec <&-; exit 4"))
    )
    assert [result.exit_code for result in results] == [3, 4]
    assert (await box.exec(["wc", "-c"], stdin=b"")).stdout.strip() == b"0"


async def test_what_is_written_may_be_larger_than_the_boxs_memory(box: Any) -> None:
    data = bytes(range(256)) * (160 << 12)
    await box.write("/var/tmp/large", data, user="root")
    assert (await box.exec("wc -c < /var/tmp/large")).stdout == b"167772160\n"
    assert await box.read("/var/tmp/large", max_bytes=len(data)) == data
    assert (await box.counters()).oom_kills in {0, None}


async def test_many_large_writes_at_once_each_end(box: Any) -> None:
    data = [bytes([number]) * 2_000_000 for number in range(12)]
    await asyncio.gather(*(box.write(f"/var/tmp/w{n}", part, user="root") for n, part in enumerate(data)))
    assert await asyncio.gather(*(box.read(f"/var/tmp/w{n}") for n in range(12))) == data


async def test_cancelling_ends_a_command_that_waits_for_input(box: Any) -> None:
    talk = Conversation()
    running = asyncio.ensure_future(box.exec("echo up; exec cat", feed=talk.feed(), on_output=talk.hear))
    assert await talk._output.get() == b"up\n"
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert not (await box.exec("sleep 0.2; pgrep -x cat")).ok
