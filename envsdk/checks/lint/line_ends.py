"""CR at the end of a script's first line: the kernel looks for an interpreter whose name ends in CR."""

from __future__ import annotations

from collections.abc import Iterator

from envsdk.checks.lint.fault import Fault
from envsdk.checks.lint.files import TaskFiles
from envsdk.checks.lint.shell import is_shell


def rule(files: TaskFiles) -> Iterator[Fault]:
    """CR LF in scripts of the verifier or the oracle."""
    for path, text in files.under("tests", "solution").items():
        first = text.split("\n", 1)[0]
        if first.endswith("\r") and (first.startswith("#!") or is_shell(path, text)):
            yield Fault(
                "crlf_script", path, 1, "ends in CR LF, so that its interpreter is not found: save the file with LF"
            )
