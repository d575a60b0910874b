"""Terminal-Bench 1 in: both scoring rules, and none of the parser's faults."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from envsdk.cli.app import run
from envsdk.formats.pytest_summary import all_passed
from envsdk.formats.terminal_bench import import_terminal_bench

HEAD = "=========================== short test summary info ============================"
LAST = "=============================== 2 passed in 0.01s ==============================="
GOOD = f"collected 2 items\n{HEAD}\nPASSED t.py::a\nPASSED t.py::b\n{LAST}\n"
YAML = "instruction: Do it.\nmax_agent_timeout_sec: 30\nmax_test_timeout_sec: 9\ntags: [a]\ndifficulty: hard\n"


def make(root: Path, yaml: str = YAML, **files: str) -> Path:
    contents = {
        "task.yaml": yaml,
        "Dockerfile": "FROM x\n",
        "run-tests.sh": "pytest $TEST_DIR/test_outputs.py -rA\n",
        "tests/test_outputs.py": "",
        "solution.sh": "echo\n",
        "data/in.txt": "1",
        **{name.replace("__", "/").replace("_dot_", ".").replace("_dash_", "-"): text for name, text in files.items()},
    }
    for name, text in contents.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_what_each_file_becomes(tmp_path: Path) -> None:
    result = import_terminal_bench(make(tmp_path / "t"), tmp_path / "out", rule="exit")
    task = result.tasks[0]
    files = sorted(p.relative_to(task.root).as_posix() for p in task.root.rglob("*") if p.is_file())
    assert files == [
        "environment/Dockerfile",
        "environment/data/in.txt",
        "instruction.md",
        "solution/solve.sh",
        "task.toml",
        "tests/run-tests.sh",
        "tests/test.sh",
        "tests/test_outputs.py",
    ]
    spec = task.spec
    assert (spec.slug, spec.instruction, spec.tags, spec.metadata) == ("t", "Do it.", ("a",), {"difficulty": "hard"})
    assert (spec.budget.episode_s, spec.budget.verify_s, spec.verifier.mode, spec.agent.user) == (
        30,
        9,
        "shared",
        "root",
    )


@pytest.mark.parametrize(
    ("yaml", "files", "code"),
    [
        ("parser_name: swebench\ninstruction: x\n", {}, "unsupported_parser"),
        ("difficulty: easy\n", {}, "empty_instruction"),
        ("[1]", {}, "bad_yaml"),
        ("a: [", {}, "bad_yaml"),
        ("instruction: x\nmax_test_timeout_sec: soon\n", {}, "bad_value"),
        (YAML, {"docker_dash_compose_dot_yaml": "services: {client: {}, db: {image: x}}"}, "unsupported_services"),
    ],
)
def test_what_cannot_be_converted_is_rejected_with_a_reason(
    tmp_path: Path, yaml: str, files: dict[str, str], code: str
) -> None:
    result = import_terminal_bench(make(tmp_path / "t", yaml, **files), tmp_path / "out", rule="parser")
    assert ([r.code for r in result.rejected], result.tasks) == ([code], [])


def test_a_task_without_tests_is_rejected(tmp_path: Path) -> None:
    root = make(tmp_path / "t")
    (root / "run-tests.sh").unlink()
    assert [r.code for r in import_terminal_bench(root, tmp_path / "out", rule="exit").rejected] == ["missing_file"]


def test_the_variant_with_descriptions_is_read(tmp_path: Path) -> None:
    yaml = "descriptions:\n- {key: hard, description: H}\n- {key: base, description: B}\n"
    assert (
        import_terminal_bench(make(tmp_path / "t", yaml), tmp_path / "o", rule="exit").tasks[0].spec.instruction == "B"
    )


@pytest.mark.parametrize(
    ("yaml", "oracle"),
    [
        ("- command: echo 1\n- command: echo 2\n", "#!/bin/bash\necho 1\necho 2\n"),
        ('- command: "\\x1b:wq"\n', None),
        ("- command: vim\n  append_enter: false\n", None),
        ("- keys: x\n", None),
    ],
)
def test_an_oracle_of_plain_commands_is_converted(tmp_path: Path, yaml: str, oracle: str | None) -> None:
    root = make(tmp_path / "t", solution_dot_yaml=yaml)
    (root / "solution.sh").unlink()
    result = import_terminal_bench(root, tmp_path / "out", rule="exit")
    solve = result.tasks[0].root / "solution" / "solve.sh"
    assert (solve.read_text() if solve.exists() else None) == oracle
    assert [w.code for w in result.warnings] == ([] if oracle else ["no_oracle"])


@pytest.mark.parametrize(
    ("rule", "tests", "reward"),
    [
        ("exit", "exit 0", "1"),
        ("exit", "set -e; false; true", "0"),
        ("exit", "exit 3", "0"),
        ("parser", f"cat <<'E'\n{GOOD}E\nexit 1", "1"),
        ("parser", "exit 0", "0"),
    ],
)
def test_the_script_scores_by_the_chosen_rule(tmp_path: Path, rule: str, tests: str, reward: str) -> None:
    task = import_terminal_bench(make(tmp_path / "t", run_dash_tests_dot_sh=tests), tmp_path / "out", rule=rule).tasks[
        0
    ]
    script = (task.root / "tests" / "test.sh").read_text()
    script = (
        script.replace("/logs/", f"{tmp_path}/logs/")
        .replace("/tests/", f"{task.root}/tests/")
        .replace("python3", sys.executable)
    )
    subprocess.run(["bash", "-c", script], check=True, capture_output=True, env=dict(os.environ))
    assert (tmp_path / "logs" / "verifier" / "reward.txt").read_text().strip() == reward


def test_a_good_run_passes() -> None:
    assert all_passed(GOOD)


@pytest.mark.parametrize(
    "output",
    [
        "",
        "1 passed",
        f"{HEAD}\n{LAST}\n",
        GOOD.replace("PASSED t.py::b", "FAILED t.py::b"),
        GOOD.replace("PASSED t.py::b", "\x1b[31mFAILED\x1b[0m t.py::b"),
        GOOD.replace("PASSED t.py::b", "SKIPPED [1] t.py:1: no").replace("2 passed", "1 passed, 1 skipped"),
        f"{HEAD}\nXFAIL t.py::a\n=== 1 xfailed in 0.01s ===\n",
        f"{HEAD}\nSKIPPED [1] t.py:1\n=== 1 skipped in 0.01s ===\n",
        GOOD.replace("2 passed", "2 passed, 1 failed"),
        GOOD.replace("2 passed", "3 passed"),
        GOOD + GOOD,
        f"{HEAD}\nFAILED t.py::a\n=== 1 failed in 0.01s ===\n{HEAD}\nPASSED t.py::a\n",
        GOOD.replace(LAST, ""),
        GOOD.replace("PASSED t.py::a\n", "").replace("2 passed", "2 passed, 3 deselected"),
    ],
)
def test_what_terminal_benchs_parser_takes_for_success_is_none(output: str) -> None:
    assert not all_passed(output)


def test_colour_alone_changes_nothing() -> None:
    assert all_passed(GOOD.replace("PASSED", "\x1b[32mPASSED\x1b[0m"))


def test_the_command_wants_a_rule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make(tmp_path / "t")
    assert run(["import", "terminal-bench", str(tmp_path), str(tmp_path / "out"), "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["errors"][0]["code"] == "usage"
    assert run(["import", "terminal-bench", str(tmp_path), str(tmp_path / "out"), "--rule", "both"]) == 2
    capsys.readouterr()
    assert run(["import", "terminal-bench", str(tmp_path), str(tmp_path / "out"), "--rule", "parser", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["imported"] == 1
