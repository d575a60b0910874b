"""The page of error codes says what the sources say, wherever a code, a message or a hint stands in them."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def program() -> Iterator[ModuleType]:
    """``docs/errors.py``, as if run from its folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DOCS))
        spec = importlib.util.spec_from_file_location("docs_errors", DOCS / "errors.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # dataclasses look their module up
        spec.loader.exec_module(module)
        yield module


BASE = """
class UsageError(EnvsdkError):
    default_code = 'usage'
    exit_code = 2
class SpecError(UsageError): ...
class QueryError(UsageError):
    default_code = 'bad_query'
"""


def read(program: ModuleType, text: str) -> dict:
    return program.entries({Path("base.py"): ast.parse(BASE), Path("use.py"): ast.parse(text)})


def test_the_page_is_up_to_date(program: ModuleType) -> None:
    told = "run `python docs/errors.py` and commit docs/reference/errors.md"
    assert program.PAGE.read_text(encoding="utf-8") == program.page(), told


def test_a_class_lends_its_code_and_exit_code_to_its_heirs(program: ModuleType) -> None:
    found = read(program, "raise QueryError(f'no field {name}', hint='did you mean …')")["bad_query"]
    assert (found.exits, found.messages, found.hints) == ({2}, {"no field …"}, {"did you mean …"})


def test_both_codes_of_a_choice_are_found(program: ModuleType) -> None:
    assert set(read(program, "raise UsageError('a' if x else 'b', code='one' if x else 'two')")) == {"one", "two"}


def test_errors_of_others_are_left_out(program: ModuleType) -> None:
    assert read(program, "raise ValueError('not one of ours')") == {}


def test_texts_are_found_in_variables_of_the_same_function(program: ModuleType) -> None:
    text = """
def one():
    hint = 'do this' if x else 'or that'
    message, other = f'{x} is wrong', 1
    raise UsageError(message, code='a', hint=hint or 'else this')
def another():
    hint = 'of another function'
"""
    found = read(program, text)["a"]
    assert found.messages == {"… is wrong"}
    assert found.hints == {"do this", "or that", "else this"}


def test_texts_are_found_in_constants_of_the_module_and_a_functions_own_stand_before_them(program: ModuleType) -> None:
    text = """
_FIX, _OTHER = 'mend it', 'of the module'
def one():
    _OTHER = 'of the function'
    raise UsageError('m', code='a', hint=_FIX if x else _OTHER)
raise UsageError('m', code='b', hint=_OTHER)
"""
    found = read(program, text)
    assert (found["a"].hints, found["b"].hints) == ({"mend it", "of the function"}, {"of the module"})


def test_a_variable_that_is_set_from_itself_ends(program: ModuleType) -> None:
    text = "def f():\n    hint = 'a'\n    hint = hint + 'b'\n    raise UsageError('m', code='a', hint=hint)"
    assert "a" in read(program, text)["a"].hints


def test_a_function_that_passes_a_code_on_is_followed(program: ModuleType) -> None:
    text = """
def refuse(code, message, path):
    return UsageError(message, code=code, hint='nothing was done', where=path)
def use():
    raise refuse('too_long', 'is too long', 'x')
"""
    found = read(program, text)["too_long"]
    assert (found.exits, found.messages, found.hints) == ({2}, {"is too long"}, {"nothing was done"})


def test_a_private_function_is_that_of_its_own_module_alone(program: ModuleType) -> None:
    modules = {
        Path("base.py"): ast.parse(BASE),
        Path("one.py"): ast.parse("def _error(code, m):\n    return UsageError(m, code=code)"),
        Path("other.py"): ast.parse("_error('not_a_code', 'm')"),
    }
    assert program.entries(modules) == {}


def test_a_problem_of_a_task_is_a_usage_error(program: ModuleType) -> None:
    found = read(program, "Problem(code='bad_toml', message=f'is not TOML: {e}', hint='mend it')")["bad_toml"]
    assert (found.exits, found.messages, found.hints) == ({2}, {"is not TOML: …"}, {"mend it"})


def test_a_code_in_a_report_has_no_exit_code(program: ModuleType) -> None:
    assert read(program, "Verdict('error', code='reward_lost')")["reward_lost"].exits == set()
