"""One variation of the oracle's end state."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Weight = Literal["gross", "fine"]
_DIFF_LINES = 30


@dataclass(frozen=True, slots=True)
class Mutant:
    """Files that differ from what the oracle left, or a solution that differs from the oracle's.

    Attributes:
        name: what was done to what.
        files: path -> content, written over the oracle's state.
        removed: paths that are taken away from the oracle's state; of a folder what lies in it.
        weight: ``gross``: nobody could call it right; ``fine``: a small slip, of which a verifier may miss a few.
        endless: it never ends by itself; the verifier needs only a short while to say so.
        may_be_right: the instruction does not rule out that it is another right answer; wrong only beside others.
    """

    name: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    solution: Path | None = None
    weight: Weight = "gross"
    endless: bool = False
    may_be_right: bool = False
    removed: tuple[str, ...] = ()


def diff(before: Mapping[str, bytes], mutant: Mutant) -> str:
    """Unified diff from the oracle's files to the mutant's, cut after `_DIFF_LINES` lines."""
    lines: list[str] = []
    for path, content in mutant.files.items():
        old = before.get(path, b"").decode("utf-8", "replace").splitlines()
        new = content.decode("utf-8", "replace").splitlines()
        lines += difflib.unified_diff(old, new, f"oracle{path}", f"mutant{path}", lineterm="", n=1)
    more = [f"... {len(lines) - _DIFF_LINES} lines more"] if len(lines) > _DIFF_LINES else []
    return "\n".join(lines[:_DIFF_LINES] + more)
