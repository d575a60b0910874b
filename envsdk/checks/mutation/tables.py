"""Wrong tables: one cell of the last row that was taken from the inputs is another, column by column."""

from __future__ import annotations

from collections.abc import Iterator

MAX_COLUMNS = 8
_DELIMITERS = ("\t", ",", ";", "|")


def delimiter(text: str) -> str | None:
    """What separates the cells of a text of several lines that each have as many; `None` where it is no table."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) < 2:
        return None
    for mark in _DELIMITERS:
        counts = {line.count(mark) for line in lines}
        if len(counts) == 1 and counts != {0}:
            return mark
    return None


def others(text: str, inputs: str) -> Iterator[tuple[str, str]]:
    """Name and text of each variation. Cells that stand nowhere in ``inputs`` may be free text, and are left alone."""
    mark = delimiter(text)
    if mark is None:
        return
    *above, last = [line for line in text.splitlines() if line.strip()]
    cells = last.split(mark)
    for number, cell in enumerate(cells[:MAX_COLUMNS]):
        bare = cell.strip()
        if len(bare) > 1 and bare in inputs and not bare.replace(".", "", 1).isdigit():
            changed = [*cells[:number], cell.replace(bare, "x"), *cells[number + 1 :]]
            yield f"another cell in column {number + 1} of its last row", "\n".join([*above, mark.join(changed)]) + "\n"
