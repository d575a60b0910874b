"""What an instruction leaves open, read from its words."""

from __future__ import annotations

import re
from dataclasses import dataclass

_EXACT = re.compile(
    r"\bexact(?:ly)?\b|\bbytes?\b|verbatim|newline|line feed|checksum|\bsha\d*\b|\bmd5\b|identical|nothing else"
    r"|unchanged|as (?:it|they) (?:is|are)\b",
    re.IGNORECASE,
)
_TOLERANCE = re.compile(
    r"toleranc|\berrors? of (?:up to|at most)|\bwithin\b|±|\+/-|approximate|\babout\b|\bnearly\b|\broughly\b"
    r"|\bclose to\b|at least|at most|up to|rounded",
    re.IGNORECASE,
)
_ANY_ORDER = re.compile(
    r"any order|order (?:does not|doesn't|is not) (?:matter|important)|no particular order", re.IGNORECASE
)
_IN_ORDER = re.compile(
    r"\bsort(?:ed|ing)?\b|ascending|descending|alphabetical|lexicographic|ordered|revers(?:e|ed)\b"
    r"|\bin (?:the )?(?:same |given |original )?order\b|from (?:smallest|largest|lowest|highest|oldest|newest)",
    re.IGNORECASE,
)
_CONTAINS = re.compile(r"\bcontain(?:s|ing)?\b|\binclud(?:e|es|ing)\b|\bwith the (?:word|text|line)\b", re.IGNORECASE)
_COUNTING = re.compile(
    r"\bhow (?:many|much|long|old|far|often)\b|\bnumber of\b|\bcount\b|\bsum\b|\btotal\b|\bmean\b|\baverage\b"
    r"|\bmedian\b|\bmax(?:imum)?\b|\bmin(?:imum)?\b|\blargest\b|\bsmallest\b|\bdifference\b|\bproduct\b"
    r"|\bpercentage\b|\bsize of\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Wording:
    """An instruction's demands on form."""

    exact: bool
    tolerance: bool
    any_order: bool
    in_order: bool
    contains: bool
    counting: bool


def read_wording(instruction: str) -> Wording:
    """What the words say; a word that could mean a demand counts as one."""
    return Wording(
        exact=bool(_EXACT.search(instruction)),
        tolerance=bool(_TOLERANCE.search(instruction)),
        any_order=bool(_ANY_ORDER.search(instruction)),
        in_order=bool(_IN_ORDER.search(instruction)) and not _ANY_ORDER.search(instruction),
        contains=bool(_CONTAINS.search(instruction)),
        counting=bool(_COUNTING.search(instruction)),
    )
