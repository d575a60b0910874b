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
    r"|\bin (?:(?:the|their|its)\b[^.,;]{0,20} )?order\b|\border(?:ed)? by\b"
    r"|\b(?:largest|smallest|highest|lowest|biggest|oldest|newest|latest|earliest|longest|shortest|most|least|greatest)\b"
    r"[^.,;]{0,20}\bfirst\b|from (?:smallest|largest|lowest|highest|oldest|newest)",
    re.IGNORECASE,
)
_CONTAINS = re.compile(
    r"\bcontain(?:s|ing)?\b|\binclud(?:e|es|ing)\b|\bmention(?:s|ing)?\b|\bwith the (?:word|text|line)\b", re.IGNORECASE
)
_COUNTING = re.compile(
    r"\bhow (?:many|much|long|old|far|often)\b|\bnumber of\b|\bcount\b|\bsum\b|\btotal\b|\bmean\b|\baverage\b"
    r"|\bmedian\b|\bmax(?:imum)?\b|\bmin(?:imum)?\b|\blargest\b|\bsmallest\b|\bdifference\b|\bproduct\b"
    r"|\bpercentage\b|\b(?:size|length|area|volume|duration) of\b|\bdistance\b",
    re.IGNORECASE,
)
_CASE = re.compile(
    r"\bcapital letters?\b|\bcapitali[sz]e|\bin capitals\b|\bupper[- ]?case|\blower[- ]?case|\bsmall letters\b",
    re.IGNORECASE,
)
_ANY_CASE = re.compile(
    r"(?:case|capitals?|letters)\W[^.]{0,40}(?:does not|doesn't|do not|don't|is not|are not|never) (?:matter|important)"
    r"|\b(?:upper|lower|either|any)(?:[- ]?case)? or (?:upper|lower)[- ]?case|\b(?:either|any) case\b"
    r"|case[- ]insensitive|ignor\w+ (?:the )?(?:case|capital)|regardless of (?:the )?case",
    re.IGNORECASE,
)
_ALONE = re.compile(
    r"\balone\b|\bonly\b|\bjust\b|nothing (?:else|more)|no other|\bsingle (?:word|number|letter|line|digit|entry|row)"
    r"|\bone (?:word|number|letter|line|digit)\b|\bexact(?:ly)?\b|no explanation"
    r"|without (?:any )?(?:other|further|explanation)",
    re.IGNORECASE,
)
_FREE = re.compile(
    r"\b(?:write|give|find|name|choose|pick|print|return|make|create|invent|(?:answer|reply) with) (?:any|some)\b"
    r"|\bany (?:one )?(?:such|valid|suitable|possible|prime|even|odd|number|integer|word)\b|of your (?:own )?choice"
    r"|\ban? (?:\w+ )?(?:integer|number|word|string|value|root|solution)\b[^.,;]{0,20}? "
    r"(?:such that|for which|satisfying|that (?:satisf|solve)\w+|(?:with|where) [^.;]{1,30}=)"
    r"|\barbitrary\b|\byou (?:like|choose|want|prefer)\b|several (?:answers|solutions) are",
    re.IGNORECASE,
)
_STATED = re.compile(
    r"(?:toleranc\w*|\berrors?|\bwithin|accura\w*|±|\+/-)[^.\n\d]{0,30}?"
    r"(?P<size>\d+(?:\.\d+)?)\s*(?P<share>%|per ?cent)?",
    re.IGNORECASE,
)
_ROUNDED = re.compile(
    r"\b(?:to|with) (?P<places>one|two|three|four|five|six|\d) (?:decimal|digits? after|places?)"
    r"|\bnearest (?:whole|integer|unit)",
    re.IGNORECASE,
)
_HEAD = re.compile(r"\bhead(?:er|ers|ing|ings|line)\b|\bfirst (?:line|row)\b|\bcolumn names\b", re.IGNORECASE)
_NUMERALS = {name: number for number, name in enumerate(("one", "two", "three", "four", "five", "six"), start=1)}


@dataclass(frozen=True, slots=True)
class Wording:
    """An instruction's demands on form.

    Attributes:
        exact: byte for byte.
        tolerance: near is good enough.
        any_order, in_order: whether the order of lines or words counts.
        contains: other text may stand around.
        counting: it asks for one number.
        case: capital and small letters are what it is about.
        any_case: they do not matter.
        alone: nothing may stand beside the answer.
        free: there are several right answers.
        allowed: the stated tolerance; of a share of the value the number of hundredths.
        is_share: the tolerance is such a share.
        unit: one unit of the last place that the instruction has numbers rounded to.
        head: the first line is another than the rest.
    """

    exact: bool
    tolerance: bool
    any_order: bool
    in_order: bool
    contains: bool
    counting: bool
    case: bool = False
    any_case: bool = False
    alone: bool = False
    free: bool = False
    allowed: float | None = None
    is_share: bool = False
    unit: float | None = None
    head: bool = False


def read_wording(instruction: str) -> Wording:
    """What the words say; a word that could mean a demand counts as one."""
    stated = _STATED.search(instruction)
    return Wording(
        exact=bool(_EXACT.search(instruction)),
        tolerance=bool(_TOLERANCE.search(instruction)),
        any_order=bool(_ANY_ORDER.search(instruction)),
        in_order=bool(_IN_ORDER.search(instruction)) and not _ANY_ORDER.search(instruction),
        contains=bool(_CONTAINS.search(instruction)),
        counting=bool(_COUNTING.search(instruction)),
        case=bool(_CASE.search(instruction)) and not _ANY_CASE.search(instruction),
        any_case=bool(_ANY_CASE.search(instruction)),
        alone=bool(_ALONE.search(instruction)),
        free=bool(_FREE.search(instruction)),
        allowed=float(stated["size"]) if stated else None,
        is_share=bool(stated and stated["share"]),
        unit=_unit(instruction),
        head=bool(_HEAD.search(instruction)),
    )


def _unit(instruction: str) -> float | None:
    found = _ROUNDED.search(instruction)
    if found is None:
        return None
    places = (found["places"] or "0").lower()
    return float(10.0 ** -(_NUMERALS[places] if places in _NUMERALS else int(places)))
