"""`envsdk.graders.choice`: what settles on a letter and what only mentions one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsdk.errors import UsageError, VerifierError
from envsdk.graders.choice import choice


@pytest.mark.parametrize(
    "text",
    [
        "C",
        "c",
        " (c) \n\n",
        "[C]",
        "*C*",
        "**C**.",
        "C)",
        "C) the third",
        "c) the third",
        "Thinking about A and B.\nC",
        "answer: A is what I thought first\nThe answer is C",
        "The answer is C because A is wrong",
        "The answer is C.",
        "the answer is (c), since",
        "ANSWER = C",
        "answer=[C]",
        "Answer:C",
        "**Answer:** C",
        "**Answer**: **C**",
        "Final answer : *C*",
        "Answer: C, not A",
        "\\boxed{C}",
        "\\boxed{ \\mathrm{c} }",
        "Answer: A\n\\boxed{$C$}",
        "\\boxed{A} wait \\boxed{C}",
        "Answer: C\nA",
    ],
)
def test_texts_that_settle_on_c(text: str) -> None:
    assert choice(text, "C") == "correct"
    assert choice(text, "B") == "incorrect"


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\t",
        "A good question.",
        "I would take C",
        "It is C",
        "AB",
        "A B",
        "C++",
        "Answer: C++",
        "Answer: B-side",
        "Answer: Cat",
        "Answer: A or B",
        "Answer: A/B",
        "Answer: (A) or (B)",
        "Answer: A and B",
        "Answer: A, B",
        "Answer: A, B and C",
        "Answer: A | C",
        "Answer: C\nAnswer: A or B",
        "the answer is a matter of taste",
        "answers: C",
        "reanswer: C",
        "my_answer: C",
        "Answer: E",
        "E",
        "Answer: C\nAnswer: Z",
        "\\boxed{A or C}",
        "\\boxed{}",
        "\\boxed{C",
        "Answer: C \\boxed{AC}",
        "\\boxed{E}",
        "A) x B) y",
        "C) first\nD) second",
        "\u0421",
    ],
)
def test_texts_that_settle_on_nothing(text: str) -> None:
    assert choice(text, "C") == "no_answer"


def test_letters_and_label_are_the_authors() -> None:
    assert choice("grade: i", "I", letters="CI", label="grade") == "correct"
    assert choice("Verdict is 2", "2", letters="123", label="verdict") == "correct"
    assert choice("final score: B", "B", label="final score") == "correct"
    assert choice("a.b: B", "B", label="a.b") == "correct"
    assert choice("axb: B", "B", label="a.b") == "no_answer"


@given(st.text(max_size=30), st.sampled_from("ABCD"))
def test_no_text_earns_two_letters(text: str, letter: str) -> None:
    verdicts = [choice(text, truth) for truth in "ABCD"]
    assert verdicts.count("correct") <= 1
    assert (choice(text, letter) == "no_answer") == (verdicts[0] == "no_answer")


@pytest.mark.parametrize("truth", ["", "AB", "E", "?"])
def test_a_truth_that_is_no_choice_is_an_error_of_the_task(truth: str) -> None:
    with pytest.raises(VerifierError):
        choice("A", truth)


def test_no_letters_or_no_label_is_refused() -> None:
    with pytest.raises(UsageError):
        choice("A", "A", letters="")
    with pytest.raises(UsageError):
        choice("A", "A", label=" ")
