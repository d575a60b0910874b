"""Crowds that acquire, use, fork, cancel and close at random on both back ends; in the end nothing is left of any."""

import asyncio
import contextlib
import gc
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from envsdk.errors import SandboxError
from envsdk.home import BASE_IMAGE, images_dir
from envsdk.sandboxes import cgroups, open_provider
from envsdk.sandboxes.base import Limits, SandboxSpec
from envsdk.sandboxes.owner import OWNER_LABEL, this_owner

BACK_ENDS = [
    pytest.param("docker", 16, marks=pytest.mark.docker),
    pytest.param("bubblewrap", 64, marks=pytest.mark.bubblewrap),
]


def open_files() -> dict[str, str]:
    """What this process's descriptors lead to, by number; the listing's own is left out."""
    found = {}
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found[path.name] = str(path.readlink())
    return found


def mounts() -> set[str]:
    return {line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines() if "envsdk" in line}


async def one_life(provider: Any, spec: SandboxSpec, rng: random.Random, seen: set[str]) -> None:
    """Acquire, do something that may fail by another's doing, close: what is asserted is what may never happen."""
    box = await provider.acquire(spec)
    seen.add(box.id)
    others = []
    try:
        marker = str(rng.random())
        await box.write("/app/mine", marker.encode())
        kind = rng.randrange(5)
        if kind == 0:
            others = await box.fork(2)
            assert [await other.read("/app/mine") for other in others] == [marker.encode()] * 2
        elif kind == 1:
            await box.exec("kill -9 -1; kill -9 $$")
        elif kind == 2:
            await asyncio.gather(box.exec("sleep 30", timeout_s=0.1), box.kill_agent_processes(), box.exec("echo"))
        elif kind == 3:
            await asyncio.gather(box.exec("sleep 30"), box.close())
            return
        assert await box.read("/app/mine") == marker.encode()
    finally:
        await asyncio.gather(box.close(), box.close(), *(other.close() for other in others))


@pytest.mark.slow
@pytest.mark.timeout(170)
@pytest.mark.parametrize(("name", "width"), BACK_ENDS)
async def test_a_crowd_with_cancels_leaves_nothing(name: str, width: int) -> None:
    rng = random.Random(7)
    gc.collect()
    files_before, mounts_before = open_files(), mounts()
    provider: Any = open_provider(name)
    image = await provider.ensure_image(None, BASE_IMAGE)
    specs = [SandboxSpec(image=image, limits=Limits(memory_mib=memory_mib, pids=64)) for memory_mib in (128, 192)]
    seen: set[str] = set()
    await asyncio.gather(*(provider.prewarm(spec, width // 8) for spec in specs))
    lives = [
        asyncio.ensure_future(one_life(provider, rng.choice(specs), random.Random(number), seen))
        for number in range(2 * width)
    ]
    for life in rng.sample(lives, width // 3):
        asyncio.get_running_loop().call_later(rng.random() * 3, life.cancel)
    ends = await asyncio.gather(*lives, return_exceptions=True)
    wrong = [end for end in ends if isinstance(end, Exception) and not isinstance(end, SandboxError)]
    assert wrong == []
    assert not [end for end in ends if isinstance(end, SandboxError)], ends
    await provider.close()
    if name == "docker":
        listed = ["docker", "ps", "-aq", "--filter", f"label={OWNER_LABEL}={this_owner()}"]
        assert subprocess.run(listed, capture_output=True, check=True).stdout == b""
        images = ["docker", "images", "-aq", "--filter", f"label={OWNER_LABEL}={this_owner()}"]
        kept = ["--filter", "label=envsdk.kind=snapshot"]
        assert subprocess.run([*images, *kept], capture_output=True, check=True).stdout == b""
    owner = this_owner()
    assert list((images_dir() / "bubblewrap" / "boxes").glob(f"{owner}/*")) == []
    assert list((images_dir() / "bubblewrap" / "l").glob(f"s*-{owner.pid}-{owner.started}-*")) == []
    assert not {group.folders[0][1].name for group in cgroups.leftovers()} & seen
    assert mounts() - mounts_before == set()
    gc.collect()
    left = {number: to for number, to in open_files().items() if files_before.get(number) != to}
    assert not [to for to in left.values() if "socket" in to or "memfd" in to or "pidfd" in to], left


@pytest.mark.bubblewrap
async def test_a_fork_cancelled_in_the_middle_leaves_its_parent_whole() -> None:
    provider: Any = open_provider("bubblewrap")
    image = await provider.ensure_image(None, BASE_IMAGE)
    box = await provider.acquire(SandboxSpec(image=image))
    await box.write("/app/kept", b"1")
    for delay_s in (0.0, 0.001, 0.004, 0.01, 0.02):
        forking = asyncio.ensure_future(box.fork(3))
        await asyncio.sleep(delay_s)
        forking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            for child in await forking:
                await child.close()
        assert await box.read("/app/kept") == b"1"
    await box.close()
    await provider.settled()
    assert provider._open == set()
    await provider.close()
