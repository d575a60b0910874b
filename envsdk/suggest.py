"""What was probably meant: the nearest known word, for the hint of an error."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, options: Iterable[str], *, cutoff: float = 0.7) -> str:
    """The closest of ``options``, or nothing.

    Args:
        word: what was given.
        options: the known words.
        cutoff: how alike they must be, from 0 (anything) to 1 (equal).
    """
    return next(iter(difflib.get_close_matches(word, sorted(options), n=1, cutoff=cutoff)), "")


def did_you_mean(word: str, options: Iterable[str], *, cutoff: float = 0.7) -> str:
    """``did you mean 'x'?`` for the `nearest` of ``options``, or nothing."""
    close = nearest(word, options, cutoff=cutoff)
    return f"did you mean {close!r}?" if close else ""
