"""The exception tree: what every error of ours can be relied on for, in this process and across processes."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsdk import errors
from envsdk.cli import envelope
from envsdk.errors import EnvsdkError, Interruption, SpecError
from envsdk.policy import InferenceError


def tree(kind: type[EnvsdkError] = EnvsdkError) -> Iterator[type[EnvsdkError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from tree(child)


OWN = [kind for kind in tree() if kind.__module__ == "envsdk.errors"]
texts = st.text(max_size=20)


@pytest.mark.parametrize("kind", OWN, ids=lambda kind: kind.__name__)
def test_the_tree_in_the_docstring_names_every_class_with_its_exit_code(kind: type[EnvsdkError]) -> None:
    line = next(line for line in (errors.__doc__ or "").splitlines() if re.search(rf"\b{kind.__name__}\b", line))
    assert kind is EnvsdkError or f"(exit {kind.exit_code}" in line


@pytest.mark.parametrize("kind", list(tree()), ids=lambda kind: kind.__name__)
def test_every_code_is_a_word_and_every_exit_code_a_documented_one(kind: type[EnvsdkError]) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9_]*", kind.default_code)
    documented = {envelope.BAD, envelope.USAGE, envelope.MISSING, envelope.UNDECIDED, envelope.INTERRUPTED}
    assert kind.exit_code in documented


@pytest.mark.parametrize("kind", OWN, ids=lambda kind: kind.__name__)
@given(message=texts, code=st.none() | st.just("a_code"), hint=texts, where=texts)
def test_an_error_crosses_processes_whole(
    kind: type[EnvsdkError], message: str, code: str | None, hint: str, where: str
) -> None:
    error = kind(message, code=code, hint=hint, where=where)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert again.as_json() == error.as_json()
    assert again.args == error.args
    assert str(again) == str(error)


def test_what_a_subclass_adds_crosses_too() -> None:
    spec = SpecError("two", problems=({"code": "a"}, {"code": "b"}))
    assert pickle.loads(pickle.dumps(spec)).problems == spec.problems
    failed = InferenceError("no", inference={"status": 500})
    assert pickle.loads(pickle.dumps(failed)).inference == {"status": 500}
    assert pickle.loads(pickle.dumps(Interruption("stopped", result={"done": 3}))).result == {"done": 3}


@given(message=texts, hint=texts, where=texts)
def test_the_text_says_place_message_and_fix(message: str, hint: str, where: str) -> None:
    said = str(EnvsdkError(message, hint=hint, where=where))
    assert message in said
    assert said.startswith(f"{where}: ") or not where
    assert said.endswith(f"({hint})") or not hint


def test_without_a_code_of_its_own_an_error_has_its_class_s() -> None:
    assert {kind("x").code for kind in OWN} == {kind.default_code for kind in OWN}
    assert EnvsdkError("x", code="mine").code == "mine"
