"""Write the reference page of error codes from the sources: ``python docs/errors.py``.

Every place that raises one of the project's errors gives its code, its message and its hint; `raised` reads them
without running anything. A test compares the page with the sources, so that no code goes undocumented.
"""

from __future__ import annotations

from pathlib import Path

from raised import Entry, entries, sources

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "errors.md"
HEAD = """# Error codes

Every failure that is expected has a code that stays the same across versions, in the `errors` of `--json` and in the
web API: `{"code", "message", "hint", "where"}`. The exit code tells the kind: 1 what was checked is bad, 2 usage, 3 a
prerequisite is missing, 4 could not decide, or the machinery failed on the way, 130 interrupted; a code without one
stands in reports only, and ends no command. `…` stands for the object at hand.

This page is written from the sources by `python docs/errors.py`.

| code | exit | what happened | what to do |
|---|---|---|---|
"""


def page() -> str:
    """The whole page."""
    return HEAD + "".join(_row(code, entry) for code, entry in sorted(entries(sources()).items()))


def _row(code: str, entry: Entry) -> str:
    exits = ", ".join(map(str, sorted(entry.exits)))
    return f"| `{code}` | {exits} | {_cell(entry.messages)} | {_cell(entry.hints)} |\n"


def _cell(texts: set[str]) -> str:
    shown = sorted(
        text.strip().replace("|", "\\|").replace("\n", " ").replace("<", "&lt;") for text in texts if text.strip(" …")
    )
    return "<br>".join(shown)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
