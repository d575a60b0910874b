"""Checks of text verifiers, end to end in the verifier's own process: each faulty one is found, the good one is not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from envsdk.authoring.find import find_tasks
from envsdk.checks.engine import check_task
from envsdk.checks.replies import supplied
from envsdk.spec.load import load_task

AUTHORED = """
from envsdk import Budget, Draw, task, verifier


@verifier
def whole(answer: str, *, word: str) -> bool:
    return answer.strip() == word


@verifier
def contains(answer: str, *, word: str) -> bool:
    return word in answer


@verifier
def anything(answer: str, *, word: str) -> bool:
    return True


@verifier
def nothing(answer: str, *, word: str) -> bool:
    return False


@verifier
def first_letter(answer: str, *, word: str) -> bool:
    return answer[0] == word[0]


@verifier
def no_newline(answer: str, *, word: str) -> bool:
    return answer == word + "\\n"


@verifier
def strict(answer: str, *, word: str) -> bool:
    return answer == word


@verifier
def today(answer: str, *, word: str) -> bool:
    import datetime

    return answer.strip() == word and datetime.date.today() == datetime.date.fromtimestamp(__import__("os").stat(__file__).st_mtime)


@verifier
def zone(answer: str, *, word: str) -> bool:
    import time

    return answer.strip() == word and time.localtime(86400 * 365).tm_hour == 0


@verifier
def by_hash(answer: str, *, word: str) -> bool:
    return answer.strip() == word and len({hash(letter) % 7 for letter in "abcdefghijk"}) > 0 and next(iter({"x", "y"})) == "x"


@verifier
def endless(answer: str, *, word: str) -> bool:
    while True:
        pass


def draw(**more):
    return Draw(instruction="What is six times seven?", oracle="42", params={"word": "42"}, **more)


good = task(verifier=whole, name="good")(lambda: draw(wrong=["24"], right=[" 42 "]))
lax = task(verifier=contains, name="lax")(lambda: draw(wrong=["It is not 42."]))
open_ = task(verifier=anything, name="open")(lambda: draw())
shut = task(verifier=nothing, name="shut")(lambda: draw())
breaks = task(verifier=first_letter, name="breaks")(lambda: draw())
dated = task(verifier=today, name="dated")(lambda: draw())
zoned = task(verifier=zone, name="zoned")(lambda: draw())
hashed = task(verifier=by_hash, name="hashed")(lambda: draw())
stuck = task(verifier=endless, name="stuck", budget=Budget(verify_s=0.5))(lambda: draw())
brittle = task(verifier=strict, name="brittle")(lambda: draw(right={"spaced": " 42 "}))
"""


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("authored")
    (folder / "authored_tasks.py").write_text(AUTHORED)
    return {task.slug: task.root for task in find_tasks(folder / "authored_tasks.py", folder / "drawn")}


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVSDK_HOME", str(tmp_path / "home"))


async def failed(root: Path) -> dict[str, str]:
    report = await check_task(load_task(root), None)
    assert not [(r.check, r.why) for r in report.checks if r.outcome == "error"]
    return {result.check: result.why for result in report.checks if result.outcome == "fail"}


async def test_a_good_verifier_passes_every_check(tasks: dict[str, Path]) -> None:
    assert await failed(tasks["good"]) == {}


async def test_a_verifier_that_searches_pays_a_supplied_wrong_answer(tasks: dict[str, Path]) -> None:
    report = await check_task(load_task(tasks["lax"]), None)
    (found,) = [result for result in report.checks if result.outcome == "fail"]
    assert found.check == "mutants"
    names = [row["name"] for row in found.evidence["survivors"]]
    assert "the author's wrong answer 01" in names
    assert "/app/answer.txt: every number there is" in names


async def test_a_verifier_that_says_yes_to_everything_fails_all_that_must_stay_low(tasks: dict[str, Path]) -> None:
    assert (await failed(tasks["open"])).keys() == {"noop", "empty", "echo", "malformed", "mutants"}


async def test_an_oracle_that_does_not_pass_is_found_and_what_needs_it_is_not_assessed(tasks: dict[str, Path]) -> None:
    report = await check_task(load_task(tasks["shut"]), None)
    outcomes = {result.check: result.outcome for result in report.checks}
    assert outcomes["oracle"] == "fail"
    assert outcomes["mutants"] == "skipped"
    assert not report.complete


async def test_a_verifier_that_raises_on_an_empty_answer_gives_no_reward_where_it_must(tasks: dict[str, Path]) -> None:
    found = await failed(tasks["breaks"])
    assert "verifier_exit" in found["noop"]
    assert "empty" in found


async def test_a_right_answer_that_is_refused_is_named(tasks: dict[str, Path]) -> None:
    found = await failed(tasks["brittle"])
    assert found.keys() == {"mutants"}
    assert "a right submission is refused" in found["mutants"]


@pytest.mark.parametrize(("slug", "check"), [("dated", "clock"), ("zoned", "clock"), ("hashed", "hash_seed")])
async def test_a_verifier_that_depends_on_its_surroundings_is_found(
    tasks: dict[str, Path], slug: str, check: str
) -> None:
    report = await check_task(load_task(tasks[slug]), None, checks=[check])
    assert report.checks[0].outcome == "fail", report.checks[0].why


async def test_a_verifier_that_never_ends_is_one_finding(tasks: dict[str, Path]) -> None:
    report = await check_task(load_task(tasks["stuck"]), None)
    assert {result.check for result in report.checks if result.outcome == "fail"} == {"oracle"}
    assert "verifier_timeout" in next(result.why for result in report.checks if result.check == "oracle")
    assert "does not end" in next(result.why for result in report.checks if result.check == "noop")


async def test_a_task_without_an_oracle_is_not_assessed(tasks: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(tasks["good"], tmp_path / "bare")
    shutil.rmtree(tmp_path / "bare" / "solution")
    report = await check_task(load_task(tmp_path / "bare"), None)
    assert not report.complete
    assert {r.check for r in report.checks if r.why == "the task has no oracle"} >= {"oracle", "mutants", "repeat"}


def test_supplied_answers_are_found_wrong_ones_first(tasks: dict[str, Path]) -> None:
    assert [(reply.side, reply.name) for reply in supplied(tasks["good"])] == [("wrong", "01"), ("right", "01")]
