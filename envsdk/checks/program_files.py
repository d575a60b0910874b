"""Which files of a submission are programs, and in which language."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

Language = Literal["python", "shell", "javascript", "awk", "sed", "perl"]

_SUFFIX: dict[str, Language] = {
    ".py": "python",
    ".sh": "shell",
    ".bash": "shell",
    ".js": "javascript",
    ".mjs": "javascript",
    ".awk": "awk",
    ".sed": "sed",
    ".pl": "perl",
}
_SHEBANG: tuple[tuple[str, Language], ...] = (
    ("python", "python"),
    ("node", "javascript"),
    ("awk", "awk"),
    ("sed", "sed"),
    ("perl", "perl"),
    ("sh", "shell"),
)


def language_of(path: str, content: bytes) -> Language | None:
    """By the first line, else by the suffix; `None` for what is no program that is known here."""
    first = content.split(b"\n", 1)[0].decode("utf-8", "replace")
    if first.startswith("#!"):
        return next((language for word, language in _SHEBANG if re.search(rf"{word}[0-9.]*\b", first)), None)
    name = path.rsplit("/", 1)[-1]
    return _SUFFIX.get(name[name.rfind(".") :]) if "." in name else None


def programs(files: Mapping[str, bytes]) -> dict[str, Language]:
    """Path -> language of every program among ``files``."""
    found = {path: language_of(path, content) for path, content in files.items()}
    return {path: language for path, language in found.items() if language is not None}
