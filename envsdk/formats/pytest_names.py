"""The reward of a pytest run for which named tests must pass: 1 where each has a row PASSED and none other, else 0.

Written into imported tasks and run there: ``pytest_names.py NAMES.json < output``, with rows of pytest's ``-rA``
summary and lists of names by any key.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path

_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_ROW = re.compile(r"^(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS) (.+)$")


def all_named_passed(output: str, names: Iterable[str]) -> bool:
    """Whether every name has a row, and its rows all say PASSED; a name with blanks may go on after `` - ``."""
    wanted = set(names)
    seen: dict[str, set[str]] = {}
    for line in output.split("\n"):
        match = _ROW.match(_ESCAPE.sub("", line).rstrip())
        if match is None:
            continue
        for name in (match[2], match[2].partition(" - ")[0]):
            if name in wanted:
                seen.setdefault(name, set()).add(match[1])
                break
    return bool(wanted) and all(seen.get(name) == {"PASSED"} for name in wanted)


if __name__ == "__main__":
    table = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    text = sys.stdin.buffer.read().decode("utf-8", "replace")
    print(int(all_named_passed(text, [name for group in table.values() for name in group])))
