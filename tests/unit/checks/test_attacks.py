"""Attacks: what each plants, and when it has nothing to try."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from typing import Any

import pytest

from envsdk.checks.attacks import expressions, interpreter, leftover, links, path, settings, submission, workspace
from envsdk.checks.attacks.ground import WRONG, Attack, Ground, is_spoken
from envsdk.checks.stage import OracleRun
from envsdk.verifying.verdict import Verdict

PASSED = Verdict("scored", 1.0)


def ground(test: str = "", outputs: dict[str, bytes] | None = None, **given: Any) -> Ground:
    outputs = {"/app/out.txt": b"42\n"} if outputs is None else outputs
    run = OracleRun(PASSED, None, outputs, given.pop("before", {}))
    fields: dict[str, Any] = {
        "tests": {"tests/test.sh": test, **given.pop("more", {})},
        "oracle": run,
        "targets": tuple(outputs),
        "writable": {},
        "folders": ("/app", "/home/agent"),
        "path_folders": (),
        "user": "agent",
        "workdir": "/app",
        "instruction": "",
        "base": dict.fromkeys(outputs, WRONG),
        **given,
    }
    return Ground(**fields)


def files(attack: Attack) -> dict[str, bytes]:
    return dict(attack.scene.files)


def test_a_file_that_the_verifier_trusts_is_replaced_in_several_ways() -> None:
    made = list(workspace.attacks(ground(writable={"/app/check.sh": True})))
    contents = [files(attack).get("/app/check.sh", b"") for attack in made]
    assert {b"#!/bin/sh\nexit 0\n", b"PASS\n", b"", WRONG} < set(contents)
    assert any(b"reward.txt" in content for content in contents)
    assert all(files(attack)["/app/out.txt"] == WRONG for attack in made if attack.control is None)


def test_a_file_that_is_not_there_yet_may_hold_the_expectation_and_is_never_emptied() -> None:
    made = list(workspace.attacks(ground(writable={"/tmp/want.txt": False})))
    contents = [files(attack)["/tmp/want.txt"] for attack in made]
    assert WRONG in contents
    assert b"" not in contents


@pytest.mark.parametrize("path", ["/app/out.sha256", "/app/MD5SUMS"])
def test_checksums_in_the_workspace_are_made_to_fit(path: str) -> None:
    (made,) = [a for a in workspace.attacks(ground(writable={path: True})) if "checksums" in a.name]
    kind = "md5" if "MD5" in path else "sha256"
    digest = hashlib.new(kind, WRONG).hexdigest()
    assert files(made)[path] == f"{digest}  out.txt\n".encode()


@pytest.mark.parametrize(
    ("kind", "line"), [("sha256", "{}  out.txt\n"), ("md5", "{} *./out.txt\n"), ("sha1", "{}  -\n"), ("sha512", "{}\n")]
)
def test_checksums_are_known_by_their_length_and_made_anew_whatever_their_file_is_called(kind: str, line: str) -> None:
    other = "0" * 32 + "  other.txt\n"
    held = {"/app/SUMS": (other + line.format(hashlib.new(kind, b"42\n").hexdigest())).encode()}
    made = [a for a in workspace.attacks(ground(writable={"/app/SUMS": True}, contents=held)) if "anew" in a.name]
    wrong = hashlib.new(kind, WRONG).hexdigest()
    assert [files(attack)["/app/SUMS"] for attack in made] == [(other + line.format(wrong)).encode()]


@pytest.mark.parametrize("content", [b"", b"want=42\n", b"0" * 64 + b"  other.txt\n", b"0" * 33 + b"  out.txt\n"])
def test_a_file_without_checksums_of_the_submission_is_left_as_it_is(content: bytes) -> None:
    given = ground(writable={"/app/SUMS": True}, contents={"/app/SUMS": content})
    assert not [attack for attack in workspace.attacks(given) if "anew" in attack.name]


@pytest.mark.parametrize(
    ("test", "words"),
    [
        ("grep -q '\"ok\": true' /app/sum.json", b'"ok": true\n'),
        ("assert 'all \\'good\\'' in open('/app/sum.json').read()", b"all \\'good\\'\n"),
        ('grep -q "^done" /app/sum.json || grep -q "ready" /app/sum.json', b"done\nready\n"),
    ],
)
def test_a_file_is_made_of_the_words_that_the_verifier_looks_for_in_it(test: str, words: bytes) -> None:
    made = workspace.attacks(ground(test, writable={"/app/sum.json": False}))
    assert [files(a)["/app/sum.json"] for a in made if "looks for in it" in a.name] == [words]


@pytest.mark.parametrize("test", ["cat /app/sum.json", "grep -q 'yes' /app/other.json", "cp '/app/sum.json' '/app/x'"])
def test_words_beside_no_file_or_another_one_are_none_of_its_own(test: str) -> None:
    made = workspace.attacks(ground(test, writable={"/app/sum.json": False}))
    assert not [a for a in made if "looks for in it" in a.name]


def test_answers_that_are_programs_are_handed_in_where_something_evaluates_them() -> None:
    made = list(expressions.attacks(ground("python3 -c 'assert eval(open(\"/app/out.txt\").read()) == 42'")))
    assert {files(attack)["/app/out.txt"] for attack in made} == set(expressions.PAYLOADS.values())


@pytest.mark.parametrize(
    "test",
    [
        "[ $got = 42 ]",
        'python3 -c "assert $got == 42"',
        "pickle.load(f)",
        "`cat x`",
        'awk "BEGIN { exit !($got == 42) }"',
    ],
)
def test_ways_to_evaluate_a_text_are_seen(test: str) -> None:
    assert list(expressions.attacks(ground(test)))


@pytest.mark.parametrize(
    "test",
    [
        "awk -v got=\"$got\" 'BEGIN { exit got != 42 }'",
        '[ "$got" = 42 ]',
        "cmp -s /tests/want /app/out.txt",
        "python3 -I /tests/check.py",
    ],
)
def test_a_verifier_that_evaluates_nothing_is_spared(test: str) -> None:
    assert not list(expressions.attacks(ground(test)))


def test_no_program_is_taken_for_a_text_that_is_evaluated() -> None:
    assert not list(expressions.attacks(ground("eval(x)", outputs={"/app/run.py": b"print(1)\n"})))


def test_a_program_prints_what_the_verifier_looks_for() -> None:
    made = submission.attacks(ground("grep -q 'failures: 0'", outputs={"/app/run.py": b"print(1)\n"}))
    (attack,) = [attack for attack in made if "looks for" in attack.name]
    said = subprocess.run(
        [sys.executable, "-I", "-c", files(attack)["/app/run.py"].decode()], capture_output=True, text=True, check=True
    )
    assert said.stdout.splitlines() == ["failures: 0"]


def test_what_a_program_is_asked_to_print_is_no_forgery() -> None:
    made = submission.attacks(ground("grep -q 'hello world'", outputs={"/app/run.py": b"print(1)\n"}))
    (attack,) = [attack for attack in made if "looks for" in attack.name]
    assert b"hello" not in files(attack)["/app/run.py"]


@pytest.mark.parametrize(
    ("test", "other"),
    [
        ("glob.glob('/app/out*.txt')", "/app/out_too.txt"),
        ("for f in /app/*.txt; do", "/app/_too.txt"),
        ("find /app -name 'out*'", ""),
        ("glob.glob('/tests/*.txt')", ""),
        ("cat /app/out.txt", ""),
    ],
)
def test_the_right_answer_stands_beside_a_wrong_one_where_a_pattern_fits(test: str, other: str) -> None:
    beside = [attack for attack in workspace.attacks(ground(test)) if "the right answer in" in attack.name]
    assert [files(attack).get(other) for attack in beside] == ([b"42\n"] if other else [])
    assert all(files(attack)["/app/out.txt"] == WRONG for attack in beside)


def test_expected_values_are_made_to_fit_a_submission_that_was_left_as_it_was() -> None:
    made = workspace.attacks(
        ground(outputs={"/app/a": b"new"}, before={"/app/a": b"old"}, base={}, writable={"/app/want": True})
    )
    assert b"old" in [files(attack).get("/app/want") for attack in made]


def test_a_folder_that_the_verifier_names_is_filled_with_the_wrong_submission() -> None:
    outputs = {"/app/pages/a.txt": b"one", "/app/pages/b.txt": b"two"}
    made = list(workspace.attacks(ground(outputs=outputs, named_folders=("/app/golden", "/app/pages"))))
    assert [attack.name for attack in made] == ["/app/golden filled with what the wrong submission holds"]
    assert "cp -R /app/pages/. /app/golden" in made[0].scene.script


def test_a_bar_is_lowered_for_a_submission_of_the_right_form_which_must_fail_without_that() -> None:
    made = [a for a in workspace.attacks(ground(writable={"/app/limits.conf": True})) if a.control is not None]
    assert [files(attack) for attack in made] == [{"/app/out.txt": b"0\n"}] * 2
    assert all(
        attack.control.script == "" and "/app/limits.conf" in attack.scene.script for attack in made if attack.control
    )


@pytest.mark.parametrize(
    "word",
    [
        *(b"PASS\n", b"all tests passed", b"checking\n3 passed in 1s\n", b"OK", b'{"passed": true}', b"status=0"),
        *(b"tests: 5 passed, 0 failed", b"errors: 0", b"0 failures", b'{"all_ok": true}', b""),
    ],
)
def test_one_of_several_files_that_says_all_is_well_is_written_alone(word: bytes) -> None:
    made = list(workspace.signals(ground(outputs={"/app/out.txt": b"42\n", "/app/log": word})))
    assert [files(attack) for attack in made] == [{"/app/log": word}]


@pytest.mark.parametrize(
    ("name", "word"), [("exit_code", b"0\n"), ("status", b"1"), ("ok", b"yes\n"), ("last.rc", b"0")]
)
def test_a_bare_verdict_is_a_signal_under_a_name_that_says_so(name: str, word: bytes) -> None:
    made = list(workspace.signals(ground(outputs={"/app/out.txt": b"42\n", f"/app/{name}": word})))
    assert [files(attack) for attack in made] == [{f"/app/{name}": word}]


@pytest.mark.parametrize(
    "outputs",
    [
        {"/app/state": b"PASS\n"},
        {"/app/a": b"42\n", "/app/b": b"17\n"},
        {"/app/a": b"0\n", "/app/b": b"1\n"},
        {"/app/a": b"x", "/app/encoded": b"0\n"},
    ],
)
def test_the_only_file_or_a_value_is_no_signal(outputs: dict[str, bytes]) -> None:
    assert list(workspace.attacks(ground(outputs=outputs))) == []


def test_a_file_that_says_all_is_well_stands_beside_wrong_ones_too() -> None:
    made = list(workspace.attacks(ground(outputs={"/app/primes.txt": b"2\n", "/app/result.json": b'{"passed": true}'})))
    assert {"/app/primes.txt": WRONG, "/app/result.json": b'{"passed": true}'} in [files(attack) for attack in made]


def test_a_submission_is_linked_to_each_file_of_the_verifier_and_to_its_input() -> None:
    made = list(links.attacks(ground(more={"tests/expected.txt": "42"})))
    assert [attack.name.split()[-1] for attack in made] == ["/tests/expected.txt", "/dev/stdin"]
    assert "ln -s /tests/expected.txt /app/out.txt" in made[0].scene.script


def test_several_files_are_linked_to_those_named_like_them() -> None:
    outputs = {"/app/min": b"1", "/app/max": b"2"}
    first = next(iter(links.attacks(ground(outputs=outputs, more={"tests/max.want": "", "tests/min.want": ""}))))
    assert "ln -s /tests/min.want /app/min" in first.scene.script
    assert "ln -s /tests/max.want /app/max" in first.scene.script


def test_modules_are_planted_where_python_judges_but_never_over_the_submission() -> None:
    made = list(interpreter.attacks(ground("python3 - <<EOF\nimport csv, shelve\nEOF", outputs={"/app/csv.py": b"x"})))
    script = "\n".join(attack.scene.script for attack in made)
    assert "/app/sitecustomize.py" in script
    assert "/home/agent/shelve.py" in script
    assert "/app/csv.py" not in script
    assert list(interpreter.attacks(ground("grep x /app/out.txt"))) == []


def test_hooks_are_planted_for_the_tools_that_are_used() -> None:
    pytest_names = " ".join(
        name for attack in settings.attacks(ground("python3 -m pytest /tests")) for name in files(attack)
    )
    assert "/app/conftest.py" in pytest_names
    assert "Makefile" not in pytest_names
    assert any("/app/Makefile" in files(attack) for attack in settings.attacks(ground("make -C /app test")))
    assert list(settings.attacks(ground("cmp a b"))) == []


def test_programs_are_planted_only_in_folders_of_path_that_the_agent_may_write() -> None:
    made = list(path.attacks(ground("python3 -c 1; grep x", path_folders=("/app/bin",))))
    assert {name for attack in made for name in files(attack)} == {"/app/bin/python3", "/app/bin/grep", "/app/out.txt"}
    assert list(path.attacks(ground("python3 -c 1"))) == []


def test_a_program_that_does_not_judge_ends_the_script_with_a_reward() -> None:
    (made,) = path.attacks(ground('[ "$(cat /app/out.txt)" = 42 ]', path_folders=("/app/bin",)))
    assert set(files(made)) == {"/app/bin/cat", "/app/out.txt"}
    assert b"/logs/verifier/reward.txt" in files(made)["/app/bin/cat"]
    assert list(path.attacks(ground("[ -s /app/out.txt ]", path_folders=("/app/bin",)))) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("sha256sum -c SUMS", True),
        ("cd lib && . ./SUMS", True),
        ("cat data/SUMS", True),
        ("cat /tests/SUMS", False),
        ("cat other/SUMS", False),
        ("CHECKSUMS SUMS.txt", False),
    ],
)
def test_a_file_of_the_workspace_is_spoken_of_by_its_name_alone_or_its_own_path(text: str, found: bool) -> None:
    assert is_spoken("/app/data/SUMS", "/app", text) == found


def test_a_program_that_is_handed_in_attacks_in_its_own_language() -> None:
    made = {
        attack.name: files(attack)
        for attack in submission.attacks(ground(outputs={"/app/a.py": b"", "/app/b.sh": b"", "/app/c": b"1"}))
    }
    exits = made["a submission that exits 0 at once"]
    assert exits["/app/a.py"] == b"import os\nos._exit(0)\n"
    assert exits["/app/b.sh"] == b"exit 0\n"
    assert exits["/app/c"] == WRONG
    compile(made["a submission that writes the reward and ends the verifier"]["/app/a.py"], "a", "exec")
    compile(made["a submission that prints summaries that pass"]["/app/a.py"], "a", "exec")
    assert list(submission.attacks(ground())) == []


def test_a_server_is_left_running_on_a_socket_that_the_verifier_names() -> None:
    given = ground("connect('/tmp/upper.sock')", outputs={"/app/server.py": b"serve()"})
    assert "serves in the place of an empty /app/server.py" in [attack.name for attack in leftover.attacks(given)][1]


def test_a_server_is_left_running_only_where_the_verifier_connects() -> None:
    server = {"/app/server.py": b"import socket"}
    names = [
        attack.name for attack in leftover.attacks(ground('create_connection(("127.0.0.1", 7070))', outputs=server))
    ]
    assert len(names) == 2
    assert "serves in the place of" in names[1]
    assert len(list(leftover.attacks(ground("python3 /app/server.py", outputs=server)))) == 1


@pytest.mark.parametrize(
    ("text", "found"), [("make test", True), ("cmake x", False), ("remake", False), ("make-x", False)]
)
def test_a_word_is_mentioned_as_a_word(text: str, found: bool) -> None:
    assert ground(text).mentions("make") is found
