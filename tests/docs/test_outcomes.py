"""The page of outcomes is in step with the table."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from envsdk.outcome.table import outcome_table

ROOT = Path(__file__).parents[2]


def _writer():
    spec = importlib.util.spec_from_file_location("docs_outcomes", ROOT / "docs" / "outcomes.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_says_what_the_table_says() -> None:
    told = "run `python docs/outcomes.py` and commit docs/reference/outcomes.md"
    assert (ROOT / "docs/reference/outcomes.md").read_text(encoding="utf-8") == _writer().page(), told


def test_every_cause_is_on_the_page_with_its_sentence_and_its_remedy() -> None:
    page = _writer().page()
    for name, cause in outcome_table().causes.items():
        assert f"| `{name}` | {cause.sentence} | {cause.action} |" in page
