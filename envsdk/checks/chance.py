"""Words in a verifier that draw lots: chance, small digits of the clock, races, and orders of hashes.

Promises that a named source is found in what lies under ``tests``; not that one found decides anything, which only runs
can show, nor that one hidden in a program of the image is found.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_SOURCES: Mapping[str, re.Pattern[str]] = {
    "random numbers": re.compile(
        r"\brandom\b|\bsecrets\b|\buuid[14]?\b|\$\{?RANDOM\b|\bshuf\b|/dev/u?random\b|\bsort\s+(?:-\w+\s+)*(?:-R|--random)"
        r"|\bmt_rand\b|\bs?rand(?:int|n)?\s*\(|\brand::|math/rand|\bMath\.random\b|\bhypothesis\b|\bopenssl rand\b",
        re.IGNORECASE,
    ),
    "small digits of the clock": re.compile(
        r"%[0-9]*N\b|\btime(?:_ns|\.time\b)|\bperf_counter|\bmonotonic|\bDate\.now\b|\bperformance\.now\b|\bmicrosecond"
    ),
    "a race": re.compile(
        r"\bsleep\b|\bthread|\basyncio\b|\bPopen\b|\bsetTimeout\b|\bgoroutine\b|\bgo func\b|[^&>|]&\s*(?:$|[)\n;])",
        re.IGNORECASE | re.MULTILINE,
    ),
    "an order that each process draws": re.compile(
        r"\b(?:keys|values|each)\s*\(?\s*%[\w${]|\bHash(?:Map|Set)\s*(?:::|<)|\brange\s+\w+\[|\bmap\[\w+\]"
    ),
}
_HASHES = re.compile(
    r"\b(?:frozen)?set\s*\(|\bhash\s*\(|\{\s*['\"][^:{}\n]*,[^:{}\n]*\}|\{[^:{}\n]*\bfor\b[^:{}\n]*\bin\b[^:{}\n]*\}"
)


def sources_of_chance(texts: Mapping[str, str]) -> dict[str, str]:
    """Kind of source -> the first file and line that names it, as ``tests/test.sh:3``; comments count too."""
    found: dict[str, str] = {}
    for kind, pattern in _SOURCES.items():
        for path, text in sorted(texts.items()):
            if match := pattern.search(text):
                found[kind] = f"{path}:{text.count(chr(10), 0, match.start()) + 1}"
                break
    return found


def names_hash_order(texts: Mapping[str, str]) -> bool:
    """Whether Python's sets, or its ``hash``, are named: what they give hangs on the hash seed."""
    return any(_HASHES.search(text) for text in texts.values())
