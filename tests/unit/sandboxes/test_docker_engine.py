"""The engine's async face, without an engine: what it holds is let go of, whatever interrupts it."""

from __future__ import annotations

import asyncio
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from envsdk.errors import PrerequisiteError
from envsdk.sandboxes.docker_engine import Engine


def open_files() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


@pytest.mark.parametrize("listed", [True, False], ids=["nobody-listens", "no-such-socket"])
def test_an_engine_that_does_not_answer_costs_no_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listed: bool
) -> None:
    place = tmp_path / "docker.sock"
    if listed:
        with socket.socket(socket.AF_UNIX) as gone:
            gone.bind(str(place))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{place}")
    before = open_files()
    with pytest.raises(PrerequisiteError) as caught:
        Engine.connect()
    assert caught.value.code == "no_docker"
    assert open_files() == before


async def test_a_stream_that_comes_after_its_caller_left_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine.__new__(Engine)
    engine._threads, engine._socket = ThreadPoolExecutor(1), ""
    ours, theirs = socket.socketpair()
    entered, leave = threading.Event(), threading.Event()

    def taken_late(_container: str) -> socket.socket:
        entered.set()
        leave.wait(10)
        return ours

    monkeypatch.setattr(engine, "_attach_socket", taken_late)
    attaching = asyncio.ensure_future(engine.attach("box"))
    await asyncio.to_thread(entered.wait, 10)
    attaching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await attaching
    leave.set()
    theirs.settimeout(10)
    with theirs:
        assert await asyncio.to_thread(theirs.recv, 1) == b""
    engine._threads.shutdown()
