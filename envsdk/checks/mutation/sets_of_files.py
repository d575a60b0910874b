"""Wrong sets of files: one that was asked for is missing, a folder is empty, a file is another with its checksum."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping

from envsdk.checks.mutation.mutant import Mutant

_OPTIONAL = re.compile(r"\boptional(?:ly)?\b|\byou may\b|\bif you (?:like|want|wish)\b|\bmay also\b", re.IGNORECASE)
_SUMS = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512")
_OTHER = b"x\n"


def mutants(
    outputs: Mapping[str, bytes],
    before: Collection[str],
    asked: Collection[str],
    folders: Collection[str],
    instruction: str,
) -> Iterator[Mutant]:
    """Wrong variations of several files at once.

    Args:
        outputs: what the oracle wrote.
        before: which of them were there at the start.
        asked: which of them the instruction names.
        folders: declared artifacts that are folders with files in them when the oracle is done.
        instruction: may leave a file to the agent's liking.
    """
    if len(outputs) > 1 and not _OPTIONAL.search(instruction):
        for path in sorted(set(asked) - set(before)):
            yield Mutant(f"without {path}", removed=(path,))
    for folder in folders:
        yield Mutant(f"with nothing left in {folder}", removed=(folder,))
    yield from _checked_by_themselves(outputs)


def _checked_by_themselves(outputs: Mapping[str, bytes]) -> Iterator[Mutant]:
    """Another content, and its own checksum where that of the right one stood."""
    for path, content in outputs.items():
        for other, text in outputs.items():
            if other == path or content == _OTHER:
                continue
            changed = text
            for kind in _SUMS:
                old, new = (hashlib.new(kind, data, usedforsecurity=False).hexdigest() for data in (content, _OTHER))
                changed = changed.replace(old.encode(), new.encode())
            if changed != text:
                yield Mutant(f"another {path}, and its checksum in {other}", {path: _OTHER, other: changed})
