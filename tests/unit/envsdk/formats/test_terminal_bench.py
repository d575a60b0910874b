"""Terminal-Bench 1 in: both scoring rules, and none of the parser's faults."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from envsdk.cli.app import run
from envsdk.formats.marked_verdict import verdict
from envsdk.formats.pytest_summary import all_passed
from envsdk.formats.terminal_bench import import_terminal_bench
from envsdk.spec.model import ServiceSpec

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
        ("parser_name: sweperf\ninstruction: x\n", {}, "unsupported_parser"),
        ("difficulty: easy\n", {}, "empty_instruction"),
        ("[1]", {}, "bad_yaml"),
        ("a: [", {}, "bad_yaml"),
        ("instruction: x\nmax_test_timeout_sec: soon\n", {}, "bad_value"),
        (YAML, {"docker_dash_compose_dot_yaml": "services: {client: {volumes: ['./:/app']}}"}, "unsupported_compose"),
        (YAML, {"docker_dash_compose_dot_yaml": "services: ["}, "bad_yaml"),
        (YAML, {"Dockerfile": "FROM x\nCOPY tests/ /app/tests/\n"}, "leaks_verifier"),
        (YAML, {"Dockerfile": 'FROM x\nADD ["./run-tests.sh", "/app/"]\n'}, "leaks_verifier"),
        (YAML, {"Dockerfile": "FROM x\nCOPY --chmod=755 data/in.txt \\\n solution.sh /app/\n"}, "leaks_oracle"),
    ],
)
def test_what_cannot_be_converted_is_rejected_with_a_reason(
    tmp_path: Path, yaml: str, files: dict[str, str], code: str
) -> None:
    result = import_terminal_bench(make(tmp_path / "t", yaml, **files), tmp_path / "out", rule="parser")
    assert ([r.code for r in result.rejected], result.tasks) == ([code], [])


@pytest.mark.parametrize(
    "line", ["COPY . /app", "COPY data tests_data /app/", "COPY data/ /app/tests/", "RUN cp tests/x /app"]
)
def test_a_dockerfile_that_copies_other_things_is_fine(tmp_path: Path, line: str) -> None:
    root = make(tmp_path / "t", Dockerfile=f"FROM x\n{line}\n")
    assert len(import_terminal_bench(root, tmp_path / "out", rule="exit").tasks) == 1


def test_services_beside_the_client_become_ours(tmp_path: Path) -> None:
    compose = """
services:
  client:
    build: {dockerfile: Dockerfile}
    image: ${T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME}
    container_name: ${T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME}
    command: ["sh", "-c", "sleep infinity"]
    environment: ["TEST_DIR=${T_BENCH_TEST_DIR}", "LANG=C.UTF-8"]
    volumes: ["${T_BENCH_TASK_LOGS_PATH}:${T_BENCH_CONTAINER_LOGS_PATH}"]
    deploy: {resources: {limits: {cpus: '1'}}}
    depends_on: [db]
  db:
    build: ./db
    expose: [5432]
