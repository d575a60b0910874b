"""Programs for text tools print what they are to print, whatever they are given, and run what they are to run."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from envsdk.checks.mutation import constant_programs, right, silent_servers
from envsdk.checks.mutation.wording import read_wording
from envsdk.checks.tool_programs import TOOLS, Tool, printing, running

_COMMAND: dict[Tool, list[str]] = {"awk": ["awk", "-f"], "sed": ["sed", "-f"], "perl": ["perl"]}
Run = Callable[[Tool, str], subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def once(tool: Tool, program: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "program").write_text(program, encoding="utf-8")
        command = [*_COMMAND[tool], str(tmp_path / "program")]
        plain = os.environ | {"LC_ALL": "C"}  # perl complains of a locale that the machine lacks
        return subprocess.run(command, input="one\ntwo\n", env=plain, capture_output=True, text=True, check=False)

    return once


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("text", ["plain", 'it\'s "so" \\n $x @y %d', "one\ntwo\nthree", "  ahead", ""])
def test_a_text_is_printed_once_as_it_is(run: Run, tool: Tool, text: str) -> None:
    ended = run(tool, printing(tool, text))
    assert (ended.stdout, ended.returncode, ended.stderr) == (f"{text}\n", 0, "")


@pytest.mark.parametrize("tool", TOOLS)
def test_a_script_is_run_and_what_it_prints_is_printed(run: Run, tool: Tool) -> None:
    assert run(tool, running(tool, "for n in 1 '2 3'; do echo \"n $n\"; done\n")).stdout == "n 1\nn 2 3\n"


@pytest.mark.parametrize("tool", TOOLS)
def test_a_constant_program_says_its_constant(run: Run, tool: Tool) -> None:
    assert run(tool, constant_programs.constant_program(tool, b"", 7).decode()).stdout == "7\n"


@pytest.mark.parametrize(
    ("path", "program"), [("/a.awk", b"{ print $1 }"), ("/a.sed", b"s/a/b/"), ("/a.pl", b"print 1;")]
)
def test_a_program_is_remarked_on_and_no_text_to_vary(path: str, program: bytes) -> None:
    made = list(right.variants({path: program}, {}, read_wording("Do it."), ""))
    assert [mutant.files for mutant in made] == [{path: program + b"\n# a remark\n"}]


def test_a_program_for_a_text_tool_is_no_server() -> None:
    assert list(silent_servers.mutants({"/a.awk": b'BEGIN { "fetch" | getline; print .send( }'})) == []
