"""Counters of a sandbox's network are read as they are; a busy processor and a network are asked of scripts alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from envsdk.checks import load, network
from envsdk.checks.engine import ask_check
from envsdk.checks.network import Traffic, read_traffic
from envsdk.checks.report import CheckResult
from envsdk.checks.scene import Scene
from envsdk.checks.stage import Stage
from envsdk.sandboxes.base import Sandbox
from envsdk.verifying.verdict import Verdict
from tests.fakes.sandbox import FakeProvider
from tests.fakes.tasks import SUM_TEST, script_task, text_task

SNMP = """Ip: Forwarding DefaultTTL OutNoRoutes
Ip: 2 64 {routes}
Icmp: InMsgs
Icmp: 7
Udp: InDatagrams NoPorts
Udp: 1 {ports}
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:     100       2    0    0    0     0          0         0      100       2    0    0    0     0       0          0
  eth0:     100       2    0    0    0     0          0         0      100      {left}    0    0    0     0       0          0
"""


def test_counters_are_read_by_name() -> None:
    assert read_traffic(SNMP.format(routes=3, ports=4, left=5)) == Traffic(3, 4, 5)


@pytest.mark.parametrize("text", ["", "Ip: a b\n", "nonsense\nUdp:\n", "lo: 1 2 3\n"])
def test_what_is_missing_counts_as_nothing(text: str) -> None:
    assert not read_traffic(text).any


@pytest.mark.parametrize("later", [Traffic(no_route=1), Traffic(no_listener=1), Traffic(left=1)])
def test_what_was_added_is_what_counts(later: Traffic) -> None:
    assert later.since(Traffic()).any
    assert not later.since(later).any


@pytest.mark.parametrize("check", [load.CHECK, network.CHECK])
async def test_a_python_verifier_is_not_asked(tmp_path: Path, check: object) -> None:
    async with Stage(text_task(tmp_path), None, repeats=2) as stage:
        result = await ask_check(check, stage)  # type: ignore[arg-type]
    assert result.outcome == "skipped"
    assert result.evidence.get("assessed", True)


async def test_a_declared_network_is_no_question(tmp_path: Path) -> None:
    async with Stage(script_task(tmp_path, network="public"), FakeProvider(), repeats=2) as stage:
        assert (await ask_check(network.CHECK, stage)).outcome == "skipped"


async def test_a_verifier_without_a_clock_is_as_good_on_a_busy_processor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load, "LOOPS_PER_CPU", 0)  # the fake box has no bounds: its loops would be the machine's
    async with Stage(script_task(tmp_path), FakeProvider(), repeats=2) as stage:
        result = await ask_check(load.CHECK, stage)
    assert result.outcome == "pass"


async def test_a_verdict_that_turns_when_something_else_runs_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def mark(box, _stage) -> None:
        await box.write("/tmp/busy", b"yes")

    monkeypatch.setattr(load, "_keep_busy", mark)
    test = f"[ -e /tmp/busy ] && {{ echo 0 > /logs/verifier/reward.txt; exit 0; }}\n{SUM_TEST.partition(chr(10))[2]}"
    async with Stage(script_task(tmp_path, test=f"#!/bin/sh\n{test}"), FakeProvider(), repeats=2) as stage:
        result = await ask_check(load.CHECK, stage)
    assert result.outcome == "fail", result
    assert result.evidence["runs"]["again"] == ["reward 1"]


async def test_one_odd_run_of_three_is_the_machines_doing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    async def mark(box, _stage) -> None:
        seen.append(1)
        if len(seen) == 1:
            await box.write("/tmp/busy", b"yes")

    monkeypatch.setattr(load, "_keep_busy", mark)
    test = f"[ -e /tmp/busy ] && {{ echo 0 > /logs/verifier/reward.txt; exit 0; }}\n{SUM_TEST.partition(chr(10))[2]}"
    async with Stage(script_task(tmp_path, test=f"#!/bin/sh\n{test}"), FakeProvider(), repeats=2) as stage:
        result = await ask_check(load.CHECK, stage)
    assert (result.outcome, len(seen)) == ("pass", 3)


async def _after_odd_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, idle_are_odd: int) -> CheckResult:
    """What is found where every busy run differs, and so do the first few runs without loops that follow them."""
    odd: list[str] = []

    async def mark(box: Sandbox, _stage: Stage) -> None:
        await box.write("/tmp/busy", b"yes")

    async def play(stage: Stage, scene: Scene) -> Verdict:
        if stage.runs >= 4 and scene.before_start is None and len(odd) < idle_are_odd:
            odd.append("idle")
            scene = replace(scene, before_start=lambda box: mark(box, stage))
        return await usual_play(stage, scene)

    usual_play = Stage.play
    monkeypatch.setattr(load, "_keep_busy", mark)
    monkeypatch.setattr(Stage, "play", play)
    test = f"[ -e /tmp/busy ] && {{ echo 0 > /logs/verifier/reward.txt; exit 0; }}\n{SUM_TEST.partition(chr(10))[2]}"
    async with Stage(script_task(tmp_path, test=f"#!/bin/sh\n{test}"), FakeProvider(), repeats=2) as stage:
        result = await ask_check(load.CHECK, stage)
    assert len(odd) == idle_are_odd
    return result


async def test_idle_runs_that_a_busy_machine_turned_are_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = await _after_odd_runs(tmp_path, monkeypatch, idle_are_odd=2)
    assert (result.outcome, len(result.evidence["runs"]["again"])) == ("fail", 3)


async def test_nothing_is_told_where_no_run_is_as_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (await _after_odd_runs(tmp_path, monkeypatch, idle_are_odd=3)).outcome == "error"
