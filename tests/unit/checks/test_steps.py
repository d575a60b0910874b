"""Checks of tasks with several steps: each step's verifier, from where the oracles before it ended."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from envsdk.authoring.find import find_tasks
from envsdk.checks.check import Check, Finding, passes
from envsdk.checks.engine import ask_task, check_task
from envsdk.checks.report import CheckReport, CheckResult
from envsdk.checks.scene import Scene
from envsdk.checks.stage import Stage
from envsdk.checks.steps import set_stages, together
from envsdk.errors import SandboxError
from envsdk.spec.model import StepSpec, Task
from tests.fakes.sandbox import FakeProvider
from tests.fakes.tasks import script_task

QUICK = ("oracle", "noop", "empty", "malformed", "planted_reward")
AUTHORED = """
from envsdk import Draw, Step, task, verifier


@verifier
def same(answer: str, *, expected: str) -> bool:
    return answer.strip() == expected


@task(verifier=same)
def asked_twice() -> Draw:
    return Draw(
        steps=[
            Step(name="sum", instruction="What is 41+1?", oracle="42", params={"expected": "42"}),
            Step(name="double", instruction="And twice that?", oracle="84", params={"expected": "84"}),
        ]
    )
"""


def judge(condition: str) -> str:
    return f"#!/bin/sh\nrm -f /logs/verifier/reward.*\n{condition} && r=1 || r=0\necho $r > /logs/verifier/reward.txt\n"


FIRST = judge('[ "$(cat /app/total.txt)" = 42 ]')
SECOND = judge('[ "$(cat /app/total.txt)" = 42 ] && [ "$(cat /app/more.txt)" = 43 ]')
SOLVES = ("echo 42 > /app/total.txt", "expr $(cat /app/total.txt) + $(cat /app/given.txt) > /app/more.txt")


def stepped(
    root: Path,
    *,
    tests: tuple[str, str] = (FIRST, SECOND),
    solves: tuple[str | None, str | None] = SOLVES,
    gate: Mapping[str, float] | None = None,
    setup: str = "#!/bin/sh\necho 1 > /app/given.txt\n",
    mode: str = "separate",
) -> Task:
    """Two steps: a number, and one more than it, which needs what the step's set-up leaves."""
    task = script_task(root, oracle=None, artifacts=("/app/total.txt", "/app/more.txt"), mode=mode)
    for name, test, solve in zip(("one", "two"), tests, solves, strict=True):
        files = {"tests/test.sh": test, **({} if solve is None else {"solution/solve.sh": f"#!/bin/sh\n{solve}\n"})}
        if name == "two":
            files["workdir/setup.sh"] = setup
        for path, text in files.items():
            place = root / "steps" / name / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
            place.chmod(0o755)
    steps = tuple(
        StepSpec(name=name, instruction=f"Step {name}.", min_reward=gate or {}, artifacts=(f"/app/{file}.txt", *more))
        for name, file, more in (("one", "total", ()), ("two", "more", ("/app/total.txt",)))
    )
    spec = task.spec.model_copy(update={"steps": steps, "instruction": ""})
    return task.model_copy(update={"spec": spec})


async def ask(task: Task, provider: FakeProvider | None, *checks: str) -> dict[str, CheckResult]:
    report = await check_task(task, provider, checks=checks or QUICK, fresh=True)
    return {result.check: result for result in report.checks}


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVSDK_HOME", str(tmp_path / "home"))


async def test_every_step_is_asked_and_good_ones_pass(tmp_path: Path, provider: FakeProvider) -> None:
    found = await ask(stepped(tmp_path / "t"), provider)
    assert {name: result.outcome for name, result in found.items()} == dict.fromkeys(QUICK, "pass"), found
    assert found["oracle"].why == "steps one, two: reward 1"
    assert provider.open_count == 0


async def test_a_step_begins_with_what_the_oracles_before_it_and_its_own_set_up_left(
    tmp_path: Path, provider: FakeProvider
) -> None:
    async with set_stages(stepped(tmp_path / "t"), provider) as stages, stages["two"].box(Scene()) as box:
        assert await box.read("/app/total.txt") == b"42\n"
        assert await box.read("/app/given.txt") == b"1\n"
        with pytest.raises(SandboxError):
            await box.read("/app/more.txt")
        with pytest.raises(SandboxError):
            await box.read("/app/setup.sh")


async def test_the_first_step_without_files_of_its_own_begins_in_the_pristine_image(
    tmp_path: Path, provider: FakeProvider
) -> None:
    async with set_stages(stepped(tmp_path / "t"), provider) as stages:
        openings = [stage.opening for stage in stages.values()]
        assert [opening.is_pristine for opening in openings if opening] == [True, False]


async def test_the_way_to_a_step_is_gone_once(tmp_path: Path, provider: FakeProvider) -> None:
    async with set_stages(stepped(tmp_path / "t"), provider) as stages:
        for _ in range(3):
            await stages["two"].play(Scene())
    assert sum(command.endswith("setup.sh") for box in provider.handed_out for command in box.commands) == 2  # and rm


@pytest.mark.parametrize("mode", ["separate", "shared"])
async def test_what_judged_an_earlier_step_is_gone_where_a_later_one_begins(
    tmp_path: Path, provider: FakeProvider, mode: str
) -> None:
    test = FIRST.replace("echo $r", "echo seen > /app/trace.txt; echo $r")
    task = stepped(tmp_path / "t", tests=(test, SECOND), mode=mode)
    async with set_stages(task, provider) as stages, stages["two"].box(Scene()) as box:
        told = (await box.exec("ls /app /tests /logs/verifier")).stdout.decode()
    assert ("trace.txt" in told) == (mode == "shared")
    assert "test.sh" not in told
    assert "reward.txt" not in told


