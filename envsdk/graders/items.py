"""Lists and sets of short texts: one an item, split at newlines or commas, or a JSON array of scalars."""

from __future__ import annotations

from collections.abc import Iterable

from envsdk.graders.fence import without_fence
from envsdk.graders.strict_json import parse
from envsdk.graders.verdict import WHITE_SPACE, Verdict, judged, unreadable_truth

_WORDS = {True: "true", False: "false", None: "null"}


def list_equal(candidate: str, truth: str) -> Verdict:
    """Right where both hold the same items in the same order, repetitions counted.

    Args:
        candidate: items; one that starts with ``[`` is a JSON array of scalars, and ``no_answer`` where it is broken.
            Nothing but separators is ``no_answer`` too.
        truth: items, read in the same way.

    Raises:
        VerifierError: ``unreadable_truth``.
    """
    got, want = read_items(candidate), _truth("list_equal", truth)
    return "no_answer" if got is None else judged(got == want)


def set_equal(candidate: str, truth: str) -> Verdict:
    """As `list_equal`, without order and repetition: nothing missing, nothing extra."""
    got, want = read_items(candidate), _truth("set_equal", truth)
    return "no_answer" if got is None else judged(set(got) == set(want))


def read_items(text: str) -> list[str] | None:
    """The items of a text, stripped, empty ones dropped; `None` where there is no list to read."""
    bare = without_fence(text)
    if bare.startswith("["):
        return _array(bare)
    items = _kept(bare.split("\n" if "\n" in bare else ","))
    return items or None


def _array(text: str) -> list[str] | None:
    try:
        values = parse(text, number=str)  # numbers of an array are compared as they are spelled
    except ValueError:
        return None
    if any(isinstance(value, list | dict) for value in values):
        return None
    return _kept(value if isinstance(value, str) else _WORDS[value] for value in values)


def _kept(items: Iterable[str]) -> list[str]:
    return [bare for item in items if (bare := item.strip(WHITE_SPACE))]


def _truth(grader: str, truth: str) -> list[str]:
    items = read_items(truth)
    if items is None:
        raise unreadable_truth(grader, truth)
    return items
