"""Making an episode's box ready: what fails, in which phase, and that nothing stays open."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from envsdk.episode.box import Box, StartError, open_box
from envsdk.episode.clocks import EpisodeClock
from envsdk.errors import SandboxError
from envsdk.sandboxes.base import SandboxSpec
from envsdk.spec.model import Budget, HealthCheck, ServiceSpec, Task
from tests.fakes.sandbox import FakeProvider, Faults
from tests.fakes.tasks import script_task


def healthy(task: Task, check: HealthCheck) -> Task:
    container = task.spec.container.model_copy(update={"healthcheck": check})  # type: ignore[union-attr]
    return task.model_copy(update={"spec": task.spec.model_copy(update={"container": container})})


async def opened(task: Task, provider: FakeProvider) -> Box:
    async with AsyncExitStack() as closing:
        return await open_box(task, provider, EpisodeClock(Budget()), closing)


@pytest.mark.parametrize(
    ("builds", "code", "phase"),
    [
        (True, "build_failed", "build"),
        (True, "image_not_found", "pull"),  # the base of the build
        (False, "image_not_found", "pull"),
    ],
)
async def test_an_image_fails_in_its_own_phase(tmp_path: Path, builds: bool, code: str, phase: str) -> None:
    provider = FakeProvider(faults=Faults(ensure_image=SandboxError("no", code=code)))
    task = script_task(tmp_path)
    if builds:
        (tmp_path / "environment").mkdir()
        (tmp_path / "environment/Dockerfile").write_text("FROM x\n")
    with pytest.raises(StartError) as caught:
        await opened(task, provider)
    assert (caught.value.phase, caught.value.code) == (phase, code)


async def test_a_health_check_is_asked_until_it_passes(tmp_path: Path) -> None:
    provider = FakeProvider()
    command = "echo x >> /tmp/asked; test $(wc -l < /tmp/asked) -ge 3"
    task = healthy(script_task(tmp_path), HealthCheck(command=command, interval_s=0.01))
    await opened(task, provider)
    assert len(provider.handed_out[0].commands) == 3
    assert provider.open_count == 0


async def test_a_health_check_that_never_passes_says_what_it_said(tmp_path: Path) -> None:
    task = healthy(script_task(tmp_path), HealthCheck(command="echo not yet >&2; exit 1", retries=2, interval_s=0.01))
    provider = FakeProvider()
    with pytest.raises(StartError) as caught:
        await opened(task, provider)
    assert (caught.value.phase, caught.value.code) == ("setup", "healthcheck_failed")
    assert "not yet" in caught.value.message
    assert provider.open_count == 0


async def test_services_that_this_back_end_cannot_run_fail_the_start(tmp_path: Path) -> None:
    task = script_task(tmp_path)
    service = ServiceSpec(name="web", image="x")
    task = task.model_copy(update={"spec": task.spec.model_copy(update={"services": (service,)})})
    with pytest.raises(StartError) as caught:
        await opened(task, FakeProvider())
    assert caught.value.phase == "acquire"


async def test_a_box_starts_with_the_files_of_a_snapshot_on_a_network_of_its_own(tmp_path: Path) -> None:
    provider = FakeProvider()
    origin = await provider.acquire(SandboxSpec(image="fake", network="internal", join="closed-since"))
    await origin.write("/app/ready", b"1")
    async with AsyncExitStack() as closing:
        snapshot = await origin.snapshot()
        box = await open_box(script_task(tmp_path), provider, EpisodeClock(Budget()), closing, prepared=snapshot)
        assert await box.sandbox.read("/app/ready") == b"1"
        assert (box.sandbox.spec.join, box.network) == ("", "")
        assert box.sandbox is not origin
    await origin.close()
    assert provider.open_count == 0


def test_a_box_without_services_has_no_logs() -> None:
    assert Box(sandbox=None).service_logs() == {}  # type: ignore[arg-type]
