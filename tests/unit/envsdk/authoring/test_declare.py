"""The decorators register a function and give it back."""

from __future__ import annotations

import random

import pytest

from envsdk import Draw, Script, family, oracle, task, verifier
from envsdk.authoring.declare import declarations
from envsdk.authoring.draw import content_of, named
from envsdk.errors import UsageError
from envsdk.spec.contents import FileContent
from envsdk.spec.model import AgentSpec


def judge(answer: str) -> float:
    return float(answer == "x")


def draw() -> Draw:
    return Draw(instruction="Say x.", oracle="x")


def knobbed(rng: random.Random, *, size: int) -> Draw:
    return Draw(instruction=f"{rng.random()} {size}", oracle="x")


def declared(function):
    return next(d for d in declarations() if d.function is function)


def test_every_decorator_gives_the_function_back() -> None:
    assert verifier(judge) is judge
    assert verifier(kind="state")(judge) is judge
    assert task(verifier=Script(""))(draw) is draw
    assert family(verifier=Script(""), levels={"size": (1,)})(knobbed) is knobbed
    assert oracle(draw)(judge) is judge


def test_a_decorated_function_stays_callable() -> None:
    assert verifier(judge)("x") == 1.0
    assert task(verifier=Script(""))(draw)().instruction == "Say x."


def test_one_reply_is_the_default_for_a_text_verifier_and_needs_no_box() -> None:
    verifier(judge)
    found = declared(task(verifier=judge)(draw))
    assert (found.agent.protocol, found.container) == ("answer", None)


def test_a_shell_in_a_box_is_the_default_for_any_other() -> None:
    found = declared(task(verifier=Script(""))(draw))
    assert (found.agent.protocol, found.container.network) == ("shell", "none")


def test_a_command_needs_a_box_even_for_a_text_verifier() -> None:
    verifier(judge)
    found = declared(task(verifier=judge, agent=AgentSpec(protocol="command"))(draw))
    assert found.container is not None


def test_the_name_is_the_functions_with_dashes() -> None:
    def two_words() -> Draw:
        return draw()

    assert declared(task(verifier=Script(""))(two_words)).name == "two-words"


def test_the_description_is_the_docstrings_first_paragraph() -> None:
    def documented() -> Draw:
        """One
        paragraph.

        Another.
        """
        return draw()

    assert declared(task(verifier=Script(""))(documented)).description == "One paragraph."


def test_declaring_again_replaces() -> None:
    task(verifier=Script("1"))(draw)
    task(verifier=Script("2"))(draw)
    assert [d.verifier.text for d in declarations() if d.function is draw] == ["2"]


def test_a_function_that_is_no_verifier_is_refused() -> None:
    def stranger(answer: str) -> float:
        return 0.0

    with pytest.raises(UsageError, match="stranger"):
        task(verifier=stranger)(draw)


@pytest.mark.parametrize("levels", [{}, {"sise": (1,)}, {"size": (1,), "more": (2,)}, {"size": ()}])
def test_levels_are_the_functions_keywords(levels) -> None:
    with pytest.raises(UsageError, match="levels"):
        family(verifier=Script(""), levels=levels)(knobbed)


def test_an_empty_range_is_refused() -> None:
    with pytest.raises(UsageError, match="range"):
        verifier(low=1.0, high=1.0)(judge)


def test_a_verifier_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="first argument"):
        verifier(lambda *, expected: 0.0)


def test_an_oracle_belongs_to_a_task() -> None:
    with pytest.raises(UsageError, match="no task or family"):
        oracle(judge)(judge)


def test_replies_are_named_by_position_or_by_their_author() -> None:
    assert named(["a", "b"]) == {"01": "a", "02": "b"}
    assert named({"x": "a"}) == {"x": "a"}


def test_one_text_is_not_a_list_of_replies() -> None:
    with pytest.raises(TypeError, match="list"):
        named("wrong")


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("ä", FileContent("ä".encode())),
        (b"\x00", FileContent(b"\x00")),
        ("#!/bin/sh\n", FileContent(b"#!/bin/sh\n", executable=True)),
    ],
)
def test_content_is_bytes_and_a_run_bit(value, content) -> None:
    assert content_of(value) == content
    assert content_of(content) is content
