"""One fault that was read in a file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """Where and what: ``code`` is stable, ``line`` counts from 1 (0: the file as a whole)."""

    code: str
    file: str
    line: int
    what: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.what}"
