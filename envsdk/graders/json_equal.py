"""One JSON value against one JSON value, by structure."""

from __future__ import annotations

from envsdk.graders.fence import without_fence
from envsdk.graders.strict_json import exact_number, parse, same
from envsdk.graders.verdict import Verdict, judged, unreadable_truth


def json_equal(candidate: str, truth: str) -> Verdict:
    """Right where both are the same value: key order is free, array order is not, numbers compare exactly.

    Args:
        candidate: strict JSON, possibly in one fenced code block; anything else, or a duplicate key, is ``no_answer``.
        truth: strict JSON.

    Raises:
        VerifierError: ``unreadable_truth``.
    """
    try:
        want = parse(without_fence(truth), number=exact_number)
    except ValueError as error:
        raise unreadable_truth("json_equal", truth) from error
    try:
        got = parse(without_fence(candidate), number=exact_number)
    except ValueError:
        return "no_answer"
    return judged(same(got, want))
