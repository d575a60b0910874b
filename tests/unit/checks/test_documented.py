"""The page on proving a verifier lists the checks that there are, with the questions they ask."""

from __future__ import annotations

import re
from pathlib import Path

from envsdk.checks.catalogue import CHECKS

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "prove-a-verifier.md"


def test_the_table_is_the_catalogue() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*\?) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [(check.id, check.question) for check in CHECKS]
