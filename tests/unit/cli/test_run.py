"""`envsdk run`, `envsdk score` and `envsdk outcomes`, on tasks that need no sandbox."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from envsdk.cli.app import run
from envsdk.episode.record import PolicyId
from envsdk.errors import EngineError
from envsdk.files.jsonl import read_rows
from envsdk.policy import Session
from envsdk.spec.load import load_task
from envsdk.waiting import told
from tests.fakes.http_chat import chat_server, said

TOML = """schema_version = "1.4"
artifacts = ["/app/answer.txt"]
[task]
name = "tests/five"
[verifier]
environment_mode = "separate"
[metadata.envsdk]
slug = "five"
[metadata.envsdk.agent]
protocol = "answer"
[metadata.envsdk.verifier]
kind = "text"
entry = "tests/verifier.py::judge"
exit_status = "native"
"""


def task_in(root: Path, source: str = "def judge(answer):\n    return answer.strip() == '5'\n") -> Path:
    for path, text in {
        "task.toml": TOML,
        "instruction.md": "What is 2+3?\n",
        "environment/Dockerfile": "ARG BASE=python:3.12-slim\nFROM ${BASE}\n",
        "tests/verifier.py": source,
        "tests/test.sh": "#!/bin/sh\nexit 1\n",
        "solution/answer.txt": "5",
        "solution/solve.sh": "#!/bin/sh\necho 5 > /app/answer.txt\n",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / "tests/test.sh").chmod(0o755)
    return root


def call(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, dict[str, Any]]:
    status = run([*args, "--json"])
    return status, json.loads(capsys.readouterr().out)


def test_a_task_of_a_python_file_runs_without_being_written_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "mine.py"
    source.write_text(
        "from envsdk import Draw, task, verifier\n"
        "@verifier\ndef right(answer: str) -> float:\n    return float(answer == '1')\n"
        "@task(verifier=right)\ndef one() -> Draw:\n    return Draw(instruction='One?', oracle='1', wrong=['2'])\n"
    )
    status, envelope = call(capsys, "run", str(source), "--policy", "noop")
    assert (status, [episode["slug"] for episode in envelope["episodes"]]) == (0, ["one"])
    assert envelope["episodes"][0]["outcome"]["reward"] == 0.0


def test_the_oracle_is_the_default_and_its_episode_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, envelope = call(capsys, "run", str(task_in(tmp_path)))
    assert (status, envelope["ok"]) == (0, True)
    [episode] = envelope["episodes"]
    assert (episode["slug"], episode["outcome"]["reward"], episode["policy"]["model"]) == ("five", 1.0, "oracle")


def test_people_get_lines_on_stderr_and_a_summary_on_stdout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", str(task_in(tmp_path)), "--policy", "noop", "-n", "2"]) == 0
    said_ = capsys.readouterr()
    assert said_.out == "0 of 2 passed, mean reward 0.000, scored 2 of 2\n"
    assert said_.err.count("model_failure (finished), reward 0") == 2


def test_episodes_are_appended_to_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task, out = str(task_in(tmp_path / "t")), tmp_path / "episodes.jsonl"
    for _ in range(2):
        call(capsys, "run", task, "-n", "2", "--out", str(out))
    rows = read_rows(out).rows
    assert len({row["episode_id"] for row in rows}) == 4


def test_a_policy_behind_a_url(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with chat_server(said("5"), said("6")) as server:
        status, envelope = call(
            capsys, "run", str(task_in(tmp_path)), "--policy", f"openai:{server.url}#m", "-n", "2", "--seed", "7"
        )
    assert status == 0
    assert sorted(episode["outcome"]["reward"] for episode in envelope["episodes"]) == [0.0, 1.0]
    assert sorted(request["seed"] for request in server.requests) == [7, 8]


def test_an_episode_that_could_not_be_graded_is_exit_4_with_its_cause(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = task_in(tmp_path, "def judge(answer):\n    raise ValueError('odd')\n")
    status, envelope = call(capsys, "run", str(task))
    assert (status, envelope["ok"]) == (4, False)
    assert envelope["errors"][0]["code"] == "verifier_crash"
    assert "odd" in envelope["errors"][0]["message"]
    assert envelope["episodes"][0]["outcome"]["reward"] is None


class SlowToStart:
    """A policy whose engine comes up, and fails, only once someone was told that it is still starting."""

    id = PolicyId(model="slow")

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys
        self.heard = ""

    async def begin(self, *, session_id: str, group_id: str = "", seed: int | None = None) -> Session:
        async with asyncio.timeout(30):
            while "still starting" not in self.heard:
                self.heard += self.capsys.readouterr().err
                await asyncio.sleep(0.001)
        raise EngineError("no engine", code="engine_start")

    async def close(self) -> None:
        return None


def test_a_slow_start_of_the_engine_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = SlowToStart(capsys)
    monkeypatch.setattr("envsdk.policies.find.open_policy", lambda _: policy)
    monkeypatch.setitem(told.__kwdefaults__, "every_s", 0.001)
    status, envelope = call(capsys, "run", str(task_in(tmp_path)), "--policy", "vllm:slow")
    assert (status, envelope["errors"][0]["code"]) == (4, "engine_start")
    assert policy.heard.startswith("starting slow\nstill starting\n")


def test_an_unknown_policy_is_a_usage_error_with_a_suggestion(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, envelope = call(capsys, "run", str(task_in(tmp_path)), "--policy", "orcle")
    assert (status, envelope["errors"][0]["code"]) == (2, "unknown_policy")
    assert "oracle" in envelope["errors"][0]["hint"]


def test_scoring_again_shows_what_a_changed_verifier_changes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "e.jsonl"
    call(capsys, "run", str(task_in(tmp_path / "a")), "--out", str(out))
    call(capsys, "run", str(tmp_path / "a"), "--policy", "noop", "--out", str(out))
    changed = task_in(tmp_path / "b", "def judge(answer):\n    return 1.0\n")
    before = out.read_bytes()
    status, envelope = call(capsys, "score", str(out), "--verifier", str(changed))
    assert status == 0
    assert [episode["after"]["reward"] for episode in envelope["episodes"]] == [1.0, 1.0]
    assert [change["before"] for change in envelope["changed"]] == ["model_failure, reward 0.0"]
    moved = {one["policy"]: (one["before"]["p"], one["after"]["p"]) for one in envelope["difficulty"]}
    assert moved == {"oracle": (1.0, 1.0), "noop": (0.0, 1.0)}
    assert envelope["verifier_digest"] == load_task(changed).digests.verifier
    assert out.read_bytes() == before


def test_scoring_without_end_states_names_each_episode(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task, out = task_in(tmp_path / "a"), tmp_path / "e.jsonl"
    call(capsys, "run", str(task), "--out", str(out))
    (tmp_path / "none").mkdir()
    status, envelope = call(capsys, "score", str(out), "--verifier", str(task), "--states", str(tmp_path / "none"))
    assert (status, envelope["errors"][0]["code"], envelope["episodes"]) == (4, "no_end_state", [])


def test_episodes_of_other_tasks_are_counted_and_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "e.jsonl"
    other = task_in(tmp_path / "b")
    (other / "instruction.md").write_text("What is 2+4?\n")
    for task in (task_in(tmp_path / "a"), other):
        call(capsys, "run", str(task), "--out", str(out))
    status, envelope = call(capsys, "score", str(out), "--verifier", str(other))
    assert (status, len(envelope["episodes"]), envelope["other_tasks"]) == (0, 1, 1)


def test_a_verifier_of_another_task_answers_nothing_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "e.jsonl"
    call(capsys, "run", str(task_in(tmp_path / "a")), "--out", str(out))
    other = task_in(tmp_path / "b")
    (other / "instruction.md").write_text("What is 2+4?\n")
    status, envelope = call(capsys, "score", str(out), "--verifier", str(other))
    assert (status, envelope["errors"][0]["code"]) == (2, "other_task")
    assert "they are of: five" in envelope["errors"][0]["hint"]


def test_scoring_what_is_not_there_is_usage_and_names_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task, out = task_in(tmp_path / "a"), tmp_path / "e.jsonl"
    status, envelope = call(capsys, "score", str(out), "--verifier", str(task))
    assert (status, envelope["errors"][0]["code"], envelope["errors"][0]["where"]) == (2, "no_episodes", str(out))
    call(capsys, "run", str(task), "--out", str(out))
    nope = str(tmp_path / "nope")
    status, envelope = call(capsys, "score", str(out), "--verifier", str(task), "--states", nope)
    assert (status, envelope["errors"][0]["code"], envelope["errors"][0]["where"]) == (2, "no_states", nope)


def test_scoring_takes_a_task_of_a_python_file_and_explains_its_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = tmp_path / "again.py", tmp_path / "e.jsonl"
    source.write_text(
        "from envsdk import Draw, task, verifier\n"
        "@verifier\ndef right(answer: str) -> float:\n    return float(answer == '1')\n"
        "@task(verifier=right)\ndef two() -> Draw:\n    return Draw(instruction='One?', oracle='1', wrong=['2'])\n"
    )
    call(capsys, "run", f"{source}::two", "--out", str(out))
    assert run(["score", str(out), "--verifier", f"{source}::two"]) == 0
    told_ = capsys.readouterr().out
    assert "0 of 1 verdicts changed" in told_
    assert "difficulty is the log odds of failing" in told_


def test_reclassifying_a_run_names_what_differs_and_changes_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run" / "e.jsonl"
    call(capsys, "run", str(task_in(tmp_path / "a")), "--out", str(out))
    old = out.read_text().replace('"cause":"finished"', '"cause":"turn_limit"')
    out.write_text(old)
    status, envelope = call(capsys, "outcomes", "reclassify", str(tmp_path / "run"))
    assert (status, envelope["episodes"], envelope["outcomes"]) == (0, 1, {"model_success": 1})
    assert envelope["changed"][0]["before"] == "model_success/turn_limit 1"
    assert out.read_text() == old


def test_written_outcomes_stand_in_a_file_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "e.jsonl"
    call(capsys, "run", str(task_in(tmp_path / "a")), "--out", str(out))
    call(capsys, "outcomes", "reclassify", str(out), "--write")
    assert read_rows(tmp_path / "e.jsonl.reclassified").rows == read_rows(out).rows


def test_a_folder_without_episodes_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, "outcomes", "reclassify", str(tmp_path))[1]["errors"][0]["code"] == "no_episodes"
