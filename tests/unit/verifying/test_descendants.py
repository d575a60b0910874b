"""Descendants are ended wherever they hide, and others are let alone.

Each case runs in a process of its own: one that adopts orphans would take the test runner's too.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from envsdk.verifying import descendants

START = """
import os, signal, subprocess, sys, time
from envsdk.verifying.descendants import *
from envsdk.verifying.descendants import own_children, session, with_descendants


def is_there(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def shell(script):
    # Speaks once when it stands, and its first word is the number of the process that stays.
    child = subprocess.Popen(["/bin/sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True, text=True)
    return child, int(child.stdout.readline())


adopt_orphans()
"""


def said(case: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", START + case], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_session_ends_as_a_whole() -> None:
    case = """
child, below = shell("sleep 1000 & echo $!; wait")
end_session(child.pid)
child.wait()
end_orphans([])
print(child.returncode, is_there(below))
"""
    assert said(case) == ["-9", "False"]


def test_ending_a_session_that_is_gone_is_no_error() -> None:
    assert said("child, _ = shell('echo 1'); child.wait(); end_session(child.pid); print('well')") == ["well"]


@pytest.mark.parametrize("hidden", ["sleep 1000", "setsid sleep 1000", "setsid sh -c 'setsid sleep 1000; true'"])
def test_an_orphan_is_adopted_and_ended_in_whatever_session_it_hides(hidden: str) -> None:
    case = f"""
child, below = shell({f"{hidden} >/dev/null 2>&1 & echo $!"!r})
child.wait()
print(below in own_children())
end_orphans([])
print(is_there(below), own_children())
"""
    assert said(case) == ["True", "False", "[]"]


def test_one_that_forks_for_each_that_ends_is_ended_too() -> None:
    case = """
breeds = "import os, time\\nfor _ in range(200):\\n    os.fork() or time.sleep(1000)\\n    os.wait()\\n"
child, below = shell(f"{sys.executable} -c '{breeds}' >/dev/null 2>&1 & echo $!")
child.wait()
while len(with_descendants([below])) < 2:
    time.sleep(0.01)
end_orphans([])
print(own_children())
"""
    assert said(case) == ["[]"]


def test_living_runs_and_all_in_their_sessions_are_let_alone() -> None:
    case = """
alive, below = shell("(sleep 1000 >/dev/null 2>&1 & echo $!); sleep 1000")
gone, left = shell("sleep 1000 >/dev/null 2>&1 & echo $!")
gone.wait()
end_orphans([alive.pid])
print(is_there(alive.pid), is_there(below), is_there(left))
end_session(alive.pid)
alive.wait()
end_orphans([])
print(is_there(below))
"""
    assert said(case) == ["True", "True", "False", "False"]


def test_descendants_are_counted_with_those_below_them_and_not_their_parents() -> None:
    case = """
child, below = shell("sleep 1000 & echo $!; wait")
print(with_descendants([child.pid]) == {child.pid, below}, session(below) == child.pid, session(2 ** 22 + 1))
end_session(child.pid)
child.wait()
end_orphans([])
"""
    assert said(case) == ["True", "True", "0"]


def test_it_imports_the_standard_library_alone() -> None:
    tree = ast.parse(Path(descendants.__file__).read_text())
    names = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    names |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names
