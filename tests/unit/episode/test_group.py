"""Groups: every member ends with a record, siblings share a set-up and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsdk.episode.agents import NoopAgent, OracleAgent, ScriptAgent
from envsdk.episode.group import run_group
from envsdk.errors import SandboxError
from tests.fakes.sandbox import FakeProvider, Faults
from tests.fakes.tasks import script_task


async def test_members_keep_their_places_and_share_a_group(tmp_path: Path) -> None:
    agents = [OracleAgent(), NoopAgent(), OracleAgent()]
    heard: list[int] = []
    records = await run_group(
        script_task(tmp_path),
        lambda place: agents[place],
        FakeProvider(),
        3,
        on_record=lambda record: heard.append(record.index_in_group),
    )
    assert [record.outcome.reward for record in records] == [1.0, 0.0, 1.0]
    assert [record.index_in_group for record in records] == [0, 1, 2]
    assert sorted(heard) == [0, 1, 2]
    assert len({record.group_id for record in records}) == 1
    assert len({record.episode_id for record in records}) == 3


async def test_one_member_that_cannot_start_does_not_stop_the_others(tmp_path: Path) -> None:
    provider = FakeProvider(faults=Faults(acquire=[SandboxError("no")]))
    records = await run_group(script_task(tmp_path), lambda _: OracleAgent(), provider, 3)
    assert sorted(record.outcome.outcome_class for record in records) == [
        "infra_failure",
        "model_success",
        "model_success",
    ]
    assert provider.open_count == 0


async def test_a_set_up_runs_once_and_siblings_do_not_see_each_other(tmp_path: Path) -> None:
    provider = FakeProvider()
    test = "#!/bin/sh\nwc -l < /app/total.txt | grep -qx 2 && r=1 || r=0\necho $r > /logs/verifier/reward.txt\n"
    agent = ScriptAgent(b"#!/bin/sh\necho mine >> /app/total.txt\n")
    records = await run_group(
        script_task(tmp_path, test=test), lambda _: agent, provider, 4, setup="echo set-up > /app/total.txt"
    )
    assert [record.outcome.reward for record in records] == [1.0] * 4
    assert sum("set-up" in command for box in provider.handed_out for command in box.commands) == 1
    assert provider.open_count == 0


async def test_a_set_up_that_fails_begins_no_episode(tmp_path: Path) -> None:
    provider = FakeProvider()
    with pytest.raises(SandboxError) as caught:
        await run_group(script_task(tmp_path), lambda _: NoopAgent(), provider, 2, setup="echo broken >&2; exit 3")
    assert caught.value.code == "setup_failed"
    assert "broken" in caught.value.message
    assert provider.open_count == 0
