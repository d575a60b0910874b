"""A task's set-up on both back ends: run once for equal ones, kept as an image, shared by pools, forks and episodes."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from envsdk.episode.agents import OracleAgent
from envsdk.episode.group import run_group
from envsdk.errors import SandboxError
from envsdk.home import BASE_IMAGE
from envsdk.sandboxes import open_provider
from envsdk.sandboxes.base import SandboxSpec
from envsdk.sandboxes.docker_images import SETUP_REPOSITORY
from envsdk.sandboxes.pruning import bubblewrap_images, docker_images, remove_bubblewrap, remove_docker
from envsdk.spec.model import ContainerSpec
from tests.fakes.back_ends import BACK_ENDS
from tests.fakes.tasks import script_task

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=BACK_ENDS)
async def provider(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    opened = open_provider(request.param)
    yield opened
    await opened.close()


@pytest_asyncio.fixture(loop_scope="module")
async def spec(provider: Any) -> SandboxSpec:
    return SandboxSpec(image=await provider.ensure_image(None, BASE_IMAGE))


def once() -> str:
    """A script no earlier run of the tests has kept; what it leaves differs from run to run."""
    return f"set -e; date +%s%N > stamp; id -u > who; chown agent stamp; : {uuid.uuid4()}"


async def test_equal_set_ups_run_once_whoever_asks_and_however_many(provider: Any, spec: SandboxSpec) -> None:
    script = once()
    found = await asyncio.gather(*(provider.prepare(spec, script) for _ in range(4)))
    other: Any = open_provider(provider.name)
    try:
        assert {*found, await other.prepare(spec, script)} == {found[0]}
        assert found[0] != spec.image
    finally:
        await other.close()


async def test_pools_and_forks_start_from_what_the_set_up_left(provider: Any, spec: SandboxSpec) -> None:
    prepared = spec.model_copy(update={"image": await provider.prepare(spec, once())})
    await provider.prewarm(prepared, 2)
    boxes = [await provider.acquire(prepared) for _ in range(2)]
    said = [(await box.exec("cat stamp who; pwd; echo mine > stamp && cat stamp")).stdout for box in boxes]
    assert said[0] == said[1]
    assert said[0].endswith(b"\n0\n/app\nmine\n")
    boxes += await boxes[0].fork(2)
    assert [await box.read("/app/stamp") for box in boxes[2:]] == [b"mine\n", b"mine\n"]
    await asyncio.gather(*(box.close() for box in boxes))
    assert provider.describe(prepared.image)["setup"]


async def test_any_difference_is_another_set_up(provider: Any, spec: SandboxSpec) -> None:
    script = once()
    first = await provider.prepare(spec, script)
    assert await provider.prepare(spec, f"{script} # more") != first
    assert await provider.prepare(spec.model_copy(update={"env": (("A", "1"),)}), script) != first
    over_another = spec.model_copy(update={"image": first})
    assert await provider.prepare(over_another, script) != first


async def test_a_set_up_that_fails_says_how_and_is_tried_again(
    provider: Any, spec: SandboxSpec, tmp_path: Path
) -> None:
    script = f"echo why it fails >&2; exit 7 # {uuid.uuid4()}"
    for _ in range(2):
        with pytest.raises(SandboxError, match="ended with 7: why it fails") as caught:
            await provider.prepare(spec, script)
        assert caught.value.code == "setup_failed"
    assert "why it fails" in Path(caught.value.hint.rpartition(" ")[2]).read_text()


async def test_a_set_up_without_an_end_is_ended_in_time(provider: Any, spec: SandboxSpec) -> None:
    with pytest.raises(SandboxError, match="had no end after 1 s") as caught:
        await provider.prepare(spec, f"sleep 600 # {uuid.uuid4()}", timeout_s=1.0)
    assert caught.value.code == "setup_failed"


async def test_episodes_and_their_verifiers_start_from_the_set_up_and_share_it(provider: Any, tmp_path: Path) -> None:
    check = '[ "$(cat /app/answer.txt)" = "$(cat /app/stamp)" ] && r=1 || r=0; mkdir -p /logs/verifier; echo $r > /logs/verifier/reward.txt'
    task = script_task(tmp_path, oracle="cp /app/stamp /app/answer.txt", test=check, artifacts=("/app/answer.txt",))
    container = ContainerSpec(setup=once())
    task = task.model_copy(update={"spec": task.spec.model_copy(update={"container": container})})
    records = await run_group(task, lambda _: OracleAgent(), provider, 3)
    assert [record.outcome.reward for record in records] == [1.0, 1.0, 1.0]
    assert len({record.sandbox["setup"] for record in records}) == 1
    assert records[0].times.setup_s is not None


async def test_an_episode_whose_set_up_fails_is_the_machinerys(provider: Any, tmp_path: Path) -> None:
    task = script_task(tmp_path)
    container = ContainerSpec(setup=f"echo no such mirror >&2; exit 1 # {uuid.uuid4()}")
    task = task.model_copy(update={"spec": task.spec.model_copy(update={"container": container})})
    (record,) = await run_group(task, lambda _: OracleAgent(), provider, 1)
    assert (record.outcome.outcome_class, record.outcome.cause) == ("infra_failure", "setup_failed")
    assert "no such mirror" in record.facts["exception"]["note"]


async def test_a_pruned_image_is_made_again_and_one_in_use_stays(provider: Any, spec: SandboxSpec) -> None:
    script = once()
    prepared = await provider.prepare(spec, script)
    key = provider.describe(prepared)["setup"]
    box = await provider.start(spec.model_copy(update={"image": prepared}), 60.0)
    if provider.name == "docker":
        tag = f"{SETUP_REPOSITORY}:{key}"
        assert tag in {image.name for image in await docker_images(provider.engine)}
        assert await remove_docker(provider.engine, [tag]) == []
        await box.close()
        await provider.settled()
        assert await remove_docker(provider.engine, [tag]) == [tag]
    else:
        assert key in {image.name for image in bubblewrap_images(provider.store)}
        layer = box.layers[-1]
        remove_bubblewrap(provider.store, [key])
        assert (await box.exec("cat stamp")).ok
        assert layer in provider.store.layers_in_use()
        await box.close()
        await provider.settled()
        assert layer not in provider.store.layers_in_use()
    again = await provider.prepare(spec, script)
    fresh = await provider.acquire(spec.model_copy(update={"image": again}))
    assert (await fresh.exec("test -s stamp")).ok
    await fresh.close()