"""
    root = make(tmp_path / "t", docker_dash_compose_dot_yaml=compose, db__Dockerfile="FROM y\nWORKDIR /z\n")
    (task,) = import_terminal_bench(root, tmp_path / "out", rule="exit").tasks
    assert task.spec.services == (ServiceSpec(name="db", build="db", port=5432),)
    assert (task.root / "environment" / "db" / "Dockerfile").is_file()
    container = task.spec.container
    assert (container.network, container.env, container.limits.cpus) == (
        "internal",
        {"TEST_DIR": "/tests", "LANG": "C.UTF-8"},
        1.0,
    )


def test_the_work_directory_is_the_dockerfiles(tmp_path: Path) -> None:
    root = make(tmp_path / "t", Dockerfile="FROM x\nWORKDIR /work\n")
    assert import_terminal_bench(root, tmp_path / "out", rule="exit").tasks[0].spec.container.workdir == "/work"


@pytest.mark.parametrize(("rule", "codes"), [("exit", ["unsupported_parser"]), ("parser", [])])
def test_a_printed_verdict_is_no_exit_status(tmp_path: Path, rule: str, codes: list[str]) -> None:
    root = make(tmp_path / "t", f"{YAML}parser_name: swebench\n")
    assert [r.code for r in import_terminal_bench(root, tmp_path / "out", rule=rule).rejected] == codes


def test_canaries_and_tests_in_the_agents_shell_are_said(tmp_path: Path) -> None:
    root = make(tmp_path / "t", f"{YAML}run_tests_in_same_shell: true\n", solution_dot_sh="# t-bench-canary GUID 1\n")
    result = import_terminal_bench(root, tmp_path / "out", rule="exit")
    assert [(w.code, w.why.split(" (")[0]) for w in result.warnings] == [
        ("not_supported", "its tests ran in the agent's shell; here they have one of their own"),
        ("canary", "asks to be kept out of training corpora, in solution.sh"),
    ]


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
        ("3", None),
        ("[", None),
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
        ("parser", f"cat <<'E'\n{GOOD.replace('2 passed', '1 passed, 1 failed')}E", "0"),
        ("parser", "echo no network; exit 1", None),
        ("swebench", "echo SWEBench results starts here; echo PASSED; echo SWEBench results ends here", "1"),
        ("swebench", "echo SWEBench results starts here; echo FAILED; echo SWEBench results ends here", "0"),
        ("swebench", "echo PASSED", None),
    ],
)
def test_the_script_scores_by_the_chosen_rule(tmp_path: Path, rule: str, tests: str, reward: str | None) -> None:
    yaml = f"{YAML}parser_name: swebench\n" if rule == "swebench" else YAML
    root = make(tmp_path / "t", yaml, run_dash_tests_dot_sh=tests)
    (task,) = import_terminal_bench(root, tmp_path / "out", rule="exit" if rule == "exit" else "parser").tasks
    script = (task.root / "tests" / "test.sh").read_text()
    script = (
        script.replace("/logs/", f"{tmp_path}/logs/")
        .replace("/tests/", f"{task.root}/tests/")
        .replace("python3", sys.executable)
    )
    ended = subprocess.run(["bash", "-c", script], capture_output=True, env=dict(os.environ), check=False)
    written = tmp_path / "logs" / "verifier" / "reward.txt"
    assert (written.read_text().strip() if written.exists() else None) == reward
    assert (ended.returncode == 0) == (reward is not None)


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


@pytest.mark.parametrize("output", ["", "curl: (6) no such host\n", f"{HEAD}\nPASSED t.py::a\n"])
def test_a_run_that_came_to_no_end_has_no_reward(output: str) -> None:
    assert all_passed(output) is None


@pytest.mark.parametrize("output", ["=== no tests ran in 0.01s ===\n", f"{HEAD}\n{LAST}\n", GOOD + GOOD])
def test_a_run_that_tested_nothing_or_was_forged_is_a_failure(output: str) -> None:
    assert all_passed(output) is False


MARKED = "SWEBench results starts here\n{}\nSWEBench results ends here\n"


@pytest.mark.parametrize(
    ("output", "passed"),
    [
        (MARKED.format("PASSED"), True),
        ("noise PASSED\n" + MARKED.format("\x1b[32mFAILED\x1b[0m"), False),
        (MARKED.format("PASSED") + MARKED.format("FAILED"), False),
        (MARKED.format("PASSED") + MARKED.format("PASSED"), False),
        (MARKED.format("PASSED\nFAILED"), None),
        (MARKED.format(""), None),
        (MARKED.format("PASSED with warnings"), None),
        ("x " + MARKED.format("PASSED"), None),
        ("PASSED\n", None),
    ],
)
def test_a_printed_verdict_is_one_word_between_its_marks(output: str, passed: bool | None) -> None:
    assert verdict(output, "SWEBench") is passed


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
