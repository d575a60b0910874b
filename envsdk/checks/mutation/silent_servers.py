"""Servers that answer, and say nothing: the oracle's own with every write to a connection emptied."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from envsdk.checks.mutation.mutant import Mutant
from envsdk.checks.program_files import programs

_WRITES = {
    "python": (re.compile(rb"(\.(?:wfile\.write|sendall|sendto)\()"), rb'\1b"" and '),
    "javascript": (re.compile(rb"(\b(?:res|response|reply)\.(?:end|write|send|json)\()"), rb'\1"" && '),
    "shell": (re.compile(rb"(?!)"), rb""),
}


def mutants(outputs: Mapping[str, bytes]) -> Iterator[Mutant]:
    """One for all programs together; none where no program writes to a connection."""
    files = {}
    for path, language in programs(outputs).items():
        pattern, silent = _WRITES[language]
        changed = pattern.sub(silent, outputs[path])
        if changed != outputs[path]:
            files[path] = changed
    if files:
        yield Mutant("a server whose answers are empty", files)