@pytest.mark.parametrize(
    ("tests", "check"),
    [
        ((FIRST, "#!/bin/sh\necho 1 > /logs/verifier/reward.txt\n"), "noop"),
        ((FIRST, judge("true")), "empty"),
        (
            (FIRST, "#!/bin/sh\n[ -e /logs/verifier/reward.txt ] || echo 0 > /logs/verifier/reward.txt\n"),
            "planted_reward",
        ),
        ((FIRST, judge("false")), "oracle"),
        ((FIRST, FIRST), "noop"),
    ],
    ids=["pays-for-nothing", "looks-at-nothing", "keeps-what-is-there", "never-pays", "judges-the-step-before"],
)
async def test_a_fault_of_a_later_step_is_the_tasks(
    tmp_path: Path, provider: FakeProvider, tests: tuple[str, str], check: str
) -> None:
    task = stepped(tmp_path / "t", tests=tests)
    if tests[1] == FIRST:
        steps = tuple(step.model_copy(update={"artifacts": ("/app/total.txt",)}) for step in task.spec.steps)
        task = task.model_copy(update={"spec": task.spec.model_copy(update={"steps": steps})})
    result = (await ask(task, provider, check))[check]
    assert result.outcome == "fail"
    assert result.why.startswith("step two: ")
    assert "step one" not in result.why
    assert [row["outcome"] for row in result.evidence["steps"]] == ["pass", "fail"]


async def test_a_gate_that_the_oracle_does_not_pass_is_a_fault(tmp_path: Path, provider: FakeProvider) -> None:
    half = FIRST.replace("echo $r >", 'echo \'{"reward": 1, "style": 0.5}\' >').replace("reward.txt", "reward.json")
    task = stepped(tmp_path / "t", tests=(half, SECOND), gate={"style": 0.8})
    result = (await ask(task, provider, "oracle"))["oracle"]
    assert result.outcome == "fail"
    assert "step one: the oracle does not pass the step's own gate: reward 1" in result.why


async def test_without_a_steps_oracle_the_steps_after_it_are_not_assessed_and_say_why(
    tmp_path: Path, provider: FakeProvider
) -> None:
    report = await check_task(stepped(tmp_path / "t", solves=(None, SOLVES[1])), provider, checks=QUICK, fresh=True)
    found = {result.check: result for result in report.checks}
    assert found["noop"].outcome == "skipped"
    assert found["noop"].why == "step two: step one has no oracle: what this step begins with is not known"
    assert found["noop"].evidence["steps"][0]["outcome"] == "pass"
    assert not report.complete


async def test_a_set_up_that_fails_leaves_the_step_undecided(tmp_path: Path, provider: FakeProvider) -> None:
    found = await ask(stepped(tmp_path / "t", setup="#!/bin/sh\nexit 4\n"), provider, "noop")
    assert found["noop"].outcome == "error"
    assert "step two: " in found["noop"].why
    assert "set-up ended with 4" in found["noop"].why


async def test_an_image_that_cannot_be_built_is_said_of_every_step(tmp_path: Path, provider: FakeProvider) -> None:
    provider.faults.ensure_image = SandboxError("no such base", code="image_not_found")
    found = await ask(stepped(tmp_path / "t"), provider, "oracle")
    assert found["oracle"].outcome == "error"
    assert found["oracle"].why.startswith("steps one, two: ")
    assert "no such base" in found["oracle"].why


async def test_plain_answers_of_several_steps_need_no_box(tmp_path: Path) -> None:
    (tmp_path / "asked_tasks.py").write_text(AUTHORED)
    [task] = find_tasks(tmp_path / "asked_tasks.py", tmp_path / "drawn")
    report: CheckReport = await check_task(task, None, fresh=True)
    assert report.verdict == "pass", [(row.check, row.why) for row in report.checks if row.outcome != "pass"]
    assert report.complete
    assert "steps sum, double: reward 1" in {row.why for row in report.checks}


async def test_a_task_without_steps_has_one_stage_and_a_plain_result(tmp_path: Path, provider: FakeProvider) -> None:
    async def examine(stage: Stage) -> Finding:
        return passes("asked", opening=stage.opening)

    async with set_stages(script_task(tmp_path / "t"), provider) as stages:
        result = await ask_task(Check("any", "?", "mend", examine), stages)
    assert (list(stages), result.why, result.evidence) == ([""], "asked", {"opening": None})


def result(outcome: str, why: str = "", **evidence: object) -> CheckResult:
    return CheckResult(check="x", outcome=outcome, why=why, evidence=evidence, seconds=1.0)


@pytest.mark.parametrize(
    ("outcomes", "whole"),
    [
        (("pass", "pass"), "pass"),
        (("pass", "error"), "error"),
        (("error", "fail"), "fail"),
        (("pass", "skipped"), "pass"),
        (("skipped", "skipped"), "skipped"),
    ],
)
def test_the_gravest_outcome_of_a_step_is_the_tasks(outcomes: tuple[str, str], whole: str) -> None:
    assert together({name: result(outcome) for name, outcome in zip("ab", outcomes, strict=True)}).outcome == whole


def test_what_was_not_assessed_on_one_step_is_not_assessed() -> None:
    merged = together({"a": result("pass"), "b": result("skipped", "no oracle", assessed=False)})
    assert (merged.outcome, merged.why, merged.evidence["assessed"]) == ("skipped", "step b: no oracle", False)


def test_evidence_keeps_the_name_of_its_step_and_seconds_add_up() -> None:
    merged = together({"a": result("pass", seen=1), "b": result("fail", "bad", output="x")})
    assert (merged.evidence["b: output"], merged.seconds) == ("x", 2.0)
    assert "a: seen" not in merged.evidence
