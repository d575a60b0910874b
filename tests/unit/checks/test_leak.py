"""What gives a secret away, and what is an input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envsdk.checks import leak
from envsdk.checks.leak import CHECK, Secret, _gives_away, _in_environment, _telling_lines, is_input
from envsdk.checks.stage import Stage
from envsdk.spec.model import ContainerSpec, Digests, Task, TaskSpec


def stage(tmp_path: Path, instruction: str, **spec: Any) -> Stage:
    given = {"slug": "t", "instruction": instruction, "container": ContainerSpec(), **spec}
    return Stage(Task(spec=TaskSpec(**given), digests=Digests(task="", verifier="", package=""), root=tmp_path), None)


@pytest.mark.parametrize(
    ("path", "text", "answer", "gives_away"),
    [
        ("/usr/share/key.txt", "1366", "1366", True),
        ("/usr/share/n", "7", "7", False),
        ("/app/notes.txt", "the sum is 1366", "1366", False),
        ("/app/answer.md", "the sum is 1366", "1366", True),
        ("/app/answer.md", "the sum is 21366", "1366", False),
        ("/app/site/index.html", "<p>\n<!-- expected total: 1366 -->", "1366", True),
        ("/app/site/index.html", "answers to all\nquestions: 1366", "1366", False),
        ("/app/site/index.html", "unexpected 1366", "1366", False),
        ("/app/site/index.html", "an answering machine, 1366", "1366", False),
        ("/app/site/index.html", "the answer is 7", "7", False),
        ("/app/d.db!expected", "expected name: total, value: 1366", "1366", True),
        ("/app/notes.md", "Reference result: 42", "42", True),
        ("/app/notes.md", "expected: '42'", "42", True),
        ("/app/notes.md", "the expected answer is 42", "42", True),
        ("/app/notes.md", "The expected file has 42 lines; version 1.42", "42", False),
        ("/app/notes.md", "expected version: 1.42", "42", False),
        ("/app/old.py", "x = 1", "x" * 50, False),
        ("/app/old.py", "def f():\n" + "x" * 50, "x" * 50, True),
    ],
)
def test_a_file_gives_an_answer_away(path: str, text: str, answer: str, gives_away: bool) -> None:
    assert _gives_away(path, text, Secret("it", answer), tests="") is gives_away


@pytest.mark.parametrize(
    ("line", "answer", "telling"),
    [
        ('[ "$(cat /app/fib.txt)" = 832040 ]', "832040", True),
        ('[ "$(cat /app/fib.txt)" = 1832040 ]', "832040", False),
        ("test x = 832040", "832040", False),
        ('[ "$(cat /app/fib.txt)" = 42 ]', "42", False),
        ('[ "$(cat /app/fib.txt)" = 832040 ]', "832040\n1", False),
    ],
)
def test_a_long_line_of_the_verifier_with_the_answer_tells(line: str, answer: str, telling: bool) -> None:
    tests = f"#!/bin/sh\n  {line}\n"
    assert list(_telling_lines(tests, [("/app/fib.txt", Secret("it", answer))])) == [line] * telling


def test_a_short_answer_counts_where_the_verifier_reads_that_file() -> None:
    assert _gives_away("/opt/n", "7", Secret("it", "7"), tests="cat /opt/n")


@pytest.mark.parametrize(
    ("instruction", "path", "named"),
    [
        ("Sum `/app/numbers.txt`.", "/app/numbers.txt", True),
        ("Sum numbers.txt.", "/app/numbers.txt", True),
        ("The files under `/app/posts` hold words.", "/app/posts/1", True),
        ("Repair the project in /app.", "/app/a/b.py", True),
        ("Write to /app/out.txt.", "/app/secret.txt", False),
        ("Write to /app/posts.txt.", "/app/posts/1", False),
        ("Sum my-numbers.txt.", "/app/numbers.txt", False),
        ("Unpack `/app/data.tar.gz`.", "/app/data.tar.gz!key.txt", True),
        ("Write key.txt.", "/opt/data.tar.gz!key.txt", False),
    ],
)
def test_what_the_instruction_names_is_an_input(tmp_path: Path, instruction: str, path: str, named: bool) -> None:
    assert is_input(path, stage(tmp_path, instruction)) is named


@pytest.mark.parametrize(
    ("name", "value", "leaks"),
    [
        ("ANSWER", "7", True),
        ("N", "7", False),
        ("N", "1366", False),
        ("SECRET_KEY", "8", False),
    ],
)
def test_a_variable_that_is_the_answer_leaks(name: str, value: str, leaks: bool) -> None:
    found = list(_in_environment({name: value}, [("/app/x", Secret("the answer", "7"))]))
    assert bool(found) is leaks


@pytest.mark.parametrize(
    ("name", "value", "leaks"),
    [("GRADER", '{"expected": "17"}', True), ("GRADER", '{"lines": "17"}', False), ("EXPECTED_LINES", "170", False)],
)
def test_a_variable_that_tells_the_answer_among_other_things_leaks(name: str, value: str, leaks: bool) -> None:
    assert bool(list(_in_environment({name: value}, [("/app/x", Secret("the answer", "17"))]))) is leaks


async def test_an_instruction_that_holds_the_solution_leaks(tmp_path: Path) -> None:
    script = "awk '{ s += $1 } END { print s }' /app/numbers.txt > /app/total.txt"
    (tmp_path / "solution").mkdir()
    (tmp_path / "solution" / "solve.sh").write_text(f"#!/bin/sh\nset -eu\n{script}\n")
    async with stage(tmp_path, f"Run {script} please.", container=None) as told:
        finding = await CHECK.examine(told)
    assert finding.outcome == "fail"
    assert "the oracle's solution/solve.sh" in finding.why


async def test_an_instruction_without_it_does_not(tmp_path: Path) -> None:
    (tmp_path / "solution").mkdir()
    (tmp_path / "solution" / "solve.sh").write_text(
        "#!/bin/sh\nset -eu\nwc -w < /app/story.txt > /app/words.txt # counted\n"
    )
    async with stage(tmp_path, "Count the words.", container=None) as told:
        assert (await CHECK.examine(told)).outcome == "pass"


@pytest.mark.parametrize(
    ("instruction", "told"),
    [
        ("Compute it. (The answer is 1366.)", True),
        ("Compute it; the right answer is: `1366`", True),
        ("If the answer is 1366, write yes.", False),
        ("The answer is 13660 times smaller.", False),
        ("Write 1366 to /app/x.", False),
    ],
)
def test_an_answer_that_the_instruction_gives_away_is_told_from_one_it_asks_about(instruction: str, told: bool) -> None:
    assert leak._is_told("1366", instruction) is told


@pytest.mark.parametrize("text", ["MTM2Ng==", "31333636", "6631"])
def test_an_answer_in_another_writing_is_read(text: str) -> None:
    assert "1366" in list(leak._decoded(text))


@pytest.mark.parametrize(
    ("instruction", "is_told"),
    [
        ('Write the counts, for example `{"a": 4, "b": 1}`.', True),
        ('It looks like this:\n\n{ "a": 4,\n  "b": 1 }\n', True),
        ('Write the counts, for example `{"a": 7, "b": 3}`.', False),
        ('Write `{"a": 4, "b": 1}` to the file.', False),
        (
            'For example, other tools write a great many words of their own before they come to `{"a": 4, "b": 1}`.',
            False,
        ),
    ],
)
def test_an_example_that_is_the_answer_tells_it(instruction: str, is_told: bool) -> None:
    assert leak._is_told('{"a": 4, "b": 1}', instruction) is is_told


@pytest.mark.parametrize(
    ("what", "is_copy"), [("the verifier's tests/in.csv", True), ("the verifier's tests/test.sh", False)]
)
def test_a_copy_of_an_input_tells_nothing_unless_it_is_a_program(what: str, is_copy: bool) -> None:
    assert leak._is_copy(Secret(what, "a,1"), "a,1") is is_copy


def test_rows_of_an_answer_stand_in_the_rows_of_a_table() -> None:
    assert leak._row_by_row("cup 1042\nhat 217", "t item: cup, total: 1042\nt item: hat, total: 217")
    assert not leak._row_by_row("cup 1042\nhat 217", "t item: cup, total: 217\nt item: hat, total: 1042")
    assert not leak._row_by_row("217", "t item: hat, total: 217")


@pytest.mark.parametrize(
    ("path", "instruction", "spoken_of"),
    [
        ("/app/src/clock.py", "Repair `/app/src/clock.py`.", True),
        ("/app/src/clock.py", "Repair `src/clock.py`.", True),
        ("/app/src/clock.py", "Repair clock.py.", True),
        ("/app/build/lib/clock.py", "Repair `/app/src/clock.py`.", False),
        ("/app/build/lib/clock.py", "Repair `src/clock.py`.", False),
    ],
)
def test_another_file_of_the_same_name_is_no_input(
    tmp_path: Path, path: str, instruction: str, spoken_of: bool
) -> None:
    assert is_input(path, stage(tmp_path, instruction)) is spoken_of
