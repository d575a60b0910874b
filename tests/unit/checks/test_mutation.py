"""Variations: wrong ones are wrong, right ones are right, and small slips differ from the original."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsdk.checks.mutation import constant_programs, python_code, right, shell_code, texts
from envsdk.checks.mutation.behaviour import calls
from envsdk.checks.mutation.mutant import Mutant, diff
from envsdk.checks.mutation.recording import Asked
from envsdk.checks.mutation.wording import Wording, read_wording
from envsdk.checks.program_files import language_of, programs

PLAIN = read_wording("Do it.")


def texts_of(text: str, wording: Wording = PLAIN, inputs: tuple[str, ...] = ()) -> dict[str, str]:
    return {
        m.name.removeprefix("/a: "): m.files["/a"].decode() for m in texts.mutants("/a", text.encode(), wording, inputs)
    }


@pytest.mark.parametrize(
    ("instruction", "field"),
    [
        ("Write exactly these bytes.", "exact"),
        ("digits and nothing else", "exact"),
        ("Leave every other line as it is.", "exact"),
        ("An error of up to 0.5 is accepted.", "tolerance"),
        ("one a line, in any order", "any_order"),
        ("ascending, one a line", "in_order"),
        ("Create x containing the word y.", "contains"),
        ("Write how many lines there are.", "counting"),
        ("the first line in capital letters", "case"),
        ("every word in upper case", "case"),
        ("Capital or small letters do not matter.", "any_case"),
        ("Answer with the number alone.", "alone"),
        ("Reply with one word.", "alone"),
        ("Write any number above ten.", "free"),
        ("Choose a word; any such word is right.", "free"),
        ("Write an integer x with x*x - 5*x + 6 = 0.", "free"),
        ("Write a number such that its square ends in 6.", "free"),
    ],
)
def test_words_of_an_instruction_are_demands(instruction: str, field: str) -> None:
    assert getattr(read_wording(instruction), field)
    assert not getattr(PLAIN, field)


@pytest.mark.parametrize(
    ("instruction", "field"),
    [
        ("What is the capital of France?", "case"),
        ("in capital letters; case does not matter", "case"),
        ("one a line, in any order", "free"),
        ("Write the sum as a number with two decimals.", "free"),
        ("Write the word that solves the riddle.", "free"),
        ("without any explanation of any line", "free"),
    ],
)
def test_words_that_look_like_a_demand_are_none(instruction: str, field: str) -> None:
    assert not getattr(read_wording(instruction), field)


def test_any_order_is_no_order() -> None:
    assert not read_wording("sorted words, in any order").in_order


@given(st.integers(-(10**6), 10**6))
def test_no_wrong_number_is_the_number(value: int) -> None:
    for other in texts_of(f"{value}\n").values():
        assert other.strip() != str(value)


@pytest.mark.parametrize(
    ("text", "wrong"), [("0.37\n", "0"), ("0.37\n", "0.74"), ("42", "43"), ("42", "-42"), ("3126.0\n", "3127.0")]
)
def test_numbers_are_varied_in_their_own_form(text: str, wrong: str) -> None:
    assert wrong in {other.strip() for other in texts_of(text).values()}


def test_where_a_tolerance_is_stated_only_far_numbers_are_wrong() -> None:
    wording = read_wording("An error of up to 0.5 is accepted.")
    others = [other.strip() for other in texts_of("3126.0\n", wording).values()]
    assert "x" in others
    numbers = [float(other) for other in others if other.lstrip("-").replace(".", "").isdigit()]
    assert len(numbers) == 3
    assert all(abs(number - 3126.0) > 1.4 for number in numbers)


def test_lines_are_dropped_added_and_turned_round_where_an_order_is_asked_for() -> None:
    found = texts_of("a\nb\nc\n", read_wording("sorted"))
    assert found["its last line dropped"] == "a\nb\n"
    assert found["only its first line"] == "a\n"
    assert found["its lines in reverse"] == "c\nb\na\n"
    assert found["one line too many"] == "a\nb\nc\nx\n"
    assert "its lines in reverse" not in texts_of("a\nb\nc\n")


def test_all_candidates_are_listed_where_the_answer_picks_some_of_an_input() -> None:
    assert texts_of("b\n", inputs=("a\nb\nc\n",))["all candidates listed"] == "a\nb\nc\n"
    assert "all candidates listed" not in texts_of("z\n", inputs=("a\nb\nc\n",))


def test_where_containing_is_enough_nothing_is_added() -> None:
    found = texts_of("ready\n", read_wording("containing the word ready"), inputs=("ready\nset\n",))
    assert not any("ready" in other for other in found.values())


@given(st.lists(st.text(alphabet="abc 123", min_size=1, max_size=6), min_size=1, max_size=4))
def test_no_wrong_text_is_the_text_in_other_white_space(lines: list[str]) -> None:
    text = "\n".join(lines) + "\n"
    for other in texts_of(text, read_wording("sorted")).values():
        assert other.split() != text.split()


MODULE = (
    b"def slug(text):\n    return text.lower()\n\n\ndef other(n):\n    if n < 3:\n        n += 1\n    return n * 2\n"
)
SCRIPT = b"import sys\nn = int(sys.argv[1])\nprint(n * 2 if n >= 0 else 0)\n"


def run(code: bytes, *args: str) -> str:
    return subprocess.run(
        [sys.executable, "-I", "-c", code.decode(), *args], capture_output=True, text=True, check=False
    ).stdout


def test_a_constant_program_prints_and_returns_its_constant() -> None:
    program = constant_programs.constant_program("python", MODULE, "x")
    assert run(program, "1") == "x\n"
    names: dict[str, object] = {}
    exec(program, names)
    assert names["slug"]("Any") == names["other"](1, more=2) == "x"


@pytest.mark.parametrize("value", ["", "it's", "a b", 0])
def test_a_constant_shell_program_prints_its_constant(value: object) -> None:
    program = constant_programs.constant_program("shell", b"", value)
    assert (
        subprocess.run(["sh", "-c", program.decode()], capture_output=True, text=True, check=True).stdout
        == f"{value}\n"
    )


def test_data_beside_constant_programs_says_the_same_on_every_line() -> None:
    found = {m.name: m for m in constant_programs.mutants({"/app/s.py": MODULE, "/app/out": b"a\nb\n"})}
    assert found["programs that only give '', and data to match"].files["/app/out"] == b"\n\n"
    assert found["programs that only give 'x', and data that say it once"].files["/app/out"] == b"x\n"
    assert found["programs that never end"].endless
    assert list(constant_programs.mutants({"/app/out": b"a\n"})) == []


def test_slips_of_python_parse_and_differ() -> None:
    found = list(python_code.mutants("/a.py", MODULE))
    assert 3 <= len(found) <= python_code.MAX_MUTANTS
    for mutant in found:
        assert ast.dump(ast.parse(mutant.files["/a.py"])) != ast.dump(ast.parse(MODULE))
        assert mutant.weight == "fine"
    assert len({mutant.files["/a.py"] for mutant in found}) == len(found)


def test_a_slip_is_what_its_name_says() -> None:
    found = {m.name: m.files["/a.py"].decode() for m in python_code.mutants("/a.py", MODULE)}
    assert "if n <= 3" in found["/a.py: another comparison in line 6"]
    assert "pass" in found["/a.py: a step dropped in line 7"]
    assert "not n < 3" in found["/a.py: a branch turned round in line 6"]


def test_what_is_no_python_has_no_slips() -> None:
    assert list(python_code.mutants("/a.py", b"def (")) == []
    assert constant_programs.functions_of(b"def (") == []


def test_a_program_that_is_to_do_nothing_has_no_idle_one() -> None:
    assert list(constant_programs.mutants({"/app/a.c": b"int main(void) { return 1; }\n"})) != []
    assert list(constant_programs.mutants({"/app/a.c": b"int  main(void)  { return\n0; }\n"})) == []


def test_a_second_name_of_a_function_is_a_function_too() -> None:
    source = b"def encode(t):\n    return t\n\n\ndecode = encode\ntwice = lambda t: t + t\nTABLE = 3\nother = unknown\n"
    assert constant_programs.functions_of(source) == ["encode", "decode", "twice"]


def test_slips_of_shell() -> None:
    found = dict(shell_code.slips("#!/bin/sh\nset -eu\nsort a | head -n 1 > b\n[ 3 -gt 2 ] && echo x > c\n"))
    assert found["line 3 dropped"].splitlines()[2] == ":"
    assert found["a part of the pipe in line 3 dropped"].splitlines()[2] == "sort a > b"
    assert found["another test in line 4"].splitlines()[3] == "[ 3 -ge 2 ] && echo x > c"
    assert found["a number off by one in line 4"].splitlines()[3] == "[ 4 -gt 2 ] && echo x > c"


def test_a_here_document_is_not_taken_apart_and_one_step_is_not_dropped() -> None:
    assert list(shell_code.slips("#!/bin/sh\nset -eu\ncat > /app/a <<'EOF'\nx | y -lt 3\nEOF\n")) == []
    assert list(shell_code.slips("#!/bin/sh\ncp a b\n")) == []
    assert not any("pipe" in what for what, _ in shell_code.slips("grep 'a|b' f\nx || y\n"))


def right_of(text: str, instruction: str, before: dict[str, bytes] | None = None) -> list[str]:
    wording = read_wording(instruction)
    made = right.variants({"/a": text.encode()}, before or {}, wording, instruction, instruction=instruction)
    return [m.files["/a"].decode() for m in made]


def test_the_newline_at_the_end_is_free_unless_the_form_is_stated() -> None:
    assert right_of("42\n", "Write the answer.") == ["42", "42\n\n"]
    assert right_of("a\nb\n", "Write the words.") == ["a\nb"]
    assert right_of("42\n", "Write exactly 42.") == []


def test_line_ends_that_were_asked_for_stay() -> None:
    assert right_of("a\r\nb\r\n", "Write the lines with CR LF.") == []


USERS = "Write the names of all users, separated by commas."


@pytest.mark.parametrize(
    ("text", "instruction", "plainer"),
    [
        ("ann, bob\n", USERS, "ann,bob\n"),
        ("Users: ann, bob\n", USERS, "ann, bob\n"),
        ("Total: 3\n", "Write how many lines there are.", "3\n"),
        ("Length: 12.00 units\n", "Write the length of the path.", "12.00\n"),
        ("5 lines\n", "Write how many rows there are.", "5\n"),
        ("Yes.\n", "Is it a prime? Write yes or no.", "yes\n"),
        ("FALSE\n", "Answer with `true` or `false`.", "false\n"),
    ],
)
def test_what_the_instruction_does_not_mention_may_be_left_out(text: str, instruction: str, plainer: str) -> None:
    assert plainer in right_of(text, instruction)


@pytest.mark.parametrize(
    ("text", "instruction", "plainer"),
    [
        ("ann, bob\n", "Write the names, separated by a comma and a space.", "ann,bob\n"),
        ("ann, bob\n", "Write the comma-separated names, for example `x, y`.", "ann,bob\n"),
        ("ann, bob,cy\n", USERS, "ann,bob,cy\n"),
        ("ann, bob\n", "Write the sentence.", "ann,bob\n"),
        ("Total: 3\n", "Write how many lines there are as `Total: N`.", "3\n"),
        ("Mon: 3\n", "Write the day, a colon and how many lines it has.", "3\n"),
        ("Accept: text, html\n", "Write the header.", "text, html\n"),
        ("5 km\n", "Write the distance in km.", "5\n"),
        ("HELLO\n", "Write hello or bye in upper case.", "hello\n"),
        ("yes\n", "Write yes or no.", "no\n"),
    ],
)
def test_what_may_have_been_asked_for_stays(text: str, instruction: str, plainer: str) -> None:
    assert plainer not in right_of(text, instruction)


def test_an_edited_file_has_no_other_white_space() -> None:
    assert right_of("a=2\n", "Set a.", before={"/a": b"a=1\n"}) == []


def test_lines_may_be_in_another_order_where_the_instruction_says_so() -> None:
    assert "b\na\n" in right_of("a\nb\n", "one a line, in any order")
    assert "b\na\n" not in right_of("a\nb\n", "one a line")


def test_a_number_needs_no_sentence_that_nobody_asked_for() -> None:
    assert "3\n" in right_of("There are 3 error lines.\n", "Write how many lines contain the word ERROR.")
    assert "3\n" not in right_of("total: 3\n", "Write the number as `total: N`.")
    assert "3\n" not in right_of("There are 3 of 5 lines.\n", "Write how many lines are bad.")


def test_json_may_be_spaced_and_ordered_otherwise() -> None:
    text = json.dumps({"a": 1, "b": [2]}) + "\n"
    others = [other for other in right_of(text, "Write JSON.") if "\n   " in other]
    assert [json.loads(other) for other in others] == [{"a": 1, "b": [2]}]


def test_a_program_may_end_in_a_remark() -> None:
    variant = next(right.variants({"/a.py": SCRIPT}, {}, PLAIN, ""))
    assert run(variant.files["/a.py"], "4") == run(SCRIPT, "4") == "8\n"


@pytest.mark.parametrize(
    ("path", "content"), [("/app/to/a.c", b"int x;\n"), ("/app/to/a.py", SCRIPT), ("/app/to/a.txt", b"one\ntwo\n")]
)
def test_a_file_that_was_copied_stays_as_it_is(path: str, content: bytes) -> None:
    assert list(right.variants({path: content}, {}, PLAIN, "", given=[content.decode()])) == []
    assert list(right.variants({path: content}, {}, PLAIN, "", given=["another"])) != []


@pytest.mark.parametrize(
    ("path", "content", "language"),
    [
        ("/a.py", b"", "python"),
        ("/a", b"#!/usr/bin/env python3\n", "python"),
        ("/a.sh", b"", "shell"),
        ("/a.txt", b"#!/bin/bash\n", "shell"),
        ("/a.mjs", b"", "javascript"),
        ("/a.awk", b"", "awk"),
        ("/a", b"#!/bin/sed -f\n", "sed"),
        ("/a", b"#!/usr/bin/env perl\n", "perl"),
        ("/a.txt", b"x", None),
        ("/py", b"x", None),
        ("/a", b"#!/usr/bin/env ruby\n", None),
    ],
)
def test_programs_are_known_by_first_line_or_suffix(path: str, content: bytes, language: str | None) -> None:
    assert language_of(path, content) == language
    assert programs({path: content}) == ({path: language} if language else {})


def test_a_diff_shows_what_changed_and_is_cut() -> None:
    shown = diff({"/a": b"1\n2\n"}, Mutant("m", {"/a": b"1\n3\n"}))
    assert "-2\n+3" in shown
    long = diff({"/a": b""}, Mutant("m", {"/a": b"x\n" * 100}))
    assert long.splitlines()[-1].endswith("lines more")


def test_questions_close_to_the_verifiers_are_asked_in_the_same_way() -> None:
    asked = [Asked("/app/a.py", "", ("4",), b"", "8\n"), Asked("/app/a.py", "", ("x y",), b"in", "")]
    commands = calls("/app/a.py", "python", asked)
    assert "printf %s '' | python3 /app/a.py 5" in commands
    assert any("'x y'" in command and "in" in command for command in commands)
    (first, *_) = calls("/app/m.py", "python", [Asked("/app/m.py", "slug", ("A",), b"", "a")])
    assert "m.slug(*(" in first


def test_standard_input_is_changed_where_a_program_reads_it_first() -> None:
    asked = [Asked("/app/a.py", "", (), b"3 4\n", "7\n")]
    assert any("'4 5" in command for command in calls("/app/a.py", "python", asked, wide=True))
    assert not any("'4 5" in command for command in calls("/app/a.py", "python", asked))


def test_calls_run_what_they_say(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_bytes(MODULE)
    first = calls(f"{tmp_path}/m.py", "python", [Asked("", "slug", ("A B",), b"", "")])[0].replace(
        "python3", sys.executable, 1
    )
    assert subprocess.run(["sh", "-c", first], capture_output=True, text=True, check=True).stdout == "a b\n"
