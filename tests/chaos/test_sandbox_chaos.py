"""What must hold when things break: owners killed, sandboxes killed, hundreds in flight, images that are wrong."""

import asyncio
import collections
import gc
import io
import json
import random
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from envsdk.errors import SandboxError
from envsdk.home import BASE_IMAGE, images_dir
from envsdk.sandboxes import cgroups, open_provider
from envsdk.sandboxes.base import ExecResult, Limits, SandboxProvider, SandboxSpec
from envsdk.sandboxes.owner import OWNER_LABEL, this_owner
from envsdk.sandboxes.reaper import reap_all
from envsdk.sandboxes.services import start_services
from envsdk.spec.model import Digests, ServiceSpec, Task, TaskSpec
from tests.fakes.back_ends import BACK_ENDS

pytestmark = pytest.mark.asyncio(loop_scope="module")
SLEEPERS = b"sleep\00098765"


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=BACK_ENDS)
async def provider(request: pytest.FixtureRequest) -> AsyncIterator[SandboxProvider]:
    opened = open_provider(request.param)
    yield opened
    await opened.close()


@pytest_asyncio.fixture(loop_scope="module")
async def image(provider: SandboxProvider) -> str:
    return await provider.ensure_image(None, BASE_IMAGE)


def sleepers() -> int:
    """Processes on this machine that the killed owner's sandboxes had started."""
    count = 0
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            count += path.read_bytes().startswith(SLEEPERS)
        except OSError:
            continue
    return count


def left_in_engine(owner: str) -> list[str]:
    found: list[str] = []
    label = f"label={OWNER_LABEL}={owner}"
    for words in (["ps", "-a"], ["network", "ls"], ["images", "-a"]):
        listed = subprocess.run(["docker", *words, "-q", "--filter", label], capture_output=True, text=True, check=True)
        found += listed.stdout.split()
    return found


def left_on_disk(owner: str) -> list[str]:
    root = images_dir() / "bubblewrap"
    _, pid, started = owner.rsplit(".", 2)
    boxes = [str(path) for path in (root / "boxes").glob(f"{owner}*")]
    layers = [str(path) for path in (root / "l").glob(f"s*-{pid}-{started}-*")]
    return boxes + layers


def open_files() -> set[tuple[str, str]]:
    """Descriptors of this process, each with what it leads to: a number alone is used again."""
    found = set()
    for path in Path("/proc/self/fd").iterdir():
        try:
            found.add((path.name, str(path.readlink())))
        except FileNotFoundError:  # the listing's own
            continue
    return found


def own_boxes() -> set[Path]:
    """Folders of this process's sandboxes; other workers make and take theirs meanwhile."""
    return set((images_dir() / "bubblewrap" / "boxes").glob(f"{this_owner()}/*"))


