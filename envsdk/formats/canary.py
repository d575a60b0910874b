"""Canary strings: lines by which benchmarks ask to be kept out of training corpora. They are reported, not removed.

Promised: every file whose first kilobytes hold one is named. What follows from it is the reader's decision.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from envsdk.spec.contents import FileContent
from envsdk.spec.problems import Problem

HEAD_BYTES = 8 << 10
_CANARY = re.compile(rb"canary[ _-]?(?:guid|string)|should never appear in training", re.IGNORECASE)


def canaries(files: Mapping[str, FileContent]) -> list[str]:
    """Paths of files that carry a canary string, sorted."""
    return sorted(path for path, content in files.items() if _CANARY.search(content.data[:HEAD_BYTES]))


def canary_warning(paths: list[str]) -> Problem:
    """One warning for all of a task's files."""
    shown = ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
    message = f"asks to be kept out of training corpora, in {shown}"
    return Problem(code="canary", message=message, hint="evaluate on it, do not train", severity="warning")
