"""Statuses that are lost before they are looked at: ``|| true`` and pipes in front of ``$?``, or inside a condition."""

from __future__ import annotations

import re
from collections.abc import Iterator

from envsdk.checks.lint.fault import Fault
from envsdk.checks.lint.files import TaskFiles
from envsdk.checks.lint.shell import Line, commands, is_shell

_ASKED = re.compile(r"\$\?|\$\{\?\}")
_SWALLOWED = re.compile(r"\|\|\s*(?:true|:|/bin/true)\s*(?:$|[;)&}])|;\s*true\s*$")
_PASSING_ON = r"(?:tee|cat|head|tail|more|less|ts|sed|tr|nl|fold|column)"
_PIPED = re.compile(rf"(?<!\|)\|(?!\|)\s*{_PASSING_ON}\b[^|&;]*$")
_CONDITION = re.compile(r"^(?:if|elif|while|until)\s+(?P<test>.*?)\s*(?:;\s*(?:then|do)\b.*)?$")


def rule(files: TaskFiles) -> Iterator[Fault]:
    """A status that is always 0 where it decides."""
    for path, text in files.under("tests").items():
        if not is_shell(path, text):
            continue
        safe_pipes = "pipefail" in text or "PIPESTATUS" in text
        before: Line | None = None
        for line in commands(text):
            if before is not None and _ASKED.search(line.text):
                yield from _lost(path, before, before.bare, safe_pipes=safe_pipes)
            elif condition := _CONDITION.match(line.bare):
                yield from _lost(path, line, condition["test"], safe_pipes=safe_pipes)
            before = line


def _lost(path: str, line: Line, test: str, *, safe_pipes: bool) -> Iterator[Fault]:
    if _SWALLOWED.search(test):
        what = "`|| true` makes the status 0 before it is looked at"
        yield Fault("swallowed_status", path, line.number, what)
    elif not safe_pipes and (piped := _PIPED.search(test)):
        last = piped[0].lstrip("| ").split()[0]
        what = f"the status that is looked at is that of `{last}`, the last command of the pipe"
        yield Fault("swallowed_status", path, line.number, what)