@pytest.mark.parametrize("name", BACK_ENDS)
async def test_a_killed_owner_leaves_nothing(name: str) -> None:
    script = Path(__file__).with_name("sandbox_owner.py")
    owner = subprocess.Popen([sys.executable, str(script), name], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    with owner.stdout as out:
        told = json.loads(await asyncio.to_thread(out.readline))
    while sleepers() == 0:  # noqa: ASYNC110 - processes of another are seen by looking alone
        await asyncio.sleep(0.1)
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    for _ in range(200):  # every helper sees its input end and takes its sandbox along, before anything is reaped
        if sleepers() == 0:
            break
        await asyncio.sleep(0.1)
    assert sleepers() == 0
    await reap_all()
    left = left_in_engine(told["owner"]) if name == "docker" else left_on_disk(told["owner"])
    assert left == []
    assert not {group.folders[0][1].name for group in cgroups.leftovers()} & set(told["ids"])


async def test_a_closed_provider_leaves_nothing(provider: SandboxProvider, image: str) -> None:
    own = open_provider(provider.name)
    await own.ensure_image(None, BASE_IMAGE)
    spec = SandboxSpec(image=image, workdir="/srv/closing")
    await own.prewarm(spec, 2)
    box = await own.acquire(spec)
    children = await box.fork(2)
    await own.close()
    assert [result.channel_lost for result in await asyncio.gather(*(each.exec("true") for each in children))] == [
        True
    ] * 2
    if provider.name == "docker":
        known = subprocess.run(
            ["docker", "inspect", *(each.id for each in [box, *children])], capture_output=True, check=False
        )
        assert known.stdout.strip() == b"[]"


@pytest.mark.bubblewrap
async def test_a_start_that_is_cancelled_half_way_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    own: Any = open_provider("bubblewrap")
    image = await own.ensure_image(None, BASE_IMAGE)
    loop = asyncio.get_running_loop()
    gc.collect()  # what earlier tests left to the collector must not be closed in between
    files_before, boxes_before = open_files(), own_boxes()

    async def cancelled(*_: object, **__: object) -> None:
        assert own_boxes() > boxes_before
        raise asyncio.CancelledError

    with monkeypatch.context() as patch:
        patch.setattr(loop, "create_unix_connection", cancelled)
        with pytest.raises(asyncio.CancelledError):
            await own.start(SandboxSpec(image=image), 60.0)
    assert open_files() - files_before == set()
    assert own_boxes() == boxes_before
    await own.close()


@pytest.mark.docker
@pytest.mark.parametrize("asked", ["create_container", "commit", "create_network"])
async def test_what_a_cancelled_caller_asked_the_engine_for_goes_when_it_comes(
    monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    own: Any = open_provider("docker")
    image = await own.ensure_image(None, BASE_IMAGE)
    box = await own.start(SandboxSpec(image=image), 60.0)  # no pool, which would start more beside it
    before = left_in_engine(str(this_owner()))
    began, ended, made = threading.Event(), threading.Event(), getattr(own.engine.api, asked)

    def slowly(*args: Any, **options: Any) -> Any:
        began.set()
        time.sleep(0.3)
        try:
            return made(*args, **options)
        finally:
            ended.set()

    work = {
        "create_container": lambda: own.start(SandboxSpec(image=image), 60.0),
        "commit": box.snapshot,
        "create_network": lambda: own.open_network([]),
    }[asked]
    monkeypatch.setattr(own.engine.api, asked, slowly)
    running = asyncio.ensure_future(work())
    await asyncio.to_thread(began.wait)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await asyncio.to_thread(ended.wait)
    await own.settled()
    assert left_in_engine(str(this_owner())) == before
    await own.close()


async def test_a_sandbox_killed_from_outside_is_lost_and_says_how(provider: SandboxProvider, image: str) -> None:
    box = await provider.acquire(SandboxSpec(image=image))
    running = asyncio.ensure_future(box.exec("echo before; touch /app/there; sleep 600", timeout_s=900))
    await box.exec("until [ -e /app/there ]; do sleep 0.1; done")
    await box.exec("sleep 0.3")  # answered by the same helper, which has read the other's output by then
    if provider.name == "docker":
        subprocess.run(["docker", "kill", box.id], capture_output=True, check=True)
    else:
        box._running.process.kill()  # type: ignore[attr-defined]
    result = await running
    assert (result.channel_lost, result.stdout, result.exit_code) == (True, b"before\n", None)
    probe = await box.alive()
    assert not probe.alive
    assert probe.main_exit_code not in {None, 0}
    await box.close()


async def test_the_next_sandbox_is_whole_after_a_warm_one_was_killed(provider: SandboxProvider, image: str) -> None:
    spec = SandboxSpec(image=image, workdir="/srv/warm-killed")
    await provider.prewarm(spec, 1)
    (idle,) = [box for box in provider._open if box.spec == spec]  # type: ignore[attr-defined]
    idle._channel.close()
    box = await provider.acquire(spec)
    assert box is not idle
    assert (await box.exec("pwd")).stdout == b"/srv/warm-killed\n"
    await box.close()


async def test_a_dockerfile_that_fails_says_which_step_and_what_it_wrote(
    provider: SandboxProvider, tmp_path: Path
) -> None:
    (tmp_path / "Dockerfile").write_text("FROM envsdk-base:bookworm\nRUN echo why it fails >&2 && exit 3\n")
    with pytest.raises(SandboxError) as caught:
        await provider.ensure_image(tmp_path, None)
    assert caught.value.code == "build_failed"
    assert caught.value.where == str(tmp_path)
    log = Path(caught.value.hint.rpartition(" ")[2])
    assert "why it fails" in log.read_text()


async def test_a_dockerfile_that_never_ends_is_ended(provider: SandboxProvider, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM envsdk-base:bookworm\nRUN sleep 600\n")
    with pytest.raises(SandboxError) as caught:
        await provider.ensure_image(tmp_path, None, build_s=2.0)
    assert caught.value.code == "build_timeout"


async def test_many_builders_of_one_folder_build_once(provider: SandboxProvider, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(f"FROM envsdk-base:bookworm\nRUN date +%N > /stamp # {random.random()}\n")
    found = await asyncio.gather(*(provider.ensure_image(tmp_path, None) for _ in range(4)))
    assert len(set(found)) == 1
    other = open_provider(provider.name)
    assert await other.ensure_image(tmp_path, None) == found[0]
    await other.close()


async def test_a_service_that_exits_at_once_is_named_with_its_last_words(provider: SandboxProvider) -> None:
    service = ServiceSpec(name="web", image=BASE_IMAGE, command="echo no configuration >&2; exit 3", port=80)
    task = Task(
        spec=TaskSpec(slug="t", instruction="x", services=(service,)),
        digests=Digests(task="", verifier="", package=""),
        root=Path("/nowhere"),
    )
    with pytest.raises(SandboxError, match="no configuration") as caught:
        async with start_services(task, provider):
            pytest.fail("the service was taken for healthy")
    assert caught.value.code == "service_exited"
    assert caught.value.where == "web"


@pytest.mark.docker
async def test_an_image_without_a_shell_runs_shell_commands_and_files_all_the_same() -> None:
    provider: Any = open_provider("docker")
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        info = tarfile.TarInfo("data/only.txt")
        info.size = 4
        tar.addfile(info, io.BytesIO(b"only"))
    try:
        api = provider.engine.api
        await asyncio.to_thread(api.import_image_from_data, archive.getvalue(), "envsdk-shell-less", "1")
        image = await provider.ensure_image(None, "envsdk-shell-less:1")
        box = await provider.acquire(SandboxSpec(image=image, user="1000:1000", workdir="/work"))
        assert not box.has_shell
        assert await box.read("/data/only.txt") == b"only"
        result = await box.exec("read x < /data/only.txt; echo $x; exit 5")
        assert (result.stdout, result.exit_code) == (b"only\n", 5)
        assert (await box.exec(["no-such"])).exit_code == 127
    finally:
        await provider.close()
        subprocess.run(["docker", "rmi", "-f", "envsdk-shell-less:1"], capture_output=True, check=False)


async def test_an_engine_that_is_not_there_is_a_prerequisite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    with pytest.raises(Exception, match="no Docker engine answers") as caught:
        open_provider("docker")
    assert getattr(caught.value, "code", "") == "no_docker"


CLASSES = {
    "good": ("echo $N; exit $((N % 5))", 20.0),
    "hangs": ("setsid sleep 98764 & sleep 98764", 1.5),
    "kills its shell": ("echo $N; kill -9 $$", 20.0),
}


def seen_class(result: ExecResult) -> str:
    if result.timed_out:
        return "hangs"
    return "kills its shell" if result.signal == 9 else "good" if result.exit_code is not None else "lost"


@pytest.mark.slow
@pytest.mark.bubblewrap
@pytest.mark.timeout(280)
async def test_two_hundred_sandboxes_and_ten_thousand_commands_lose_nothing() -> None:
    provider: Any = open_provider("bubblewrap")
    image = await provider.ensure_image(None, BASE_IMAGE)
    rng = random.Random(5)
    kinds = rng.choices(list(CLASSES), weights=[94, 5, 1], k=10_000)
    spec = SandboxSpec(image=image, limits=Limits(memory_mib=256, pids=64))
    boxes = [await provider.start(spec, 60.0) for _ in range(200)]
    wrong: collections.Counter[tuple[str, str]] = collections.Counter()
    ended = 0

    async def live(index: int) -> None:
        nonlocal ended
        for number in range(index, len(kinds), len(boxes)):
            text, timeout_s = CLASSES[kinds[number]]
            result = await boxes[index].exec(text, env={"N": str(number)}, timeout_s=timeout_s)
            ended += 1
            if seen_class(result) != kinds[number]:
                wrong[kinds[number], seen_class(result)] += 1
            elif kinds[number] == "good":
                assert (result.exit_code, result.stdout) == (number % 5, f"{number}\n".encode())

    began = time.monotonic()
    await asyncio.gather(*(live(index) for index in range(len(boxes))))
    spent = time.monotonic() - began
    assert ended == len(kinds)
    assert wrong == {}
    left = sum(path.read_bytes().startswith(b"sleep\00098764") for path in Path("/proc").glob("[0-9]*/cmdline"))
    assert left == 0
    ids = {box.id for box in boxes}
    await provider.close()
    assert not {group.folders[0][1].name for group in cgroups.leftovers()} & ids
    print(f"{len(kinds)} commands in {len(boxes)} sandboxes: {spent:.0f} s")
