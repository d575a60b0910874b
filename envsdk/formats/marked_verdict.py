"""The reward that a printed verdict stands for: one line PASSED or FAILED between a start and an end marker.

Written into imported tasks and run there: ``marked_verdict.py NAME < output``, with markers ``NAME results starts
here`` and ``NAME results ends here`` on lines of their own, as Terminal-Bench 1 does for SWE-bench after
the tests. Prints 1 or 0; exits 1 without a word where there is no verdict, so that none is made up. More than one
verdict is 0: what ran under test has printed one of its own.
"""

from __future__ import annotations

import re
import sys

_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


def verdict(output: str, name: str) -> bool | None:
    """Whether the one verdict is PASSED; `None` where there is none."""
    lines = [_ESCAPE.sub("", line).strip() for line in output.split("\n")]
    starts = [number for number, line in enumerate(lines) if line == f"{name} results starts here"]
    ends = [number for number, line in enumerate(lines) if line == f"{name} results ends here"]
    if not starts or not ends:
        return None
    if len(starts) != 1 or len(ends) != 1:
        return False
    said = [line for line in lines[starts[0] + 1 : ends[0]] if line]
    return said == ["PASSED"] if said in (["PASSED"], ["FAILED"]) else None


if __name__ == "__main__":
    found = verdict(sys.stdin.buffer.read().decode("utf-8", "replace"), sys.argv[1])
    if found is None:
        sys.exit(1)
    print(int(found))
