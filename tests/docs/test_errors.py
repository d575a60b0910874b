"""The page of error codes says what the sources say."""

import ast
import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def errors():
    spec = importlib.util.spec_from_file_location("docs_errors", ROOT / "docs" / "errors.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


SOURCE = {
    Path("base.py"): ast.parse(
        "class UsageError(EnvsdkError):\n    default_code = 'usage'\n    exit_code = 2\n"
        "class QueryError(UsageError):\n    default_code = 'bad_query'\n"
    ),
    Path("use.py"): ast.parse(
        "raise QueryError(f'no field {name}', hint='did you mean …')\n"
        "raise UsageError('a' if x else 'b', code='one' if x else 'two')\n"
        "raise ValueError('not one of ours')\n"
    ),
}


def test_the_page_is_up_to_date(errors) -> None:
    told = "run `python docs/errors.py` and commit docs/reference/errors.md"
    assert errors.PAGE.read_text(encoding="utf-8") == errors.page(), told


def test_a_class_lends_its_code_and_exit_code_to_its_heirs(errors) -> None:
    found = errors.entries(SOURCE)
    assert found["bad_query"].exits == {2}
    assert found["bad_query"].messages == {"no field …"}


def test_both_codes_of_a_choice_are_found(errors) -> None:
    assert {"one", "two"} <= set(errors.entries(SOURCE))


def test_errors_of_others_are_left_out(errors) -> None:
    assert set(errors.entries(SOURCE)) == {"bad_query", "one", "two"}
