"""An engine of our own that is killed and started again while episodes run: nothing is blamed on the model, work goes on."""

import asyncio
import io
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from envsdk.episode.conversation import ConversationAgent
from envsdk.episode.run import run_episode
from envsdk.sandboxes import open_provider
from envsdk.sandboxes.base import SandboxSpec
from envsdk.spec.model import Budget, ContainerSpec, Task
from tests.fakes.policy import ScriptedPolicy
from tests.fakes.tasks import script_task

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(180)]
IMAGE = "envsdk-restarted:1"
PASSWD = b"root:x:0:0::/root:/bin/sh\nagent:x:1000:1000::/app:/bin/sh\n"


class PrivateEngine:
    """A Docker daemon in a folder of its own, without networks; nothing else on the machine knows it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"unix://{folder}/docker.sock"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        # In a network namespace of its own: a daemon that is told to have no bridge removes the machine's docker0.
        words = ["unshare", "--net", "dockerd", "--data-root", f"{self.folder}/data", "-H", self.url]
        words += ["--exec-root", f"{self.folder}/exec"]
        words += ["--pidfile", f"{self.folder}/pid", "--bridge", "none", "--iptables=false", "--shutdown-timeout", "1"]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True)
        until = time.monotonic() + 60
        while subprocess.run(["docker", "-H", self.url, "version"], capture_output=True, check=False).returncode:
            assert time.monotonic() < until, (self.folder / "log").read_text()[-2000:]
            time.sleep(0.1)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        # Its containerd dies with it, and a new daemon would trust the old one's pid file.
        for left in (self.folder / "pid", self.folder / "exec" / "containerd" / "containerd.pid"):
            left.unlink(missing_ok=True)

    def stop(self) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait()


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[PrivateEngine]:
    # A short path: a Unix socket's name holds about a hundred bytes.
    folder = Path(tempfile.mkdtemp(prefix="envsdk-engine-"))
    private = PrivateEngine(folder)
    private.start()
    monkeypatch.setenv("DOCKER_HOST", private.url)
    yield private
    private.stop()
    for mount in sorted((line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()), reverse=True):
        if mount.startswith(str(folder)):
            subprocess.run(["umount", "-l", mount], check=False)
    shutil.rmtree(folder, ignore_errors=True)


async def bare_image(provider: Any) -> None:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        info = tarfile.TarInfo("etc/passwd")
        info.size = len(PASSWD)
        tar.addfile(info, io.BytesIO(PASSWD))
    await asyncio.to_thread(provider.engine.api.import_image_from_data, archive.getvalue(), *IMAGE.split(":"))


def task_in(root: Path) -> Task:
    task = script_task(root, budget=Budget(step_s=60, episode_s=90, verify_s=10, turns=4))
    return task.model_copy(update={"spec": task.spec.model_copy(update={"container": ContainerSpec(image=IMAGE)})})


async def test_an_engine_killed_and_started_again_in_the_middle(engine: PrivateEngine, tmp_path: Path) -> None:
    provider: Any = open_provider("docker")
    await bare_image(provider)
    spec = SandboxSpec(image=await provider.ensure_image(None, IMAGE))
    bystander = await provider.acquire(spec)
    await provider.prewarm(spec, 1)
    talk = ConversationAgent(ScriptedPolicy(["echo 42 > /app/total.txt; sleep 40", "done"]))
    episode = asyncio.ensure_future(run_episode(task_in(tmp_path), talk, provider))
    while not any(box.spec.image == spec.image and box is not bystander for box in provider._open):  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    await asyncio.sleep(1.0)
    await asyncio.to_thread(engine.kill)
    await asyncio.to_thread(engine.start)
    record = await episode
    assert record.facts["ended_by"] == "channel_lost", record.facts
    assert (record.outcome.outcome_class, record.outcome.cause) == ("infra_failure", "container_engine"), record.facts
    assert record.outcome.redispatch
    assert (await bystander.exec("true")).channel_lost
    again = await provider.acquire(spec)
    assert (await again.exec("echo on")).stdout == b"on\n"
    await provider.close()
    listed = ["docker", "-H", engine.url, "ps", "-aq", "--filter", "label=envsdk"]
    assert subprocess.run(listed, capture_output=True, check=True).stdout == b""
