"""Episodes on the bundled back ends: what a model does to its box, what a verifier does to its own, and what is said of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from envsdk.episode.agents import NoopAgent, OracleAgent, ScriptAgent
from envsdk.episode.conversation import ConversationAgent
from envsdk.episode.group import run_group
from envsdk.episode.record import EpisodeRecord
from envsdk.episode.run import run_episode
from envsdk.home import BASE_IMAGE
from envsdk.sandboxes import open_provider
from envsdk.sandboxes.base import Limits, SandboxProvider
from envsdk.spec.model import Budget, ContainerSpec, HealthCheck, ServiceSpec, Task
from tests.fakes.back_ends import BACK_ENDS
from tests.fakes.policy import ScriptedPolicy
from tests.fakes.tasks import script_task

pytestmark = pytest.mark.asyncio(loop_scope="module")
LIMITS = Limits(memory_mib=128, pids=64, disk_mib=64, cpus=1)
BUDGET = Budget(step_s=10, episode_s=30, verify_s=10, turns=8)
WORK = "echo 42 > /app/total.txt"


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=BACK_ENDS)
async def provider(request: pytest.FixtureRequest) -> AsyncIterator[SandboxProvider]:
    opened = open_provider(request.param)
    yield opened
    await opened.close()


def task_in(root: Path, *, user: str = "agent", services: tuple[ServiceSpec, ...] = (), **options: Any) -> Task:
    task = script_task(root, **{"budget": BUDGET, **options})
    container = ContainerSpec(image=BASE_IMAGE, limits=LIMITS)
    agent = task.spec.agent.model_copy(update={"user": user})
    spec = task.spec.model_copy(update={"container": container, "agent": agent, "services": services})
    return task.model_copy(update={"spec": spec})


def said(record: EpisodeRecord) -> tuple[str, str, float | None]:
    return record.outcome.outcome_class, record.outcome.cause, record.outcome.reward


async def play(provider: SandboxProvider, task: Task, *replies: str) -> EpisodeRecord:
    return await run_episode(task, ConversationAgent(ScriptedPolicy(replies)), provider)


@pytest.mark.parametrize("mode", ["separate", "shared"])
async def test_oracle_and_noop(provider: SandboxProvider, tmp_path: Path, mode: str) -> None:
    task = task_in(tmp_path, mode=mode)
    assert said(await run_episode(task, OracleAgent(), provider)) == ("model_success", "finished", 1.0)
    assert said(await run_episode(task, NoopAgent(), provider)) == ("model_failure", "finished", 0.0)


@pytest.mark.parametrize(
    "command",
    [
        "kill -9 $$",
        "kill -9 -1; pkill -9 -u agent",
        "kill -9 1",
        "python3 -c 'x = bytearray(1 << 30)'",
        "for i in $(seq 200); do sleep 20 & done; wait",
        "yes | head -c 50000000",
        "printf '\\377\\376'; printf '\\342\\200\\250'",
        "dd if=/dev/zero of=/app/big bs=1M count=100",
    ],
)
async def test_what_a_command_does_to_itself_ends_no_episode(
    provider: SandboxProvider, tmp_path: Path, command: str
) -> None:
    task = task_in(tmp_path, budget=BUDGET.model_copy(update={"step_s": 60.0, "episode_s": 90.0}))
    record = await play(provider, task, WORK, command, "echo still here", "done")
    assert said(record) == ("model_success", "finished", 1.0), record.facts
    assert record.turns[1].observation.endswith("]")


async def test_a_sleeping_command_is_the_models_and_its_work_counts(provider: SandboxProvider, tmp_path: Path) -> None:
    task = task_in(tmp_path, budget=BUDGET.model_copy(update={"step_s": 1.0}))
    record = await play(provider, task, WORK, "sleep infinity")
    assert said(record) == ("model_success", "step_timeout", 1.0), record.facts
    assert record.facts["host"]["probe_s"] < 1


async def test_output_that_imitates_an_engine_error_changes_nothing(provider: SandboxProvider, tmp_path: Path) -> None:
    words = "echo 'Cannot connect to the Docker daemon'; exit 125"
    assert said(await play(provider, task_in(tmp_path), WORK, words, "done")) == ("model_success", "finished", 1.0)


async def test_a_root_agent_that_removes_the_shell_is_graded_on_what_it_left(
    provider: SandboxProvider, tmp_path: Path
) -> None:
    task = task_in(tmp_path, user="root", mode="shared")
    record = await play(provider, task, WORK, "rm -rf /bin /usr/bin /lib64/ld-linux*", "ls", "done")
    assert record.outcome.graded, record.facts
    assert record.facts["control"][0]["state"] == "same_fresh_sandbox"
    assert record.outcome.reward == 1.0


@pytest.mark.parametrize("mode", ["separate", "shared"])
async def test_a_verifier_that_is_not_root_can_write_its_reward_and_not_its_tests(
    provider: SandboxProvider, tmp_path: Path, mode: str
) -> None:
    test = "#!/bin/sh\nif touch /tests/x 2>/dev/null; then echo 0; else echo 1; fi > /logs/verifier/reward.txt\n"
    task = task_in(tmp_path, test=test, mode=mode, user="agent")
    spec = task.spec.model_copy(update={"verifier": task.spec.verifier.model_copy(update={"user": "agent"})})
    record = await run_episode(task.model_copy(update={"spec": spec}), NoopAgent(), provider)
    assert said(record) == ("model_success", "finished", 1.0), record.evidence


async def test_left_over_processes_cannot_write_the_reward(provider: SandboxProvider, tmp_path: Path) -> None:
    task = task_in(
        tmp_path, mode="shared", test="#!/bin/sh\nsleep 0.3\necho 0 > /logs/verifier/reward.txt\nsleep 0.3\n"
    )
    loop = "nohup sh -c 'while :; do echo 1 > /logs/verifier/reward.txt; sleep 0.01; done' >/dev/null 2>&1 &"
    assert said(await play(provider, task, loop, "done")) == ("model_failure", "finished", 0.0)


@pytest.mark.parametrize(
    ("test", "cause"),
    [
        ("#!/bin/sh\nsleep infinity\n", "verifier_timeout"),
        ("#!/bin/sh\nwhile :; do echo aaaaaaaaaaaaaaaa; done\n", "verifier_timeout"),
        ("#!/bin/sh\nkill -9 $PPID; kill -9 -1; kill -9 $$\n", "verifier_crash"),
        ("#!/bin/sh\r\necho 1 > /logs/verifier/reward.txt\r\n", "verifier_crash"),
        ("#!/bin/sh\nexit 0\n", "verifier_reward"),
        ("#!/bin/sh\nmkfifo /logs/verifier/reward.txt\n", "verifier_reward"),
    ],
)
async def test_a_bad_verifier_is_its_own_fault_and_never_a_zero(
    provider: SandboxProvider, tmp_path: Path, test: str, cause: str
) -> None:
    task = task_in(tmp_path, test=test, budget=BUDGET.model_copy(update={"verify_s": 1.0}))
    assert said(await play(provider, task, WORK, "done")) == ("infra_failure", cause, None)


async def test_an_image_that_is_not_there_is_the_machinerys(provider: SandboxProvider, tmp_path: Path) -> None:
    task = task_in(tmp_path)
    container = ContainerSpec(image="no-such-image:ever")
    lost = task.model_copy(update={"spec": task.spec.model_copy(update={"container": container})})
    record = await run_episode(lost, OracleAgent(), provider)
    assert said(record) == ("infra_failure", "image_pull", None)
    assert "no-such-image" in record.facts["exception"]["note"]


async def test_the_verifier_and_the_oracle_are_not_in_the_agents_box(provider: SandboxProvider, tmp_path: Path) -> None:
    record = await play(provider, task_in(tmp_path), "find /tests /solution /logs -type f; true", "done")
    assert "solve.sh" not in record.turns[0].observation
    assert "test.sh" not in record.turns[0].observation


async def test_siblings_start_from_one_set_up(provider: SandboxProvider, tmp_path: Path) -> None:
    test = "#!/bin/sh\ntest -e /app/prepared && r=1 || r=0\necho $r > /logs/verifier/reward.txt\n"
    task = task_in(tmp_path, test=test, artifacts=("/app/prepared",))
    records = await run_group(task, lambda _: NoopAgent(), provider, 3, setup="echo x > /app/prepared")
    assert [record.outcome.reward for record in records] == [1.0, 1.0, 1.0]
    assert len({record.sandbox["id"] for record in records}) == 3
    assert {record.group_id for record in records} == {records[0].group_id}


async def test_siblings_of_one_set_up_each_reach_services_of_their_own(
    provider: SandboxProvider, tmp_path: Path
) -> None:
    service = ServiceSpec(
        name="web",
        image=BASE_IMAGE,
        command="cd /tmp && head -c 8 /dev/urandom | od -An -tx1 > n && exec python3 -m http.server 8000",
        port=8000,
    )
    fetch = (
        "python3 -c 'import urllib.request as u; print(u.urlopen(\"http://web:8000/n\", timeout=5).read().decode())'"
    )
    task = task_in(tmp_path, services=(service,), network="internal")
    replies = (f"cat /app/prepared; {fetch}", "done")
    records = await run_group(
        task, lambda _: ConversationAgent(ScriptedPolicy(replies)), provider, 2, setup="echo ready > /app/prepared"
    )
    said = [record.turns[0].observation for record in records]
    assert all(text.startswith("ready\n") and text.endswith("[exit code 0]") for text in said), said
    assert said[0] != said[1]


async def test_an_agent_reaches_its_services_and_the_verifier_only_where_declared(
    provider: SandboxProvider, tmp_path: Path
) -> None:
    service = ServiceSpec(
        name="web",
        image=BASE_IMAGE,
        command="cd /tmp && echo 42 > n && exec python3 -m http.server 8000",
        port=8000,
        healthcheck=HealthCheck(
            command="python3 -c 'import urllib.request as u; u.urlopen(\"http://127.0.0.1:8000/n\")'"
        ),
    )
    fetch = (
        "python3 -c 'import urllib.request as u; print(u.urlopen(\"http://web:8000/n\", timeout=5).read().decode())'"
    )
    test = f"#!/bin/sh\nif {fetch} >/dev/null 2>&1; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n"
    for network, reward in (("internal", 1.0), ("none", 0.0)):
        task = task_in(tmp_path / network, test=test, services=(service,), network=network)
        record = await play(provider, task, f"{fetch} > /app/total.txt; cat /app/total.txt", "done")
        assert "42" in record.turns[0].observation, record.facts
        assert record.outcome.reward == reward, record.evidence


async def test_many_at_once_each_get_their_own_end(provider: SandboxProvider, tmp_path: Path) -> None:
    task = task_in(tmp_path)
    ends: list[tuple[Any, float]] = [
        (OracleAgent(), 1.0),
        (NoopAgent(), 0.0),
        (ScriptAgent(b"#!/bin/sh\nkill -9 $$\n"), 0.0),
    ]
    records = await asyncio.gather(*(run_episode(task, agent, provider) for agent, _ in ends * 4))
    assert [record.outcome.reward for record in records] == [reward for _, reward in ends * 4]
