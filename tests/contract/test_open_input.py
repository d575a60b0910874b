"""Commands whose input goes on while they run, over real sandboxes' channels."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from envsdk.home import BASE_IMAGE
from envsdk.sandboxes import open_provider
from envsdk.sandboxes.base import SandboxSpec
from tests.fakes.back_ends import BACK_ENDS

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=BACK_ENDS)
async def box(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    provider: Any = open_provider(request.param)
    yield await provider.start(SandboxSpec(image=await provider.ensure_image(None, BASE_IMAGE)), 60.0)
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


async def test_input_that_nobody_reads_ends_and_holds_up_nobody(box: Any) -> None:
    async def flood() -> AsyncIterator[bytes]:
        for _ in range(64):
            yield bytes(65536)

    running = asyncio.ensure_future(box.exec("sleep 1; wc -c", feed=flood()))
    assert (await box.exec("echo on")).stdout == b"on\n"
    assert 65536 <= int((await running).stdout) < 4194304


async def test_cancelling_ends_a_command_that_waits_for_input(box: Any) -> None:
    talk = Conversation()
    running = asyncio.ensure_future(box.exec("echo up; exec cat", feed=talk.feed(), on_output=talk.hear))
    assert await talk._output.get() == b"up\n"
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert not (await box.exec("sleep 0.2; pgrep -x cat")).ok
