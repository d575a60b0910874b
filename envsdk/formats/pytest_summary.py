"""The reward that a pytest run's output stands for: 1 where tests ran and every one passed, else 0.

Written into imported tasks and run there: ``pytest_summary.py < output``. Needs rows of pytest's ``-rA`` summary.
Success is exactly one summary whose rows agree with the counts of the last line, with nothing skipped or expected to
fail. Prints 1 or 0; exits 1 without a word where no run came to its end, as when pytest could not be installed: what
was not tested has no reward, and none is made up.
"""

from __future__ import annotations

import re
import sys

_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_HEAD = re.compile(r"^=+ short test summary info =+$")
_LAST = re.compile(r"^=+ (?P<counts>[^=]*?) in [0-9.]+s(?: \([0-9:]+\))? =+$")
_ROW = re.compile(r"^(?P<status>PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\b")
_COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed|deselected|warnings?)")


def all_passed(output: str) -> bool | None:
    """Whether there is one summary, in which every test passed, and at least one; `None` where no run ended."""
    lines = [_ESCAPE.sub("", line).rstrip() for line in output.splitlines()]
    heads = [number for number, line in enumerate(lines) if _HEAD.match(line)]
    ends = [number for number, line in enumerate(lines) if _LAST.match(line)]
    if not ends:
        return None
    if len(heads) != 1 or len(ends) != 1 or ends[0] < heads[0]:
        return False
    rows = [match["status"] for line in lines[heads[0] + 1 : ends[0]] if (match := _ROW.match(line))]
    last = _LAST.match(lines[ends[0]])
    counts = {word.rstrip("s"): int(number) for number, word in _COUNT.findall(last["counts"] if last else "")}
    others = {"failed", "error", "skipped", "xfailed", "xpassed"} & set(counts)
    return bool(rows) and set(rows) == {"PASSED"} and counts.get("passed") == len(rows) and not others


if __name__ == "__main__":
    passed = all_passed(sys.stdin.buffer.read().decode("utf-8", "replace"))
    if passed is None:
        sys.exit(1)
    print(int(passed))
