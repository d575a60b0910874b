"""The reward that a pytest run's output stands for: 1 where tests ran and every one passed, else 0.

Written into imported tasks and run there: ``pytest_summary.py < output``. Needs rows of pytest's ``-rA`` summary.
There is exactly one summary; its rows agree with the counts of the last line; nothing was skipped or expected to
fail. An output that cannot be read so is no success.
"""

from __future__ import annotations

import re
import sys

_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_HEAD = re.compile(r"^=+ short test summary info =+$")
_LAST = re.compile(r"^=+ (?P<counts>[^=]*?) in [0-9.]+s(?: \([0-9:]+\))? =+$")
_ROW = re.compile(r"^(?P<status>PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\b")
_COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed|deselected|warnings?)")


def all_passed(output: str) -> bool:
    """Whether the output is one summary in which every test passed, and there is at least one."""
    lines = [_ESCAPE.sub("", line).rstrip() for line in output.splitlines()]
    heads = [number for number, line in enumerate(lines) if _HEAD.match(line)]
    ends = [number for number, line in enumerate(lines) if _LAST.match(line)]
    if len(heads) != 1 or len(ends) != 1 or ends[0] < heads[0]:
        return False
    rows = [match["status"] for line in lines[heads[0] + 1 : ends[0]] if (match := _ROW.match(line))]
    last = _LAST.match(lines[ends[0]])
    counts = {word.rstrip("s"): int(number) for number, word in _COUNT.findall(last["counts"] if last else "")}
    others = {"failed", "error", "skipped", "xfailed", "xpassed"} & set(counts)
    return bool(rows) and set(rows) == {"PASSED"} and counts.get("passed") == len(rows) and not others


if __name__ == "__main__":
    print(int(all_passed(sys.stdin.buffer.read().decode("utf-8", "replace"))))
