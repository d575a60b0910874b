"""One fenced code block around a whole answer."""

from __future__ import annotations

import re

from envsdk.graders.verdict import WHITE_SPACE

_FENCE = re.compile(r"(?P<fence>`{3,}|~{3,})[^\n`]*\n(?P<inside>.*?)(?P=fence)", re.DOTALL)


def without_fence(text: str) -> str:
    """The text stripped, and without the one fence around the whole of it, if there is one."""
    bare = text.strip(WHITE_SPACE)
    match = _FENCE.fullmatch(bare)
    if match is None or (match["inside"] and not match["inside"].endswith("\n")):
        return bare
    return match["inside"].strip(WHITE_SPACE)
