"""Answers that a model may give and no author thought of: look-alikes, prose, refusals, nesting, and sheer size."""

from __future__ import annotations

import pytest

from envsdk.graders import boxed, choice, code_output, exact, json_equal, list_equal, numeric, set_equal

C, W, N = "correct", "incorrect", "no_answer"


@pytest.mark.parametrize(
    ("candidate", "verdict"),
    [
        ("42.", C),
        ("+42", C),
        ("0042", C),
        ("4.2e1", C),
        ("420e-1", C),
        ("42e" + "0" * 100_000, C),
        ("42,", N),
        ("4_2", N),
        ("\uff14\uff12", N),
        ("\u0664\u0662", N),
        ("42\u00a0", N),
        ("42\x00", N),
        ("4 2", N),
        ("42..", N),
        ("42e", N),
        ("42e0.0", N),
        ("0x2a", N),
        ("42L", N),
        ("(42)", N),
        ("**42**", N),
        ("$42", N),
        ("42 km", N),
        ("forty-two", N),
        ("6*7", N),
        ("84/2", N),
        ("41 < x < 43", N),
        ("nan", N),
        ("-inf", N),
        ("1e400", W),
        ("42%", W),
        ("\u221242", W),
        ("4" * 1_000_000, W),
        ("1e" + "9" * 1_000_000, N),
    ],
)
def test_numbers_and_what_looks_like_them(candidate: str, verdict: str) -> None:
    assert numeric(candidate, "42") == verdict


@pytest.mark.parametrize(
    ("candidate", "verdict"),
    [
        ("The answer is 42.", C),
        ("so **42**!", C),
        ("[42].", C),
        ('"42."', C),
        ("\u201c42\u201d", C),
        ("42 is the answer", C),
        ("was 41, is (42)?", C),
        ("a " * 300_000 + "42", C),
        ("(" * 500_000 + "42", C),
        ("42 or 43", W),
        ("42 apples and 3 pears", W),
        ("about 42%", W),
        ("x=42", N),
        ("42km", N),
        ("42...", N),
        ("I cannot answer that.", N),
    ],
)
def test_the_last_number_of_a_text(candidate: str, verdict: str) -> None:
    assert numeric(candidate, "42", where="last") == verdict


@pytest.mark.parametrize(
    ("candidate", "truth", "verdict"),
    [
        (r"\boxed{\boxed{3}}", "3", C),
        (r"\boxed{3} or rather \boxed{4}", "3", W),
        (r"\boxed{1} and \boxed{2", "1", N),
        (r"\boxed{\{1, 2\}}", r"\{1,2\}", C),
        (r"\boxed{\left( 1,\, 2 \right)}", "(1,2)", C),
        (r"\boxed{\text{ yes }}", "yes", C),
        (r"\boxed{\text{\textbf{A}}}", "A", C),
        (r"\boxed{\dfrac{1}{3}}", r"\tfrac13", C),
        (r"\boxed{-\frac{1}{2}}", "-0.5", C),
        (r"\boxed{\frac{1}{-2}}", "-0.5", C),
        (r"\boxed{1{,}000}", "1000", C),
        (r"\boxed{.50}", "1/2", C),
        (r"\boxed{1/0}", "2/0", W),
        (r"\boxed{x=3}", "3", W),
        (r"\boxed{5\%}", "5", W),
        (r"\boxed{\$5}", "5", W),
        (r"\boxed{1e3}", "1000", W),
        (r"\boxed{0.3333}", "1/3", W),
        (r"\boxed{12,34}", "1234", W),
        ("\\boxed{\uff11}", "1", W),
        (r"\boxed{\frac{1}{2}3}", "1/2", W),
        (r"\boxed7", "7", N),
        (r"\fbox{7}", "7", N),
        (r"\boxed{ }", "7", N),
        (r"\boxed{" + "1" * 5000 + ".0}", "1" * 5000, C),
        (r"\boxed{\frac{" + "2" * 5000 + "}{2}}", "1" * 5000, C),
        (r"\boxed{" + "4" * 1_000_000 + "}", "4", W),
        (r"\boxed{" * 100_000, "1", N),
        (r"\boxed{" + "{" * 100_000 + "}" * 100_001, "1", W),
        (r"\boxed{" + r"\text{" * 20_000 + "A" + "}" * 20_001, "A", C),
    ],
)
def test_boxes(candidate: str, truth: str, verdict: str) -> None:
    assert boxed(candidate, truth) == verdict


