"""The page of the command line says what the program says: no flag appears, changes or goes unnoticed."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NO_RESULT = {"envsdk registry serve"}


@pytest.fixture(scope="module")
def command_line():
    spec = importlib.util.spec_from_file_location("docs_command_line", ROOT / "docs" / "command_line.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def sections(command_line) -> dict[str, str]:
    parts = command_line.page().split("\n## ")[1:]
    return {part.partition("\n")[0]: part for part in parts}


def test_the_page_is_up_to_date(command_line) -> None:
    told = "run `python docs/command_line.py`, look at what changed, and commit docs/reference/command-line.md"
    assert command_line.PAGE.read_text(encoding="utf-8") == command_line.page(), told


def test_every_command_says_what_it_is_for(sections: dict[str, str]) -> None:
    silent = [name for name, text in sections.items() if not text.split("```text")[0].partition("\n")[2].strip()]
    assert silent == []


def test_every_command_with_a_result_can_print_it_as_json(sections: dict[str, str]) -> None:
    assert [name for name, text in sections.items() if "`--json`" not in text and name not in NO_RESULT] == []


def test_every_option_is_explained(sections: dict[str, str]) -> None:
    bare = [
        line
        for text in sections.values()
        for line in text.splitlines()
        if line.startswith("| `") and line.endswith("|  |")
    ]
    assert bare == []
