"""Boxes and workers that are killed from outside in the middle of an episode: one record each, and nothing left behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from envsdk.episode.agents import ScriptAgent
from envsdk.episode.run import run_episode
from envsdk.home import BASE_IMAGE
from envsdk.sandboxes.docker import DockerProvider
from envsdk.spec.model import Budget, ContainerSpec
from tests.fakes.tasks import script_task

ROOT = Path(__file__).parents[2]
WORKER = """
import asyncio, sys
from pathlib import Path
from envsdk.episode.agents import ScriptAgent
from envsdk.episode.run import run_episode
from envsdk.home import BASE_IMAGE
from envsdk.sandboxes.docker import DockerProvider
from envsdk.spec.model import ContainerSpec
from tests.fakes.tasks import script_task

async def main():
    task = script_task(Path(sys.argv[1]))
    task = task.model_copy(update={"spec": task.spec.model_copy(update={"container": ContainerSpec(image=BASE_IMAGE)})})
    tell = lambda name, _: print(name, flush=True)
    await run_episode(task, ScriptAgent(b"#!/bin/sh\\nsleep 600\\n"), DockerProvider(), on_stamp=tell)

asyncio.run(main())
"""


def containers(provider_pid: int) -> list[str]:
    """Ids of containers whose labels name this owner."""
    listed = subprocess.run(["docker", "ps", "-q"], capture_output=True, text=True, check=True).stdout.split()
    if not listed:
        return []
    found = subprocess.run(["docker", "inspect", *listed], capture_output=True, text=True, check=False).stdout
    described = json.loads(found or "[]")
    return [one["Id"] for one in described if str(provider_pid) in json.dumps(one["Config"]["Labels"])]


@pytest.mark.docker
async def test_a_container_killed_from_outside_is_recorded_as_unknown_and_its_state_is_read_again(
    tmp_path: Path,
) -> None:
    provider = DockerProvider()
    task = script_task(tmp_path, budget=Budget(episode_s=60, verify_s=10))
    container = ContainerSpec(image=BASE_IMAGE)
    task = task.model_copy(update={"spec": task.spec.model_copy(update={"container": container})})
    acquired = asyncio.Event()
    agent = ScriptAgent(b"#!/bin/sh\necho 42 > /app/total.txt\nsleep 600\n")
    running = asyncio.create_task(
        run_episode(task, agent, provider, on_stamp=lambda name, _: acquired.set() if name == "acquired" else None)
    )
    await acquired.wait()
    [box] = provider._open
    await box.exec("until [ -s /app/total.txt ]; do sleep 0.1; done")
    await asyncio.to_thread(subprocess.run, ["docker", "kill", box.id], check=True, capture_output=True)
    record = await running
    await provider.close()
    assert (record.outcome.outcome_class, record.outcome.cause) == ("unknown", "unclassified"), record.facts
    assert record.facts["ended_by"] == "channel_lost"
    assert record.facts["sandbox"] == {
        "alive": False,
        "main_exit_code": 137,
        "oom_flag": False,
        "state_recovered": True,
        "pristine_ok": True,
    }
    assert record.facts["engine"] == {"reachable": True}


@pytest.mark.docker
def test_a_killed_worker_leaves_no_container(tmp_path: Path) -> None:
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(tmp_path)], stdout=subprocess.PIPE, text=True, cwd=ROOT, env=dict(os.environ)
    )
    assert worker.stdout is not None
    with worker.stdout:
        while "acquired" not in worker.stdout.readline():
            assert worker.poll() is None
        assert containers(worker.pid)
        worker.send_signal(signal.SIGKILL)
        worker.wait()
    for _ in range(100):
        if not containers(worker.pid):
            return
        subprocess.run(["sleep", "0.1"], check=True)
    pytest.fail("the container outlived its owner by ten seconds")
