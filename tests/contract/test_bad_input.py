"""Bad environments and bad agents on both back ends: each ends as the outcome table says, and names task and cause."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from envsdk.episode.agents import NoopAgent, ScriptAgent
from envsdk.episode.conversation import ConversationAgent
from envsdk.episode.record import EpisodeRecord
from envsdk.episode.run import run_episode
from envsdk.home import BASE_IMAGE, rootfs_dir
from envsdk.sandboxes import open_provider
from envsdk.sandboxes.base import Limits, SandboxProvider
from envsdk.spec.model import Budget, ContainerSpec, ServiceSpec, Task
from tests.fakes.back_ends import BACK_ENDS
from tests.fakes.policy import ScriptedPolicy
from tests.fakes.tasks import script_task

pytestmark = pytest.mark.asyncio(loop_scope="module")
LIMITS = Limits(memory_mib=128, pids=40, disk_mib=32, cpus=1)
WORK = "echo 42 > /app/total.txt"
SHELL_LESS = "envsdk-shell-less:2"


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=BACK_ENDS)
async def provider(request: pytest.FixtureRequest) -> AsyncIterator[SandboxProvider]:
    opened = open_provider(request.param)
    yield opened
    await opened.close()


def task_in(root: Path, *, container: ContainerSpec | None = None, **changed: Any) -> Task:
    budget = Budget(step_s=30, episode_s=60, verify_s=10, turns=8)
    task = script_task(root, slug="bad-one", budget=budget.model_copy(update=changed.pop("budget", {})))
    container = container or ContainerSpec(image=BASE_IMAGE, limits=LIMITS)
    return task.model_copy(update={"spec": task.spec.model_copy(update={"container": container, **changed})})


async def play(provider: SandboxProvider, task: Task, *replies: str) -> EpisodeRecord:
    return await run_episode(task, ConversationAgent(ScriptedPolicy(replies)), provider)


def ended(record: EpisodeRecord) -> tuple[str, str, float | None]:
    return record.outcome.outcome_class, record.outcome.cause, record.outcome.reward


def note(record: EpisodeRecord) -> str:
    return str(record.facts["exception"]["note"])


async def test_a_dockerfile_that_fails(provider: SandboxProvider, tmp_path: Path) -> None:
    (tmp_path / "environment").mkdir()
    (tmp_path / "environment" / "Dockerfile").write_text(f"FROM {BASE_IMAGE}\nRUN echo no such mirror >&2; exit 9\n")
    record = await run_episode(task_in(tmp_path, container=ContainerSpec()), NoopAgent(), provider)
    assert ended(record) == ("infra_failure", "image_build", None)
    assert note(record).startswith("task bad-one: ")
    assert "no such mirror" in note(record)
    assert "the whole log is in" in note(record)


async def test_a_dockerfile_whose_base_is_missing(provider: SandboxProvider, tmp_path: Path) -> None:
    (tmp_path / "environment").mkdir()
    (tmp_path / "environment" / "Dockerfile").write_text("FROM no-such-base:1\nRUN true\n")
    record = await run_episode(task_in(tmp_path, container=ContainerSpec()), NoopAgent(), provider)
    assert ended(record) == ("infra_failure", "image_pull", None)
    assert "no-such-base:1" in note(record)


async def test_a_start_command_that_exits(provider: SandboxProvider, tmp_path: Path) -> None:
    service = ServiceSpec(name="web", image=BASE_IMAGE, command="echo no configuration >&2; exit 3", port=80)
    container = ContainerSpec(image=BASE_IMAGE, network="internal")
    record = await run_episode(task_in(tmp_path, container=container, services=(service,)), NoopAgent(), provider)
    assert ended(record) == ("infra_failure", "sandbox_start", None)
    assert note(record).startswith("task bad-one: web: ")
    assert "no configuration" in note(record)


@pytest.fixture
def shell_less(provider: SandboxProvider) -> Iterator[str]:
    """An image with a file and an account, and no program at all."""
    files = {"data/only.txt": b"only", "etc/passwd": b"agent:x:1000:1000::/app:/bin/sh\n", "usr/empty": b""}
    if provider.name == "bubblewrap":
        tree = rootfs_dir(SHELL_LESS)
        for name, content in files.items():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_bytes(content)
        yield SHELL_LESS
        shutil.rmtree(tree)
        return
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    api: Any = provider.engine.api  # type: ignore[attr-defined]
    api.import_image_from_data(archive.getvalue(), *SHELL_LESS.split(":"))
    yield SHELL_LESS
    subprocess.run(["docker", "rmi", "-f", SHELL_LESS], capture_output=True, check=False)


async def test_an_image_without_a_shell(provider: SandboxProvider, tmp_path: Path, shell_less: str) -> None:
    task = task_in(tmp_path, container=ContainerSpec(image=shell_less, limits=LIMITS))
    record = await play(provider, task, "read x < /data/only.txt; echo $x", WORK, "no-such-program", "done")
    assert record.turns[0].observation == "only\n[exit code 0]"
    assert [turn.exit_code for turn in record.turns[:3]] == [0, 0, 127]
    # The verifier's script asks for a shell that its image has not: that is the task's fault, and no zero.
    assert ended(record) == ("infra_failure", "verifier_crash", None)
    assert "/tests/test.sh: not found" in record.evidence.stdout_tail


@pytest.mark.parametrize("workdir", ["/proc/app", "/proc/sys/kernel"])
async def test_a_work_folder_on_a_read_only_file_system(
    provider: SandboxProvider, tmp_path: Path, workdir: str
) -> None:
    container = ContainerSpec(image=BASE_IMAGE, workdir=workdir, limits=LIMITS)
    record = await play(provider, task_in(tmp_path, container=container), f"{WORK}; echo 1 > here", "done")
    if workdir == "/proc/app":  # it cannot be made, so nothing can run in it
        assert ended(record) == ("infra_failure", "sandbox_start", None)
        assert "/proc/app" in note(record)
    else:
        assert "here" in record.turns[0].observation
        assert ended(record) == ("model_success", "finished", 1.0), record.facts


async def test_a_gigabyte_of_output(provider: SandboxProvider, tmp_path: Path) -> None:
    record = await play(provider, task_in(tmp_path), WORK, "head -c 1000000000 /dev/zero", "done")
    assert ended(record) == ("model_success", "finished", 1.0), record.facts
    assert len(record.model_dump_json()) < 100_000


async def test_output_that_imitates_frames(provider: SandboxProvider, tmp_path: Path) -> None:
    frame = "head -c 16 /dev/zero; printf 'X\\1\\0\\0\\0\\36\\0\\0\\0'; head -c 30 /dev/zero"
    record = await play(provider, task_in(tmp_path), WORK, f"{frame}; {frame} > /proc/1/fd/1", "done")
    assert ended(record) == ("model_success", "finished", 1.0), record.facts
    assert record.turns[1].exit_code not in {0, None}  # the second one never reached the link


async def test_a_fork_bomb(provider: SandboxProvider, tmp_path: Path) -> None:
    task = task_in(tmp_path, budget={"step_s": 2.0})
    record = await play(provider, task, WORK, "b() { b | b & }; b; sleep 60")
    assert ended(record) in {("model_success", "step_timeout", 1.0), ("model_success", "pids_limit", 1.0)}, record.facts


async def test_a_disk_filled_inside_ends_the_command_and_the_work_counts(
    provider: SandboxProvider, tmp_path: Path
) -> None:
    fill = "i=0; while head -c 4000000 /dev/zero > /app/f$i; do i=$((i+1)); sleep 0.05; done"
    record = await play(provider, task_in(tmp_path), WORK, f"{fill}; sleep 20", "echo on", "done")
    assert record.turns[2].observation == "on\n[exit code 0]"
    assert ended(record) == ("model_success", "finished", 1.0), record.facts


@pytest.mark.parametrize("mode", ["separate", "shared"])
async def test_a_disk_filled_inside_is_no_way_out_of_the_grade(
    provider: SandboxProvider, tmp_path: Path, mode: str
) -> None:
    # The whole work folder goes to the verifier, whose script writes as much again as the limit allows.
    test = (
        "#!/bin/sh\nhead -c 20000000 /dev/zero > /var/tmp/own && sleep 0.6\n"
        '[ "$(cat /app/total.txt)" = 42 ] && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt\n'
    )
    fill = "i=0; while [ $i -lt 15 ] && head -c 4000000 /dev/zero > /app/f$i; do i=$((i+1)); done"
    task = task_in(tmp_path)
    verifier = task.spec.verifier.model_copy(update={"mode": mode})
    task = task.model_copy(update={"spec": task.spec.model_copy(update={"artifacts": ("/app",), "verifier": verifier})})
    (tmp_path / "tests" / "test.sh").write_text(test)
    record = await play(provider, task, WORK, f"{fill}; sleep 5", "done")
    assert ended(record) == ("model_success", "finished", 1.0), (record.facts, record.evidence)


async def test_an_agent_that_kills_all_it_can_is_graded_on_what_it_left(
    provider: SandboxProvider, tmp_path: Path
) -> None:
    script = f"#!/bin/sh\n{WORK}\nkill -9 -1; kill -9 1; kill -9 $$\n".encode()
    record = await run_episode(task_in(tmp_path), ScriptAgent(script), provider)
    assert record.outcome.outcome_class == "model_success", record.facts
