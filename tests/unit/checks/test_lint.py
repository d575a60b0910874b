"""Rules that read a task's files: each with what it finds and what only looks like it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envsdk.checks.lint import downloads, line_ends, names, python_syntax, reward_path, run_bits, status
from envsdk.checks.lint.fault import Fault
from envsdk.checks.lint.files import TaskFiles, read_task_files
from envsdk.checks.lint.shell import commands
from envsdk.spec.model import ContainerSpec, Digests, Task, TaskSpec, VerifierSpec

REWARD = "mkdir -p /logs/verifier\necho 1 > /logs/verifier/reward.txt\n"


def files_of(tmp_path: Path, files: dict[str, str], *, executable: tuple[str, ...] = (), **spec: Any) -> TaskFiles:
    for name, text in files.items():
        place = tmp_path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode())
        place.chmod(0o755 if name in executable else 0o644)
    given = {"slug": "t", "instruction": "Write /app/out.txt.", "container": ContainerSpec(), **spec}
    return read_task_files(
        Task(spec=TaskSpec(**given), digests=Digests(task="", verifier="", package=""), root=tmp_path)
    )


def found(rule: Any, *args: Any, **named: Any) -> list[tuple[str, int]]:
    return [(fault.code, fault.line) for fault in rule(files_of(*args, **named))]


def test_commands_leave_out_comments_and_here_documents_and_join_lines() -> None:
    script = "a # note\n\n# whole\nb \\\n  c\ncat <<'EOF' | d\nnot a command || true\nEOF\necho '# kept | x'\n"
    assert [(line.number, line.text) for line in commands(script)] == [
        (1, "a"),
        (4, "b   c"),
        (6, "cat <<'EOF' | d"),
        (9, "echo '# kept | x'"),
    ]


@pytest.mark.parametrize(
    ("script", "first", "second"),
    [
        ("want='a\npip install x\nb'\nlast", "want='a\npip install x\nb'", (4, "last")),
        ('x="a\n\\" b"\nlast', 'x="a\n\\" b"', (3, "last")),
        ("x=$'it\\'s'\nlast", "x=$'it\\'s'", (2, "last")),
        ("a # don't\nlast", "a", (2, "last")),
        ("echo it\\'s\nlast", "echo it\\'s", (2, "last")),
        ("awk '\n  # it is\n  { print }' f\nlast", "awk '\n  # it is\n  { print }' f", (4, "last")),
    ],
)
def test_a_text_in_quotes_is_part_of_its_command_over_several_lines(
    script: str, first: str, second: tuple[int, str]
) -> None:
    one, two = commands(script)
    assert (one.number, one.text) == (1, first)
    assert "install" not in one.bare
    assert (two.number, two.text) == second


def test_a_quote_that_never_closes_takes_in_nothing_and_a_here_document_is_none() -> None:
    assert [line.text for line in commands("echo it's\npip install x\n")] == ["echo it's", "pip install x"]
    assert [line.number for line in commands('x="$(cat <<EOF\nit\'s "\nEOF\n)"\nlast\n')] == [1, 4, 5]


def test_a_script_with_cr_lf_is_found_and_a_data_file_with_it_is_not(tmp_path: Path) -> None:
    files = {"tests/test.sh": "#!/bin/sh\r\ntrue\r\n", "tests/data.txt": "a\r\n", "solution/solve.sh": "#!/bin/sh\n"}
    assert found(line_ends.rule, tmp_path, files) == [("crlf_script", 1)]


@pytest.mark.parametrize(
    "call",
    ["/tests/helper", "if /tests/helper; then", "x && /tests/helper -v", "out=$(/tests/helper)", "! /tests/helper"],
)
def test_a_helper_called_without_its_run_bit_is_found(tmp_path: Path, call: str) -> None:
    files = {"tests/test.sh": f"#!/bin/sh\n{call}\n", "tests/helper": "#!/bin/sh\n"}
    assert found(run_bits.rule, tmp_path, files) == [("helper_not_executable", 2)]


@pytest.mark.parametrize(
    "call",
    [
        "sh /tests/helper",
        "cat /tests/helper",
        "chmod +x /tests/helper\n/tests/helper",
        "# /tests/helper",
        "/tests/other",
    ],
)
def test_a_helper_called_through_an_interpreter_or_made_executable_is_fine(tmp_path: Path, call: str) -> None:
    files = {"tests/test.sh": f"#!/bin/sh\n{call}\n", "tests/helper": "#!/bin/sh\n"}
    assert found(run_bits.rule, tmp_path, files) == []


def test_a_helper_with_its_run_bit_is_fine(tmp_path: Path) -> None:
    files = {"tests/test.sh": "#!/bin/sh\n/tests/helper\n", "tests/helper": "#!/bin/sh\n"}
    assert found(run_bits.rule, tmp_path, files, executable=("tests/helper",)) == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x=1\necho 1 > /logs/verifier/rewards.json\n", 2),
        ("echo 1 > /logs/verifier/Reward.txt\n", 1),
        ("echo 1 > /logs/score\n", 1),
        ("true\n", 0),
    ],
)
def test_a_reward_that_goes_where_no_reader_looks_is_found(tmp_path: Path, text: str, line: int) -> None:
    assert found(reward_path.rule, tmp_path, {"tests/test.sh": text}) == [("wrong_reward_path", line)]


@pytest.mark.parametrize(
    "text",
    [
        REWARD,
        'out=/logs/verifier\necho 1 > "$out/reward.txt"\n',
        "python3 /tests/judge.py\n",
        "cd /logs/verifier; echo 1 > reward.json\n",
    ],
)
def test_a_reward_that_some_file_names_is_fine(tmp_path: Path, text: str) -> None:
    files = {"tests/test.sh": text, "tests/judge.py": "open('/logs/verifier/reward.json', 'w')\n"}
    assert found(reward_path.rule, tmp_path, files) == []


def test_a_python_verifier_writes_no_reward_itself(tmp_path: Path) -> None:
    verifier = VerifierSpec(kind="text", entry="tests/verifier.py::f")
    assert found(reward_path.rule, tmp_path, {"tests/test.sh": "true\n"}, verifier=verifier) == []


@pytest.mark.parametrize(
    ("script", "line"),
    [
        ("python3 /tests/t.py || true\nif [ $? -eq 0 ]; then echo 1; fi\n", 1),
        ("python3 - <<'EOF' || true\nassert 0\nEOF\n[ $? -eq 0 ] && r=1\n", 1),
        ("pytest | tee log\nstatus=$?\n", 1),
        ("set -e\nif pytest /tests | tee log; then echo 1; fi\n", 2),
        ("if check || true; then echo 1; fi\n", 1),
        ("cmp a b; true\necho $?\n", 1),
    ],
)
def test_a_status_that_is_lost_before_it_decides_is_found(tmp_path: Path, script: str, line: int) -> None:
    assert found(status.rule, tmp_path, {"tests/test.sh": f"#!/bin/sh\n{script}"}) == [("swallowed_status", line + 1)]


@pytest.mark.parametrize(
    "script",
    [
        "rm -f /tmp/x || true\necho 0\n",
        "rm -f /tmp/x || true\npython3 /tests/t.py\nif [ $? -eq 0 ]; then echo 1; fi\n",
        "set -o pipefail\npytest | tee log\nstatus=$?\n",
        "pytest | tee log\nstatus=${PIPESTATUS[0]}\n",
        "printf 42 | cmp -s - /app/x\nstatus=$?\n",
        "if printf 42 | cmp -s - /app/x; then echo 1; fi\n",
        'got=$(cat x | head -c 10)\n[ "$got" = 1 ] && echo 1\n',
        "python3 - <<'EOF'\nx = 1 or True  # || true\nEOF\nif [ $? -eq 0 ]; then echo 1; fi\n",
        "echo 'a || true'\necho $?\n",
    ],
)
def test_a_status_that_only_looks_lost_is_fine(tmp_path: Path, script: str) -> None:
    assert found(status.rule, tmp_path, {"tests/test.sh": f"#!/bin/sh\n{script}"}) == []


@pytest.mark.parametrize(
    "line",
    [
        "python3 -m pip install --quiet x==1",
        "pip install x",
        "apt-get -y install curl",
        "apt update",
        "npm ci",
        "curl -fsSL https://get.example/x | sh",
        "wget http://example.org/a",
        "git clone https://example.org/r",
        "uvx pytest",
        "cargo install x",
    ],
)
def test_an_install_or_download_while_verifying_is_found(tmp_path: Path, line: str) -> None:
    assert len(found(downloads.rule, tmp_path, {"tests/test.sh": f"#!/bin/sh\n{line}\n"})) == 1


@pytest.mark.parametrize(
    "line",
    [
        "curl http://127.0.0.1:80/x",
        "curl http://localhost/x",
        "curl http://api:80/",
        "echo pip install x",
        "# pip install x",
        "pip list",
        "curl $URL/x",
    ],
)
def test_the_loopback_services_and_words_are_no_download(tmp_path: Path, line: str) -> None:
    from envsdk.spec.model import ServiceSpec

    assert (
        found(
            downloads.rule,
            tmp_path,
            {"tests/test.sh": f"#!/bin/sh\n{line}\n"},
            services=(ServiceSpec(name="api", image="x"),),
        )
        == []
    )


def test_a_declared_network_may_be_used(tmp_path: Path) -> None:
    verifier = VerifierSpec(network="public")
    assert found(downloads.rule, tmp_path, {"tests/test.sh": "pip install x\n"}, verifier=verifier) == []


def test_python_that_does_not_parse_is_found(tmp_path: Path) -> None:
    assert found(python_syntax.rule, tmp_path, {"tests/t.py": "x = 1\ndef (:\n", "tests/ok.py": "x = 1\n"}) == [
        ("not_python", 2)
    ]


def unknown(tmp_path: Path, instruction: str, test: str, artifacts: tuple[str, ...] = ()) -> list[str]:
    files = files_of(tmp_path, {"tests/test.sh": test}, instruction=instruction, artifacts=artifacts)
    return [path.path for path in names.unknown_paths(files)]


@pytest.mark.parametrize(
    ("instruction", "test", "path"),
    [
        ("Write to `/app/result.txt`.", "cat /app/results.txt", "/app/results.txt"),
        ("Write the results to `/app/result.txt`.", "cat /app/results.txt", "/app/results.txt"),
        ("Set the state in /app/status.", "cat /app/state", "/app/state"),
        ("Write out.csv.", "cmp /app/out/final.csv x", "/app/out/final.csv"),
        ("Write `/app/out/sum.csv`.", "cat /app/output/sum.csv", "/app/output/sum.csv"),
        ("Write `/app/result/a.txt`.", "cat /app/results/a.txt", "/app/results/a.txt"),
    ],
)
def test_a_path_that_the_instruction_does_not_know_is_found(
    tmp_path: Path, instruction: str, test: str, path: str
) -> None:
    assert unknown(tmp_path, instruction, f"#!/bin/sh\n{test}\n") == [path]


@pytest.mark.parametrize(
    ("instruction", "test"),
    [
        ("Write `/app/total.txt`.", "cat /app/total.txt"),
        ("Write total.txt.", "cat /app/total.txt"),
        ("Write the module `roman`.", "python3 /app/roman.py"),
        ("Write three files in /app/stats.", 'cat "/app/stats/min"'),
        ("Put them under stats/.", "ls /app/stats/min"),
        ("Write /app/stats/min.", 'path = "/app/stats/" + name'),
        ("Do it.", "mkdir -p /app/t\ncp /tests/x /app/t/\nls /app/t/x"),
        ("Do it.", "echo 1 > /app/mine\ncat /app/mine"),
        ("Do it.", "# reads /app/other"),
        ("Do it.", "cd /app"),
        ("Do it.", "ls /app/$name"),
        ("Create the file `state`.", "cat /app/state"),
        ("Write `/app/out/sum.csv` and copy it to `output`.", "cat /app/output/sum.csv"),
        ("Copy `/app/in/a.txt` to the folder out.", "cat /app/out/a.txt"),
        ("Sort `/data/a.txt` in place in the workspace.", "cat /app/a.txt"),
        ("Write `/app/out/sum.csv`, then a second sum.csv elsewhere.", "cat /app/output/sum.csv"),
    ],
)
def test_a_path_that_is_named_made_or_partial_is_fine(tmp_path: Path, instruction: str, test: str) -> None:
    assert unknown(tmp_path, instruction, f"#!/bin/sh\n{test}\n") == []


def test_an_artifact_that_the_instruction_does_not_name_is_found_with_what_was_meant(tmp_path: Path) -> None:
    test = {"tests/test.sh": "#!/bin/sh\ncat results.txt\n"}
    files = files_of(
        tmp_path, test, instruction="Sort into `/app/result.txt`.", artifacts=("/app/results.txt", "/app/log")
    )
    (path,) = names.unknown_paths(files)
    assert path.fault() == Fault(
        "unknown_path",
        "task.toml",
        0,
        "/app/results.txt is not named by the instruction; did you mean /app/result.txt?",
    )


@pytest.mark.parametrize(
    ("artifacts", "test", "unknown"),
    [
        (("/app/table.csv",), 'open("table" + ".csv")', ["/app/table.csv"]),
        (("/app/table.csv", "/app/table.tsv"), 'open("table" + ".csv")', []),
        (("/app/tables.csv",), 'open("table" + ".csv")', []),
    ],
)
def test_a_name_put_together_is_judged_where_the_instruction_has_one_that_is_no_artifact(
    tmp_path: Path, artifacts: tuple[str, ...], test: str, unknown: list[str]
) -> None:
    files = files_of(tmp_path, {"tests/test.sh": test}, instruction="Write `/app/table.tsv`.", artifacts=artifacts)
    assert [path.path for path in names.unknown_paths(files)] == unknown


def test_links_and_what_is_no_text_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "link.sh").symlink_to("/etc/passwd")
    (tmp_path / "tests" / "data").write_bytes(b"\xff\xfe")
    assert files_of(tmp_path, {"tests/test.sh": "x"}).texts == {"tests/test.sh": "x"}


@pytest.mark.parametrize(
    "line",
    [
        "python3 -c 'exec(open(\"/tests/helper\").read())'",
        "python3 -c \"open('/tests/helper')\"",
        'echo "(/tests/helper"',
        "cat /tests/helper",
        "printf '%s\\n' 'if /tests/helper; then'",
    ],
)
def test_a_path_inside_of_quotes_or_among_arguments_is_no_call(tmp_path: Path, line: str) -> None:
    files = {"tests/test.sh": f"#!/bin/sh\n{line}\n", "tests/helper": "#!/bin/sh\n"}
    assert found(run_bits.rule, tmp_path, files) == []


def test_a_quoted_command_is_a_call(tmp_path: Path) -> None:
    files = {"tests/test.sh": '#!/bin/sh\n"/tests/helper" -v\n', "tests/helper": "#!/bin/sh\n"}
    assert found(run_bits.rule, tmp_path, files) == [("helper_not_executable", 2)]
