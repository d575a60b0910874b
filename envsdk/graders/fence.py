"""One fenced code block around a whole answer."""

from __future__ import annotations

from envsdk.graders.verdict import WHITE_SPACE

_SHORTEST = 3


def without_fence(text: str) -> str:
    """The text stripped, and without the one fence around the whole of it, if there is one."""
    bare = text.strip(WHITE_SPACE)
    first, newline, rest = bare.partition("\n")
    length = len(first) - len(first.lstrip(bare[:1]))
    fence = first[:length]
    if not newline or length < _SHORTEST or fence[0] not in "`~" or "`" in first[length:] or not rest.endswith(fence):
        return bare
    inside = rest[: len(rest) - length]
    return bare if inside and not inside.endswith("\n") else inside.strip(WHITE_SPACE)
