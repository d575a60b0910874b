"""The program's door: whenever an interrupt comes, there is one envelope, one line, exit code 130 and no traceback."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

# Interrupts itself each time that one of the named modules is looked for, as a user's Ctrl-C may at that moment.
PROGRAM = """
import os, signal, sys
signal.signal(signal.SIGINT, getattr(signal, sys.argv.pop(1)))
number = getattr(signal, sys.argv.pop(1))
moments = set(sys.argv.pop(1).split(","))

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name in moments:
            os.kill(os.getpid(), number)

sys.meta_path.insert(0, Interrupting())
from envsdk.cli.entry import main
main()
"""
INTERRUPTED = {
    "ok": False,
    "errors": [{"code": "interrupted", "message": "interrupted", "hint": "run it again", "where": ""}],
}


ON = ("default_int_handler", "SIGINT")


def interrupted_at(moments: str, *args: str, by: tuple[str, str] = ON) -> subprocess.CompletedProcess[str]:
    """Run the program; ``by`` names what it was born to do with an interrupt, and the signal that it gets."""
    program = [sys.executable, "-c", PROGRAM, *by, moments, *args]
    return subprocess.run(program, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("born", ["default_int_handler", "SIG_IGN"])
@pytest.mark.parametrize("moments", ["envsdk.cli.app", "envsdk.spec.schema", "envsdk.cli.app,typer,envsdk.errors"])
def test_a_request_to_end_is_an_interrupt_where_interrupts_are_ignored_too(moments: str, born: str) -> None:
    done = interrupted_at(moments, "schema", "--json", by=(born, "SIGTERM"))
    assert done.returncode == 130
    assert [json.loads(line) for line in done.stdout.splitlines()] == [INTERRUPTED]


@pytest.mark.parametrize(
    "moments",
    [
        "envsdk.cli.app",
        "typer",
        "envsdk.errors",
        "envsdk.cli.app,typer,envsdk.errors",
        "envsdk.cli.schema",
        "envsdk.spec.schema",
    ],
)
def test_an_interrupt_while_the_program_loads_is_answered_once(moments: str) -> None:
    done = interrupted_at(moments, "schema", "--json")
    assert done.returncode == 130
    assert [json.loads(line) for line in done.stdout.splitlines()] == [INTERRUPTED]
    assert done.stderr == "error [interrupted] interrupted\n  fix: run it again\n"


def test_without_json_standard_output_stays_empty() -> None:
    done = interrupted_at("typer", "schema")
    assert (done.returncode, done.stdout) == (130, "")


def test_what_stands_after_two_dashes_asks_for_no_envelope() -> None:
    done = interrupted_at("typer", "schema", "--", "--json")
    assert (done.returncode, done.stdout) == (130, "")


def test_an_interrupt_after_the_answer_ends_the_process_and_says_nothing_more() -> None:
    late = "import atexit, os, signal, time; atexit.register(lambda: (os.kill(os.getpid(), signal.SIGINT), time.sleep(60)))"
    done = subprocess.run(
        [sys.executable, "-c", late + PROGRAM, *ON, "none", "schema"], capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGINT
    assert json.loads(done.stdout)["title"]
    assert done.stderr == ""


def test_python_m_is_the_same_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "envsdk", "schema", "--json"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, json.loads(done.stdout)["ok"]) == (0, True)
