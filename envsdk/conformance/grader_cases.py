"""Judge of ``graders``: a candidate, a truth and the right verdict."""

from __future__ import annotations

import inspect

from envsdk.conformance.fields import known_fields
from envsdk.conformance.run import Case, SkipCaseError
from envsdk.errors import VerifierError
from envsdk.graders import GRADERS


def judge_grader(case: Case) -> None:
    """Grade one case; a grader or an option that is not known is skipped."""
    known_fields(case, {"grader", "options", "candidate", "truth"}, {"verdict", "error"})
    given, expected = case.body["input"], case.body["expected"]
    grader = GRADERS.get(given["grader"])
    if grader is None:
        raise SkipCaseError(f"unknown grader {given['grader']!r}")
    options = given.get("options") or {}
    unknown = sorted(options.keys() - inspect.signature(grader).parameters.keys())
    if unknown:
        raise SkipCaseError(f"grader {given['grader']!r} has no option {', '.join(unknown)}")
    found: str
    try:
        found = grader(given["candidate"], given["truth"], **options)
    except VerifierError as error:
        found = f"error:{error.code}"
    wanted = expected.get("verdict", f"error:{expected.get('error')}")
    assert found == wanted, f"said {found}, right is {wanted}"
