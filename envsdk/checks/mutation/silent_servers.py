"""Servers and clients that say nothing: the oracle's own with every write to a connection emptied."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from envsdk.checks.mutation.mutant import Mutant
from envsdk.checks.program_files import programs

_WRITES = {
    "python": (re.compile(rb"(\.(?:wfile\.write|sendall|sendto)\(|(?<=[,(\s])data=)"), rb'\1b"" and '),
    "javascript": (re.compile(rb"(\b(?:res|response|reply)\.(?:end|write|send|json)\()"), rb'\1"" && '),
}
_NEVER = (re.compile(rb"(?!)"), rb"")

_TALKS = re.compile(rb"\b(?:http|urllib|requests|socket\w*|asyncio|express|fetch|net)\b")


def mutants(outputs: Mapping[str, bytes]) -> Iterator[Mutant]:
    """One for all programs together; none where no program writes to a connection."""
    files = {}
    for path, language in programs(outputs).items():
        pattern, silent = _WRITES.get(language, _NEVER)
        if not _TALKS.search(outputs[path]):
            continue
        changed = pattern.sub(silent, outputs[path])
        if changed != outputs[path]:
            files[path] = changed
    if files:
        yield Mutant("programs that send nothing", files)
