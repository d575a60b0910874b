"""Helpers called by path without a run bit: the runner makes ``test.sh`` executable, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator

from envsdk.checks.lint.fault import Fault
from envsdk.checks.lint.files import TaskFiles
from envsdk.checks.lint.shell import commands, is_shell

_CALL = re.compile(
    r"(?:^|[;&|({!]|\$\(|`|\b(?:if|then|do|else|elif|while|until|exec|time|env)\b)\s*(?P<quote>[\"']?)(?=/tests/|[\"'\s])"
)
"""Where a command begins; what stands inside of quotes is no place for one."""
_PATH = re.compile(r"/tests/[\w./-]+")


def rule(files: TaskFiles) -> Iterator[Fault]:
    """A command ``/tests/x`` whose file may not be run."""
    scripts = {path: text for path, text in files.under("tests").items() if is_shell(path, text)}
    for path, text in scripts.items():
        made = set(re.findall(r"chmod\s+\S*[x75]\S*\s+[\"']?(/tests/[\w./-]+)", text))
        for line in commands(text):
            for call in filter(None, (_PATH.match(line.text, at.end()) for at in _CALL.finditer(line.bare))):
                helper = call[0].removeprefix("/")
                if helper in files.texts and helper not in files.executable and helper != "tests/test.sh":
                    if call[0] in made or re.search(r"chmod\s+(?:-R\s+)?\S*x\S*\s+/tests/?(?:\s|\*|$)", text):
                        continue
                    what = f"calls {call[0]}, which has no run bit: set it, or call it through its interpreter"
                    yield Fault("helper_not_executable", path, line.number, what)
