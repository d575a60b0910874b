"""`envsdk.graders.numeric` and its exact arithmetic."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsdk.errors import UsageError, VerifierError
from envsdk.graders.number import Number, normal, read_number, sign_of_sum, within
from envsdk.graders.numeric import numeric

NUMBERS = st.builds(normal, st.integers(-(10**6), 10**6).map(str), st.integers(-8, 8))


def fraction(number: Number) -> Fraction:
    return Fraction(number.digits) * Fraction(10) ** number.exponent


@given(st.lists(NUMBERS, max_size=4))
def test_the_sign_of_a_sum_is_that_of_exact_fractions(terms: list[Number]) -> None:
    total = sum((fraction(term) for term in terms), Fraction(0))
    assert sign_of_sum(terms) == (total > 0) - (total < 0)


@given(NUMBERS, NUMBERS, st.builds(abs, NUMBERS))
def test_within_is_the_exact_comparison(left: Number, right: Number, tolerance: Number) -> None:
    assert within(left, right, tolerance) == (abs(fraction(left) - fraction(right)) <= fraction(tolerance))


@given(st.decimals(allow_nan=False, allow_infinity=False, places=5))
def test_a_decimal_is_read_as_its_own_value(value: Decimal) -> None:
    reading = read_number(f"{value:f}")
    assert reading is not None
    assert fraction(reading.value) == Fraction(value)


@given(st.integers(-(10**9), 10**9))
def test_thousands_commas_change_nothing(value: int) -> None:
    assert numeric(f"{value:,}", str(value)) == "correct"


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        ".",
        "+",
        "-",
        "1.2.3",
        "1e",
        "e5",
        "1 2",
        "1e5.5",
        "--1",
        "+-1",
        "1,23",
        "1,2345",
        ",123",
        "1,,234",
        "1,234,56",
        "1_000",
        "0x10",
        "１",
        "١",
        "inf",
        "-Infinity",
        "nan",
        "1/2",
        "6*7",
        "$5",
        "5 km",
        "<5",
        "~5",
        "5%%",
        "5 %",
        "%",
        "1e5e5",
        "1..",
        "٣.٥",
        "5!",
        "(5)",
    ],
)
def test_what_is_no_number_of_the_grammar_is_no_answer(text: str) -> None:
    assert numeric(text, "1") == "no_answer"


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("\v\f\t 42 \r\n", "42"),
        ("42.", "42"),
        ("4.2.", "4.2"),
        (".5", "0.5"),
        ("-.5", "-0.5"),
        ("1E+3", "1000"),
        ("1e\u22123", "0.001"),
        ("-0", "0"),
        ("0e999", "0"),
        ("007", "7"),
        ("1,234.50", "1234.5"),
        ("5%.", "5%"),
        ("1e400", "10e399"),
        ("9" * 5000, "9" * 5000),
        ("1e999999999999999999999", "10e999999999999999999998"),
    ],
    ids=lambda text: text[:12],
)
def test_spellings_of_one_value_are_equal(text: str, truth: str) -> None:
    assert numeric(text, truth) == "correct"


@pytest.mark.parametrize(
    ("candidate", "truth", "abs_tol", "verdict"),
    [
        ("1e999999999", "5", "0.5", "incorrect"),
        ("1e-999999999", "0", "0.001", "correct"),
        ("1e-999999999", "1", "1", "correct"),
        ("-1e-999999999", "1", "1", "incorrect"),
        ("1e999999999", "1e999999999", "0", "correct"),
        ("1e999999999", "1e999999998", "9e999999998", "correct"),
        ("1e999999999", "1e999999998", "8e999999998", "incorrect"),
    ],
)
def test_exponents_of_any_size_are_compared_exactly_and_at_once(
    candidate: str, truth: str, abs_tol: str, verdict: str
) -> None:
    assert numeric(candidate, truth, abs_tol=abs_tol) == verdict


@pytest.mark.parametrize(
    ("candidate", "verdict"),
    [("102", "correct"), ("98", "correct"), ("102.0000000000000000001", "incorrect"), ("97.99", "incorrect")],
)
def test_the_relative_tolerance_is_of_the_truth(candidate: str, verdict: str) -> None:
    assert numeric(candidate, "100", rel_tol=0.02) == verdict


def test_the_larger_tolerance_holds_and_a_negative_truth_has_a_positive_one() -> None:
    assert numeric("-95", "-100", abs_tol=1, rel_tol=0.05) == "correct"
    assert numeric("-99", "-100", abs_tol=1, rel_tol=0.001) == "correct"


def test_an_option_given_as_a_float_means_its_shortest_text() -> None:
    assert numeric("10.1", "10", abs_tol=0.1) == "correct"


@pytest.mark.parametrize(
    ("percent", "candidate", "truth", "verdict"),
    [
        ("same", "0.6", "60%", "incorrect"),
        ("same", "61%", "60%", "incorrect"),
        ("fraction", "60%", "60%", "correct"),
        ("fraction", "60", "60%", "incorrect"),
        ("fraction", "0.6", "60%", "correct"),
        ("face", "60", "60%", "correct"),
        ("face", "0.6", "60%", "incorrect"),
    ],
)
def test_percent_signs_mean_what_the_author_chose(percent: str, candidate: str, truth: str, verdict: str) -> None:
    assert numeric(candidate, truth, percent=percent) == verdict


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("It is 41, no, 42!", "correct"),
        ("(42).", "correct"),
        ("**42.**", "correct"),
        ("`42`;", "correct"),
        ("\u201c42\u201d", "correct"),
        ("42 km", "correct"),
        ("answer:42", "no_answer"),
        ("x42 y_42 4.2.1", "no_answer"),
        ("42 or 43", "incorrect"),
        ("=42", "no_answer"),
        ("forty-two", "no_answer"),
        ("42\u00a0km", "no_answer"),
        ("only 42\vthen words", "correct"),
    ],
)
def test_the_last_word_that_is_a_number_counts(text: str, verdict: str) -> None:
    assert numeric(text, "42", where="last") == verdict


@pytest.mark.parametrize("truth", ["", "about 5", "nan", "5 km"])
def test_an_unreadable_truth_is_an_error_of_the_task(truth: str) -> None:
    with pytest.raises(VerifierError) as raised:
        numeric("5", truth)
    assert raised.value.code == "unreadable_truth"


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), "5%", "x"])
def test_a_tolerance_that_is_none_is_refused(value: float | str) -> None:
    with pytest.raises(UsageError):
        numeric("5", "5", abs_tol=value)
