"""What is observed after an episode's acting: only what was seen becomes a fact."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsdk.episode.aftermath import counted, cpu_pressure, host_load, look, pristine_answers, recover
from envsdk.errors import SandboxError
from envsdk.sandboxes.base import Counters, Liveness, SandboxSpec
from tests.fakes.sandbox import FakeProvider, Faults

SPEC = SandboxSpec(image="fake")


@pytest.mark.parametrize("ended_by", ["final_answer", "turn_limit", "token_limit"])
async def test_a_plain_end_costs_no_probe(ended_by: str) -> None:
    provider = FakeProvider(faults=Faults(liveness=Liveness(alive=False)))
    assert await look(await provider.acquire(SPEC), ended_by) == {}
    await provider.close()


async def test_a_lost_channel_is_probed() -> None:
    liveness = Liveness(alive=False, main_exit_code=137, engine_reachable=True)
    provider = FakeProvider(faults=Faults(liveness=liveness))
    facts = await look(await provider.acquire(SPEC), "channel_lost")
    assert facts["sandbox"] == {"alive": False, "main_exit_code": 137}
    assert facts["engine"] == {"reachable": True}
    await provider.close()


async def test_a_deadline_samples_the_host() -> None:
    provider = FakeProvider()
    facts = await look(await provider.acquire(SPEC), "step_deadline")
    assert facts["host"]["probe_s"] >= 0
    await provider.close()


def test_counters_that_counted_nothing_are_no_facts() -> None:
    assert counted(Counters()) == {}
    assert counted(Counters(oom_kills=0, pids_limit_hits=0)) == {}


def test_unread_counters_stay_out_of_the_facts() -> None:
    assert counted(Counters(oom_kills=1)) == {"memory": {"cgroup": "task", "oom_kills": 1}}
    assert counted(Counters(disk_used_mib=1.0)) == {}


def test_pressure_is_a_share(tmp_path: Path) -> None:
    record = tmp_path / "cpu"
    record.write_text("some avg10=94.50 avg60=1.00 avg300=0.50 total=1\nfull avg10=0.00 avg60=0 avg300=0 total=0\n")
    assert cpu_pressure(record) == 0.945
    assert cpu_pressure(tmp_path / "none") is None


async def test_the_host_probe_is_a_time() -> None:
    assert 0 < (await host_load())["probe_s"] < 60


async def test_a_recovered_box_has_the_files_of_the_dead_one() -> None:
    provider = FakeProvider()
    box = await provider.acquire(SPEC)
    await box.write("/app/x", b"1")
    again = await recover(box, provider)
    assert again is not None
    assert await again.read("/app/x") == b"1"
    await provider.close()


async def test_a_file_system_that_cannot_be_started_again_is_none() -> None:
    provider = FakeProvider()
    box = await provider.acquire(SPEC)
    await box.close()
    assert await recover(box, provider) is None


async def test_a_fresh_box_that_cannot_be_had_does_not_answer() -> None:
    assert await pristine_answers(FakeProvider(), SPEC)
    assert not await pristine_answers(FakeProvider(faults=Faults(acquire=[SandboxError("no")])), SPEC)