@pytest.mark.parametrize(
    ("candidate", "verdict"),
    [
        ("b", C),
        ("**B**", C),
        ("B) Paris", C),
        ("The answer is (B).", C),
        ("**Answer:** B", C),
        ("Answer: C\nOn reflection, answer: B", C),
        (r"\boxed{\text{B}}", C),
        ("Answer: A/B", N),
        ("Answer: B, C", N),
        ("The answer is A or B", N),
        ("I think B is right", N),
        ("Because", N),
        ("GRADE: BI", N),
        ("The downanswer: B", N),
        ("The answer is not B", N),
        ("The answer is B-flat", N),
        ("answer is B++", N),
        ("\uff22", N),
        ("\u0412", N),
        ("Answer: E", N),
        ("As a language model I cannot choose.", N),
        ("Answer: B\nAnswer: C", W),
        ("answer is " * 50_000, N),
        ("answer: " + "(" * 200_000, N),
        ("answer" + " " * 300_000 + "is B", C),
        ("B) " + "A) " * 100_000, N),
    ],
)
def test_choices(candidate: str, verdict: str) -> None:
    assert choice(candidate, "B") == verdict


@pytest.mark.parametrize(
    ("candidate", "verdict"),
    [
        ('{"a": 10e-1}', C),
        ('{"\\u0061": 1.0}', C),
        ('~~~json\n{"a": 1}\n~~~', C),
        ('```\n{"a": 1}\n```', C),
        ('{"a": "1"}', W),
        ('{"a": true}', W),
        ('{"a": 0.' + "9" * 40 + "}", W),
        ('{"A": 1}', W),
        ('["a", 1]', W),
        ('{"a": 1, "a": 1}', N),
        ('{"a": NaN}', N),
        ('{"a": 01}', N),
        ('{"a": .1}', N),
        ('{"a": 1,}', N),
        ("{'a': 1}", N),
        ('// so\n{"a": 1}', N),
        ('\ufeff{"a": 1}', N),
        ('{"a": 1}{"a": 1}', N),
        ('Here:\n```json\n{"a": 1}\n```', N),
        ('```json\n{"a": 1}\n```\n```json\n{"a": 1}\n```', N),
        ("[" * 1_000_000, N),
        ('{"a":' * 100_000, N),
        ("`" * 100_000 + "\n1\n" + "`" * 99_999, N),
        ("~~~" * 100_000 + "\n1", N),
    ],
)
def test_json(candidate: str, verdict: str) -> None:
    assert json_equal(candidate, '{"a": 1}') == verdict


def test_json_numbers_of_any_size_are_compared_exactly() -> None:
    assert json_equal("7" * 300_000, "7" * 300_000) == C
    assert json_equal("7" * 300_000, "7" * 299_999 + "8") == W
    assert json_equal("1e999999999", "10e999999998") == C
    assert json_equal("9007199254740993", "9007199254740992") == W


@pytest.mark.parametrize(
    ("candidate", "truth", "in_order", "as_set"),
    [
        ("b, a", "a,b", W, C),
        ("a\r\nb\r\n", "a,b", C, C),
        ('["a,b"]', "a,b", W, W),
        ("```\na\nb\n```", "a,b", C, C),
        ("- a\n- b", "a,b", W, W),
        ("a, a, b", "a,b", W, C),
        ("a, b, c", "a,b", W, W),
        ("a", "a,b", W, W),
        ('["a"', "a", N, N),
        ('[["a"]]', "a", N, N),
        (" , ,\n,", "a", W, W),
        (" , ,", "a", N, N),
        ("[1.0, 2]", "[1, 2]", W, W),
        ("a," * 500_000, "a", W, C),
    ],
)
def test_lists_and_sets(candidate: str, truth: str, in_order: str, as_set: str) -> None:
    assert (list_equal(candidate, truth), set_equal(candidate, truth)) == (in_order, as_set)


@pytest.mark.parametrize(
    ("candidate", "truth", "verdict"),
    [
        ("  a ", "a", C),
        ("\u00a0a", "a", W),
        ("a\u200b", "a", W),
        ("e\u0301", "\u00e9", W),
        ("\u0430", "a", W),
        ("A", "a", W),
        (" \n" * 1_000_000, "a", N),
        ("x" * 5_000_000, "x", W),
    ],
)
def test_whole_texts(candidate: str, truth: str, verdict: str) -> None:
    assert exact(candidate, truth) == verdict


@pytest.mark.parametrize(
    ("candidate", "truth", "verdict"),
    [
        ("a\r\nb\t\r\n\r\n", "a\nb", C),
        ("a" + " " * 3_000_000, "a", C),
        ("\n\n", "", C),
        (" a", "a", W),
        ("\na", "a", W),
        ("a\rb", "a\nb", W),
        ("a\x0cb", "a\nb", W),
        ("a\u2028b", "a\nb", W),
        ("a\u0085", "a", W),
    ],
)
def test_outputs_of_programs(candidate: str, truth: str, verdict: str) -> None:
    assert code_output(candidate, truth) == verdict
