"""Running one episode: whatever happens inside, one record comes out, and it says why it ended."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest

from envsdk.episode.agents import AgentEnd, AnswerAgent, NoopAgent, OracleAgent, ScriptAgent
from envsdk.episode.conversation import ConversationAgent
from envsdk.episode.record import PolicyId
from envsdk.episode.run import run_episode
from envsdk.errors import EngineError, SandboxError
from envsdk.policy import InferenceError, Reply
from envsdk.sandboxes.base import Counters, ExecResult, Liveness
from envsdk.spec.model import Budget, HealthCheck
from tests.fakes.policy import ScriptedPolicy
from tests.fakes.sandbox import FakeProvider, FakeSandbox, Faults
from tests.fakes.tasks import script_task, text_task


async def test_the_oracle_earns_the_top_and_leaves_nothing_open(tmp_path: Path) -> None:
    provider = FakeProvider()
    record = await run_episode(script_task(tmp_path), OracleAgent(), provider)
    assert (record.outcome.outcome_class, record.outcome.cause, record.outcome.reward) == (
        "model_success",
        "finished",
        1.0,
    )
    assert provider.open_count == 0


async def test_doing_nothing_is_a_graded_failure(tmp_path: Path) -> None:
    record = await run_episode(script_task(tmp_path), NoopAgent(), FakeProvider())
    assert (record.outcome.outcome_class, record.outcome.reward) == ("model_failure", 0.0)


async def test_a_text_answer_needs_no_sandbox_at_all(tmp_path: Path) -> None:
    provider = FakeProvider()
    task = text_task(tmp_path)
    for agent, reward in ((OracleAgent(), 1.0), (AnswerAgent("6"), 0.0), (NoopAgent(), 0.0)):
        assert (await run_episode(task, agent, provider)).outcome.reward == reward
    assert provider.handed_out == []


async def test_the_oracle_is_gone_from_the_box_before_the_verifier_looks(tmp_path: Path) -> None:
    test = "#!/bin/sh\ntest ! -e /solution/solve.sh && echo 1 > /logs/verifier/reward.txt\n"
    record = await run_episode(script_task(tmp_path, test=test, mode="shared"), OracleAgent(), FakeProvider())
    assert record.outcome.reward == 1.0


class Gate:
    """Remembers when it was entered and left, by the stamps that there were."""

    def __init__(self) -> None:
        self.stamps: list[str] = []
        self.seen: list[tuple[str, ...]] = []

    async def __aenter__(self) -> None:
        self.seen.append(tuple(self.stamps))

    async def __aexit__(self, *_: object) -> None:
        self.seen.append(tuple(self.stamps))


async def test_the_verdict_is_made_within_what_it_was_given_and_nothing_else_is(tmp_path: Path) -> None:
    gate = Gate()
    record = await run_episode(
        script_task(tmp_path),
        OracleAgent(),
        FakeProvider(),
        grading=gate,
        on_stamp=lambda name, _: gate.stamps.append(name),
    )
    before = ("dispatched", "acquired", "verify_start")
    assert gate.seen == [before, before]
    assert record.outcome.reward == 1.0


async def test_an_end_that_nobody_verifies_enters_nothing(tmp_path: Path) -> None:
    gate = Gate()
    provider = FakeProvider(faults=Faults(acquire=[SandboxError("no", code="create_failed")]))
    await run_episode(script_task(tmp_path), OracleAgent(), provider, grading=gate)
    assert gate.seen == []


async def test_stamps_and_times_cover_the_phases_in_order(tmp_path: Path) -> None:
    heard: list[str] = []
    record = await run_episode(
        script_task(tmp_path), OracleAgent(), FakeProvider(), on_stamp=lambda name, _: heard.append(name)
    )
    assert heard == ["dispatched", "acquired", "verify_start", "verified"]
    assert list(record.stamps.values()) == sorted(record.stamps.values())
    assert record.times.acquire_s is not None
    assert record.times.verify_s is not None
    assert record.times.tool_s is not None
    assert record.times.setup_s is None


@pytest.mark.parametrize(
    ("faults", "cause"),
    [
        (Faults(ensure_image=SandboxError("429", code="pull_failed")), "image_pull"),
        (Faults(acquire=[SandboxError("no", code="create_failed")]), "sandbox_start"),
        (Faults(acquire=[SandboxError("no", code="connection_reset")]), "network"),
    ],
)
async def test_a_box_that_is_not_ready_is_the_machinerys(tmp_path: Path, faults: Faults, cause: str) -> None:
    record = await run_episode(script_task(tmp_path), OracleAgent(), FakeProvider(faults=faults))
    assert (record.outcome.outcome_class, record.outcome.cause, record.outcome.reward) == ("infra_failure", cause, None)
    assert record.evidence.error_code == ""


async def test_a_health_check_that_never_passes_fails_the_set_up(tmp_path: Path) -> None:
    provider = FakeProvider()
    task = script_task(tmp_path)
    check = HealthCheck(command="exit 1", retries=2, interval_s=0.01)
    container = task.spec.container.model_copy(update={"healthcheck": check})  # type: ignore[union-attr]
    sick = task.model_copy(update={"spec": task.spec.model_copy(update={"container": container})})
    record = await run_episode(sick, OracleAgent(), provider)
    assert record.outcome.cause == "setup_failed"
    assert provider.open_count == 0


class Breaking:
    """An agent that raises."""

    name = "breaking"
    policy = PolicyId(model="breaking")

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def needs_sandbox(self, task: Any) -> bool:
        return True

    async def act(self, task: Any, sandbox: Any, clock: Any) -> AgentEnd:
        raise self.error


@pytest.mark.parametrize(
    ("error", "outcome_class", "cause"),
    [
        (KeyError("x"), "infra_failure", "harness_error"),
        (EngineError("down"), "infra_failure", "inference_error"),
        (SandboxError("500", code="engine_api_error"), "infra_failure", "container_engine"),
        (SandboxError("?", code="channel_lost"), "unknown", "unclassified"),
    ],
)
async def test_what_an_agent_raises_ends_its_episode_only(
    tmp_path: Path, error: Exception, outcome_class: str, cause: str
) -> None:
    provider = FakeProvider()
    record = await run_episode(script_task(tmp_path), Breaking(error), provider)
    assert (record.outcome.outcome_class, record.outcome.cause) == (outcome_class, cause)
    assert record.facts["exception"]["note"]
    assert provider.open_count == 0


async def test_a_cancelled_episode_closes_its_box_and_is_recorded(tmp_path: Path) -> None:
    begun = asyncio.Event()
    provider = FakeProvider(faults=Faults(exec=lambda *_: begun.set()))
    task = script_task(tmp_path)
    running = asyncio.create_task(run_episode(task, ScriptAgent(b"#!/bin/sh\nsleep 60\n"), provider))
    await begun.wait()
    running.cancel()
    record = await running
    assert (record.outcome.outcome_class, record.outcome.cause, record.outcome.redispatch) == (
        "infra_failure",
        "cancelled",
        True,
    )
    assert provider.open_count == 0


async def test_a_deadline_is_verified_all_the_same(tmp_path: Path) -> None:
    task = script_task(tmp_path, budget=Budget(episode_s=1.5, verify_s=30))
    script = b"#!/bin/sh\necho 42 > /app/total.txt\nsleep 60\n"
    record = await run_episode(task, ScriptAgent(script), FakeProvider())
    assert (record.facts["ended_by"], record.outcome.cause) == ("episode_deadline", "episode_timeout")
    assert record.outcome.reward == 1.0
    assert record.facts["clocks"]["held_s"]["tool"] > 0


def lost_on(command: str, **facts: Any) -> Faults:
    def exec_(_: FakeSandbox, text: str) -> ExecResult | None:
        return ExecResult(exit_code=None, channel_lost=True) if text == command else None

    return Faults(exec=exec_, **facts)


@pytest.mark.parametrize(
    ("faults", "outcome_class", "cause"),
    [
        (
            lost_on(
                "boom",
                liveness=Liveness(alive=False, main_exit_code=137, oom_flag=True, engine_reachable=True),
                counters=Counters(oom_kills=2, memory_peak_mib=256, memory_limit_mib=256),
            ),
            "model_success",
            "memory_limit",
        ),
        (
            lost_on(
                "boom",
                liveness=Liveness(alive=False, engine_reachable=True),
                counters=Counters(pids_limit_hits=900, pids_peak=64, pids_limit=64),
            ),
            "model_success",
            "pids_limit",
        ),
        (
            lost_on("boom", liveness=Liveness(alive=False, main_exit_code=137, engine_reachable=False)),
            "infra_failure",
            "container_engine",
        ),
        (
            lost_on("boom", liveness=Liveness(alive=False, engine_reachable=True, engine_restarted=True)),
            "infra_failure",
            "container_engine",
        ),
        (
            lost_on("boom", liveness=Liveness(alive=True, engine_reachable=True)),
            "unknown",
            "unclassified",
        ),
    ],
)
async def test_a_lost_channel_is_told_apart_by_probes_and_counters(
    tmp_path: Path, faults: Faults, outcome_class: str, cause: str
) -> None:
    provider = FakeProvider(faults=faults)
    policy = ScriptedPolicy(["echo 42 > /app/total.txt", "boom"])
    record = await run_episode(script_task(tmp_path), ConversationAgent(policy), provider)
    assert (record.outcome.outcome_class, record.outcome.cause) == (outcome_class, cause)
    assert provider.open_count == 0


async def test_a_full_quota_is_the_models(tmp_path: Path) -> None:
    def exec_(_: FakeSandbox, text: str) -> ExecResult | None:
        if text == "fill":
            raise SandboxError("no space", code="disk_full")
        return None

    counters = Counters(disk_used_mib=100, disk_quota_mib=100)
    provider = FakeProvider(faults=Faults(exec=exec_, counters=counters))
    record = await run_episode(script_task(tmp_path), ConversationAgent(ScriptedPolicy(["fill"])), provider)
    assert (record.outcome.outcome_class, record.outcome.cause) == ("model_failure", "disk_quota")


async def test_tokens_versions_and_policy_are_on_the_record(tmp_path: Path) -> None:
    record = await run_episode(text_task(tmp_path), ConversationAgent(ScriptedPolicy(["5"])), None)
    assert record.tokens is not None
    assert record.policy.model == "scripted"
    assert (record.weight_version_oldest, record.weight_version_newest) == (3, 3)


async def test_lost_tokens_stay_in_evaluation_and_leave_the_gradient(tmp_path: Path) -> None:
    policy = ScriptedPolicy(["5"], complete=False)
    record = await run_episode(text_task(tmp_path), ConversationAgent(policy), None)
    assert (record.outcome.cause, record.outcome.counts_in_eval, record.outcome.in_gradient) == (
        "tokens_lost",
        True,
        False,
    )


async def test_no_verifier_runs_where_the_machinery_ended_it(tmp_path: Path) -> None:
    error = InferenceError("500", inference={"status": 500, "replica_healthy": False})
    record = await run_episode(text_task(tmp_path), ConversationAgent(ScriptedPolicy([error])), None)
    assert record.outcome.cause == "inference_error"
    assert record.facts["verifier"] == {"status": "not_run", "range": [0.0, 1.0], "pass_mark": 1.0}


async def test_a_failed_verifier_is_tried_elsewhere_and_found_broken(tmp_path: Path) -> None:
    record = await run_episode(script_task(tmp_path, test="#!/bin/sh\nexit 1\n"), OracleAgent(), FakeProvider())
    assert (record.outcome.outcome_class, record.outcome.cause) == ("infra_failure", "verifier_crash")
    assert [control["state"] for control in record.facts["control"]] == ["pristine", "oracle"]
    assert record.facts["verifier"]["runs"] == 2


async def test_a_state_that_breaks_a_good_verifier_is_the_models(tmp_path: Path) -> None:
    test = (
        "#!/bin/sh\nif grep -q evil /app/total.txt 2>/dev/null; then exit 1; fi\n"
        "grep -qx 42 /app/total.txt 2>/dev/null && r=1 || r=0\necho $r > /logs/verifier/reward.txt\n"
    )
    provider = FakeProvider()
    agent = ScriptAgent(b"#!/bin/sh\necho evil > /app/total.txt\n")
    record = await run_episode(script_task(tmp_path, test=test), agent, provider)
    assert (record.outcome.outcome_class, record.outcome.cause, record.outcome.reward) == (
        "model_failure",
        "state_breaks_verifier",
        0.0,
    )
    assert provider.open_count == 0


async def test_an_endless_submission_is_no_way_out(tmp_path: Path) -> None:
    test = "#!/bin/sh\nsh /app/total.txt > /app/said 2>/dev/null\ngrep -qx 42 /app/said && r=1 || r=0\necho $r > /logs/verifier/reward.txt\n"
    task = script_task(
        tmp_path, test=test, oracle="#!/bin/sh\necho 'echo 42' > /app/total.txt\n", budget=Budget(verify_s=3)
    )
    agent = ScriptAgent(b"#!/bin/sh\necho 'sleep 60' > /app/total.txt\n")
    record = await run_episode(task, agent, FakeProvider())
    assert (record.outcome.outcome_class, record.outcome.cause) == ("model_failure", "state_breaks_verifier")


async def test_a_crashing_text_verifier_is_not_a_zero(tmp_path: Path) -> None:
    task = text_task(tmp_path, source="def judge(answer):\n    raise ValueError\n")
    record = await run_episode(task, OracleAgent(), None)
    assert (record.outcome.outcome_class, record.outcome.cause, record.outcome.reward) == (
        "infra_failure",
        "verifier_crash",
        None,
    )


async def test_a_box_from_a_snapshot_is_used_and_closed(tmp_path: Path) -> None:
    provider = FakeProvider()
    origin = await provider.acquire(_spec())
    record = await run_episode(script_task(tmp_path), OracleAgent(), provider, prepared=await origin.snapshot())
    assert record.sandbox["id"] != origin.id
    assert record.outcome.reward == 1.0
    await origin.close()
    assert provider.open_count == 0


def _spec() -> Any:
    from envsdk.sandboxes.base import SandboxSpec

    return SandboxSpec(image="fake:latest")


async def test_episode_ids_are_kept_and_otherwise_fresh(tmp_path: Path) -> None:
    task = text_task(tmp_path)
    first, second = [await run_episode(task, NoopAgent(), None) for _ in range(2)]
    assert first.episode_id != second.episode_id
    assert (await run_episode(task, NoopAgent(), None, episode_id="e1", group_id="g", index_in_group=2)).group_id == "g"


async def test_a_second_cancel_during_clean_up_is_raised(tmp_path: Path) -> None:
    closing = asyncio.Event()

    class Slow(FakeSandbox):
        async def close(self) -> None:
            closing.set()
            await asyncio.sleep(0.2)
            await super().close()

    class SlowProvider(FakeProvider):
        async def acquire(self, spec: Any, *, timeout_s: float = 60.0) -> Any:
            box = Slow(spec, self.faults)
            self.handed_out.append(box)
            return box

    begun = asyncio.Event()
    provider = SlowProvider(faults=Faults(exec=lambda *_: begun.set()))
    running = asyncio.create_task(run_episode(script_task(tmp_path), ScriptAgent(b"#!/bin/sh\nsleep 9\n"), provider))
    await begun.wait()
    running.cancel()
    await closing.wait()
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    assert running.cancelled()
    await provider.close()


async def test_replies_that_never_come_are_the_engines(tmp_path: Path) -> None:
    task = text_task(tmp_path, budget=Budget(episode_s=1))
    record = await run_episode(task, ConversationAgent(ScriptedPolicy([30.0, Reply(text="5", finish="stop")])), None)
    assert (record.outcome.outcome_class, record.outcome.cause) == ("infra_failure", "inference_wait")


async def test_an_end_state_that_cannot_be_kept_costs_no_score(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    record = await run_episode(text_task(tmp_path / "task"), OracleAgent(), None, keep=tmp_path / "file" / "states")
    assert (record.outcome.outcome_class, record.outcome.reward) == ("model_success", 1.0)
    assert record.facts["exception"]["kind"] == "unwritable"
    assert "end_state" not in record.sandbox


@pytest.mark.parametrize(("answer", "reward"), [("5", 1.0), ("6", -1.0)])
async def test_a_declared_range_is_respected_at_both_ends(tmp_path: Path, answer: str, reward: float) -> None:
    source = "def judge(answer):\n    return 1 if answer == '5' else -1\n"
    record = await run_episode(text_task(tmp_path, source=source, low=-1.0, high=1.0), AnswerAgent(answer), None)
    assert record.outcome.reward == reward
    assert record.outcome.graded


async def test_a_wiped_state_earns_the_bottom_of_the_declared_range(tmp_path: Path) -> None:
    class Wiped(FakeSandbox):
        async def snapshot(self) -> Any:
            raise SandboxError("the file system cannot be read")

        async def alive(self) -> Liveness:
            return Liveness(alive=False, engine_reachable=True)

    class Provider(FakeProvider):
        async def acquire(self, spec: Any, *, timeout_s: float = 60.0) -> Any:
            if self.handed_out:
                return await super().acquire(spec, timeout_s=timeout_s)
            self.handed_out.append(Wiped(spec, lost_on("rm -rf /")))
            return self.handed_out[0]

    provider = Provider()
    policy = ScriptedPolicy(["rm -rf /"])
    record = await run_episode(script_task(tmp_path, low=-1.0), ConversationAgent(policy), provider)
    assert (record.outcome.cause, record.outcome.reward) == ("sandbox_broken", -1.0)
    assert record.facts["sandbox"] == {"alive": False, "state_recovered": False, "pristine_ok": True}
    assert provider.open_count == 0
