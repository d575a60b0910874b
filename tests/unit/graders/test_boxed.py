"""`envsdk.graders.boxed`: the last box, its normal form, and numbers in several spellings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsdk.errors import VerifierError
from envsdk.graders.boxed import boxed


@pytest.mark.parametrize(
    ("content", "truth"),
    [
        ("42", "42.0"),
        ("42.", "42"),
        ("$42$", "42"),
        ("$42.$", "42"),
        ("1,234,567", "1234567"),
        ("-\\frac{3}{4}", "-0.75"),
        ("\\frac{-3}{4}", "-3/4"),
        ("\\tfrac12", ".5"),
        ("\\frac 1 2", "0.50"),
        ("\\frac{1}2", "2/4"),
        ("\\dfrac{6}{8}", "\\frac{3}{4}"),
        ("+7", "7"),
        ("\u22127", "-7"),
        ("\\text{Paris}", "Paris"),
        ("\\textbf{\\text{no solution}}", "no solution"),
        ("\\mathrm{m}^2", "m^2"),
        ("\\mathbf{x}+{1}", "x+{1}"),
        ("\\{1,\\;2\\}", "\\{1, 2\\}"),
        ("\\left[0,\\ 1\\right)", "[0,1)"),
        ("x\\leftarrow y", "x\\leftarrow y"),
        ("a \\\\ b", "a\\\\b"),
    ],
)
def test_contents_that_are_the_same(content: str, truth: str) -> None:
    assert boxed(f"so \\boxed{{{content}}}.", truth) == "correct"


@pytest.mark.parametrize(
    ("content", "truth"),
    [
        ("42", "43"),
        ("9007199254740993", "9007199254740992"),
        ("0.1", "0.10000000000000001"),
        ("1,23", "123"),
        ("\\frac{1}{0}", "0"),
        ("1/0", "1"),
        ("2+2", "4"),
        ("1e2", "100"),
        ("\\frac{0.5}{1}", "1/2"),
        ("paris", "Paris"),
        ("(2,1)", "(1,2)"),
        ("50\\%", "50"),
        ("42 km", "42"),
        ("x\\leftarrow y", "x arrow y"),
    ],
)
def test_contents_that_differ(content: str, truth: str) -> None:
    assert boxed(f"\\boxed{{{content}}}", truth) == "incorrect"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "42",
        "boxed{42}",
        "\\boxed 42",
        "\\boxed{}",
        "\\boxed{ \\, }",
        "\\boxed{\\text{}}",
        "\\boxed{42",
        "\\boxed{42\\}",
        "\\boxed{1} \\boxed{",
    ],
)
def test_nothing_in_a_box_is_no_answer(text: str) -> None:
    assert boxed(text, "42") == "no_answer"


def test_the_inner_one_of_nested_boxes_is_the_last() -> None:
    assert boxed("\\boxed{x = \\boxed{3}}", "3") == "correct"


@given(st.text(alphabet=st.sampled_from("abc123+-^_ "), min_size=1).filter(lambda text: text.strip()))
def test_a_box_holds_what_was_put_in(content: str) -> None:
    assert boxed(f"first \\boxed{{0}} then \\boxed{{{content}}}", content) == "correct"


@given(st.integers(-(10**30), 10**30), st.integers(1, 10**30), st.integers(1, 1000))
def test_a_fraction_equals_its_multiples(over: int, under: int, factor: int) -> None:
    assert boxed(f"\\boxed{{\\frac{{{over * factor}}}{{{under * factor}}}}}", f"{over}/{under}") == "correct"


def test_an_empty_truth_is_an_error_of_the_task() -> None:
    with pytest.raises(VerifierError):
        boxed("\\boxed{1}", " ")
