"""Forking and freezing real bubblewrap sandboxes: what a freeze may not lose, and what it must not start."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from envsdk.home import BASE_IMAGE
from envsdk.sandboxes import open_provider
from envsdk.sandboxes.base import SandboxSpec

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.bubblewrap]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def provider() -> AsyncIterator[Any]:
    opened = open_provider("bubblewrap")
    yield opened
    await opened.close()


@pytest_asyncio.fixture(loop_scope="module")
async def box(provider: Any) -> AsyncIterator[Any]:
    image = await provider.ensure_image(None, BASE_IMAGE)
    opened = await provider.start(SandboxSpec(image=image), 60.0)
    yield opened
    await opened.close()


async def test_a_command_under_way_at_a_fork_is_lost_and_not_killed_by_the_model(box: Any) -> None:
    running = asyncio.ensure_future(box.exec("echo before; sleep 60"))
    await box.exec("until pgrep -x sleep; do :; done")
    (child,) = await box.fork(1)
    ended = await running
    assert (ended.channel_lost, ended.signal, ended.stdout) == (True, None, b"before\n")
    await child.close()


async def test_a_forked_sandbox_that_is_only_closed_is_not_started_again(box: Any) -> None:
    before = box._running.process.pid
    (child,) = await box.fork(1)
    await box.close()
    assert box._running.process.pid == before
    assert (await child.exec("echo on")).stdout == b"on\n"
    await child.close()


async def test_a_forked_sandbox_goes_on_with_its_files_at_its_next_use_once_for_many_users(box: Any) -> None:
    await box.write("/app/kept", b"kept")
    (child,) = await box.fork(1)
    results = await asyncio.gather(*(box.exec("cat /app/kept; echo more >> /app/log") for _ in range(8)))
    assert {result.stdout for result in results} == {b"kept"}
    assert (await box.exec("wc -l < /app/log")).stdout == b"8\n"
    assert not (await child.exec("test -e /app/log")).ok
    await child.close()


async def test_snapshots_in_a_row_stack_no_empty_layers(box: Any) -> None:
    await box.write("/app/one", b"1")
    first = await box.snapshot()
    depth = len(box.layers)
    assert (await box.snapshot()).id == first.id
    children = await box.fork(2)
    assert len(box.layers) == depth
    assert [await child.read("/app/one") for child in children] == [b"1", b"1"]
    await asyncio.gather(*(child.close() for child in children))


async def test_a_snapshot_outlives_the_forks_that_were_made_from_the_same_files(provider: Any, box: Any) -> None:
    await box.write("/app/one", b"1")
    snapshot = await box.snapshot()
    for child in await box.fork(2):
        await child.close()
    await provider.settled()
    (again,) = await provider.start_from(snapshot, box.spec)
    assert await again.read("/app/one") == b"1"
    await again.close()


async def test_what_is_written_up_to_the_freeze_is_in_the_fork(box: Any) -> None:
    script = "i=0; while [ $i -lt 500 ]; do echo $i > /app/f$i; i=$((i+1)); done; rm -rf /app/f1 /etc/passwd-"
    await box.exec(script, user="root")
    (child,) = await box.fork(1)
    listed = await child.exec("ls /app | wc -l; test -e /etc/passwd-; echo $?")
    assert listed.stdout == b"499\n1\n"
    await child.close()


async def test_a_closed_frozen_sandbox_says_that_its_link_is_gone(box: Any) -> None:
    await box.snapshot()
    await box.close()
    assert (await box.exec("true")).channel_lost


async def test_an_allow_list_holds_in_forks_and_after_a_freeze_and_leaves_no_socket(provider: Any) -> None:
    image = await provider.ensure_image(None, BASE_IMAGE)
    files_before = len(list(Path("/proc/self/fd").iterdir()))
    box = await provider.start(SandboxSpec(image=image, network="allowlist", allowed_hosts=("a.invalid",)), 60.0)
    (child,) = await box.fork(1)
    ask = (
        "import urllib.request as u\ntry: u.urlopen('http://b.invalid/', timeout=5)\nexcept OSError as e: print(e.code)"
    )
    for each in (box, child):
        assert (await each.exec(["python3", "-c", ask])).stdout == b"403\n"
        assert each._egress.refused == {"b.invalid:80"}
    await asyncio.gather(box.close(), child.close())
    await provider.settled()
    await asyncio.sleep(0)
    assert len(list(Path("/proc/self/fd").iterdir())) <= files_before
