"""Tasks of several steps: one box, gates between them, one combined verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from envsdk.episode.agents import NoopAgent, OracleAgent, ScriptAgent
from envsdk.episode.conversation import ConversationAgent
from envsdk.episode.record import EpisodeRecord
from envsdk.episode.run import run_episode
from envsdk.spec.model import StepSpec, Task
from tests.fakes.policy import ScriptedPolicy
from tests.fakes.sandbox import FakeProvider
from tests.fakes.tasks import script_task


def stepped(root: Path, *, gate: float | None = None, setup: str = "", **spec: Any) -> Task:
    """Two steps: write 1 into /app/total.txt, then 2 into /app/second.txt beside it."""
    task = script_task(root, oracle=None)
    files = {"one": ("total.txt", "1"), "two": ("second.txt", "2")}
    for name, (file, text) in files.items():
        folder = root / "steps" / name
        for path, content in {
            "tests/test.sh": f"#!/bin/sh\ngrep -qx {text} /app/{file} && r=1 || r=0\necho $r > /logs/verifier/reward.txt\n",
            "solution/solve.sh": f"#!/bin/sh\necho {text} > /app/{file}\n",
        }.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(content)
    if setup:
        (root / "steps/two/workdir").mkdir()
        (root / "steps/two/workdir/setup.sh").write_text(setup)
        (root / "steps/two/workdir/given.txt").write_text("given")
    steps = tuple(
        StepSpec(
            name=name,
            instruction=f"Step {name}.",
            artifacts=(f"/app/{files[name][0]}",),
            min_reward={} if gate is None else {"reward": gate},
        )
        for name in files
    )
    changed = {"steps": steps, "instruction": "", **spec}
    return task.model_copy(
        update={"spec": task.spec.model_copy(update=changed), "oracle": "steps/one/solution/solve.sh"}
    )


async def run(task: Task, agent: Any) -> tuple[EpisodeRecord, FakeProvider]:
    provider = FakeProvider()
    record = await run_episode(task, agent, provider)
    assert provider.open_count == 0
    return record, provider


async def test_the_oracle_of_each_step_earns_the_top(tmp_path: Path) -> None:
    record, provider = await run(stepped(tmp_path), OracleAgent())
    assert (record.outcome.outcome_class, record.outcome.reward) == ("model_success", 1.0)
    assert record.outcome.rewards == {"reward": 1.0, "one": 1.0, "two": 1.0}
    assert sum("/solution/solve.sh" in command for command in provider.handed_out[0].commands) >= 2


async def test_the_mean_counts_every_step(tmp_path: Path) -> None:
    record, _ = await run(stepped(tmp_path), ScriptAgent(b"#!/bin/sh\necho 2 > /app/second.txt\n"))
    assert record.outcome.reward == 0.5
    assert record.outcome.rewards == {"reward": 0.5, "one": 0.0, "two": 1.0}


async def test_the_final_step_alone_counts_where_the_task_says_so(tmp_path: Path) -> None:
    task = stepped(tmp_path, step_reward="final")
    record, _ = await run(task, ScriptAgent(b"#!/bin/sh\necho 2 > /app/second.txt\n"))
    assert (record.outcome.outcome_class, record.outcome.reward) == ("model_success", 1.0)


async def test_a_gate_ends_the_episode_and_what_was_not_begun_counts_as_the_bottom(tmp_path: Path) -> None:
    record, provider = await run(stepped(tmp_path, gate=1.0), ScriptAgent(b"#!/bin/sh\necho 2 > /app/second.txt\n"))
    assert record.outcome.reward == 0.0
    assert record.outcome.rewards == {"reward": 0.0, "one": 0.0}
    assert sum("envsdk-script" in command for command in provider.handed_out[0].commands) == 1


async def test_a_steps_set_up_runs_before_it_and_leaves_its_files(tmp_path: Path) -> None:
    task = stepped(tmp_path, setup="#!/bin/sh\necho 2 > /app/second.txt\n")
    record, provider = await run(task, NoopAgent())
    assert record.outcome.rewards == {"reward": 0.5, "one": 0.0, "two": 1.0}
    assert record.times.setup_s is not None
    assert any("setup.sh" in command for command in provider.handed_out[0].commands)


async def test_a_set_up_that_fails_is_the_machinerys(tmp_path: Path) -> None:
    record, _ = await run(stepped(tmp_path, setup="#!/bin/sh\nexit 4\n"), OracleAgent())
    assert (record.outcome.outcome_class, record.outcome.cause, record.outcome.reward) == (
        "infra_failure",
        "setup_failed",
        None,
    )


async def test_several_conversations_are_evaluated_and_not_trained_on(tmp_path: Path) -> None:
    policy = ScriptedPolicy(["echo 1 > /app/total.txt; echo 2 > /app/second.txt", "done"])
    record, _ = await run(stepped(tmp_path), ConversationAgent(policy))
    assert (record.outcome.cause, record.outcome.reward, record.outcome.in_gradient) == ("tokens_lost", 1.0, False)
    assert record.outcome.counts_in_eval
    assert [heard[0].content for heard in policy.heard if heard[0].content.startswith("Step")] == [
        "Step one.",
        "Step two.",
    ]


async def test_a_broken_verifier_of_one_step_leaves_no_reward(tmp_path: Path) -> None:
    task = stepped(tmp_path)
    (tmp_path / "steps/two/tests/test.sh").write_text("#!/bin/sh\nexit 1\n")
    record, _ = await run(task, OracleAgent())
    assert (record.outcome.outcome_class, record.outcome.reward) == ("infra_failure", None)


async def test_what_judged_a_step_in_the_agents_own_box_is_gone_when_the_next_begins(tmp_path: Path) -> None:
    task = stepped(tmp_path)
    shared = task.spec.verifier.model_copy(update={"mode": "shared"})
    task = task.model_copy(update={"spec": task.spec.model_copy(update={"verifier": shared})})
    looks = b"#!/bin/sh\necho 1 > /app/total.txt; ls /tests /logs/verifier >> /app/seen.txt; cat /app/seen.txt\n"
    record, _ = await run(task, ScriptAgent(looks))
    assert record.outcome.rewards == {"reward": 0.5, "one": 1.0, "two": 0.0}
    assert "test.sh" not in record.turns[1].observation
    assert "reward.txt" not in record.turns[1].observation
