"""Every handed case, judged by whatever judges are installed; one item a case.

A skipped case fails unless ``pending.txt`` names its kind: nothing is skipped in silence.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from envsdk.conformance.run import Case, Judge, SkipCaseError, installed_judges, read_cases

HERE = Path(__file__).parent
CASES = list(read_cases(HERE / "cases"))
PENDING = {
    line.partition(":")[0].strip(): line.partition(":")[2].strip()
    for line in (HERE / "pending.txt").read_text().splitlines()
    if line.strip() and not line.startswith("#")
}


@cache
def judges() -> dict[str, Judge]:
    return installed_judges()


NEEDS = {"verifier_defects": pytest.mark.bubblewrap}
"""What cases of a kind need from the machine."""


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=f"{case.kind}-{case.id}", marks=NEEDS.get(case.kind, ())) for case in CASES],
)
def test_case(case: Case) -> None:
    if case.kind in PENDING:
        pytest.skip(f"pending: {PENDING[case.kind]}")
    judge = judges().get(case.kind)
    assert judge is not None, f"nobody judges {case.kind!r}, and pending.txt does not name it"
    try:
        judge(case)
    except SkipCaseError as reason:
        pytest.fail(f"skipped, but not pending: {reason}")


def test_no_pending_kind_is_judged_already() -> None:
    assert not sorted(PENDING.keys() & judges().keys()), "remove these from pending.txt"


def test_every_pending_kind_exists() -> None:
    assert PENDING.keys() <= {case.kind for case in CASES}
