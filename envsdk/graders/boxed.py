r"""The last ``\boxed{..}`` of a text against a content."""

from __future__ import annotations

from envsdk.graders.latex import last_box, normal_form, read_value
from envsdk.graders.number import same_ratio
from envsdk.graders.verdict import Verdict, judged, unreadable_truth


def boxed(candidate: str, truth: str) -> Verdict:
    r"""Same content in normal form, or the same number in another spelling. No further algebra.

    Args:
        candidate: text; its last ``\boxed{..}`` counts. None, an empty or a never closed one is ``no_answer``.
        truth: the content, without the box.

    Raises:
        VerifierError: ``unreadable_truth`` for an empty truth.
    """
    want = normal_form(truth)
    if not want:
        raise unreadable_truth("boxed", truth)
    got = normal_form(last_box(candidate) or "")
    if not got:
        return "no_answer"
    if got == want:
        return "correct"
    left, right = read_value(got), read_value(want)
    return judged(left is not None and right is not None and same_ratio(left, right))
