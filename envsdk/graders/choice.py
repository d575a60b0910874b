r"""One letter of a few: in a box, in a labelled statement, or alone on the last line. Letters in prose never count."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from envsdk.errors import UsageError
from envsdk.graders.latex import last_box, normal_form
from envsdk.graders.verdict import WHITE_SPACE, Verdict, judged, unreadable_truth


def choice(candidate: str, truth: str, *, letters: str = "ABCD", label: str = "answer") -> Verdict:
    r"""Right where the candidate settles on the truth's letter.

    The first that applies decides: the last ``\boxed{..}``, which must hold just a letter; the last statement
    ``<label> is X``, ``<label>: X`` or ``<label> = X``; the last non-empty line, which must be just the letter,
    possibly dressed in brackets, stars and a period, or the whole text as one line ``X) text``.

    Args:
        candidate: the answer. Two alternatives, or a letter that is none of ``letters``, are ``no_answer``.
        truth: one of ``letters``.
        letters: the letters to choose from; lower case counts where the letter stands alone.
        label: the word before a statement, in any case, as a word of its own.

    Raises:
        VerifierError: ``unreadable_truth``.
        UsageError: no letters, or no label.
    """
    if not letters or not label.strip():
        raise UsageError(
            "choice needs letters and a label",
            code="bad_grader_option",
            hint="letters='ABCD', label='answer'",
            where="choice",
        )
    right = truth.strip(WHITE_SPACE).upper()
    if len(right) != 1 or right not in letters.upper():
        raise unreadable_truth("choice", truth)
    picked = _picked(candidate, letters, label)
    if picked is None or picked.upper() not in letters.upper():
        return "no_answer"
    return judged(picked.upper() == right)


def _picked(text: str, letters: str, label: str) -> str | None:
    """The character that the text settles on, which may be none of ``letters``; `None` for no choice."""
    box = last_box(text)
    if box is not None:
        content = normal_form(box)
        return content if len(content) == 1 else None
    forms = _forms(letters, label)
    statements = [match for match in forms.statement.finditer(text) if not _is_article(text, match)]
    if statements:
        last = statements[-1]
        return None if forms.alternative.match(text, last.end()) else last["letter"]
    lines = [line for line in re.split(r"[\r\n]", text) if line.strip(WHITE_SPACE)]
    if not lines:
        return None
    if match := forms.alone.fullmatch(lines[-1].strip(WHITE_SPACE)):
        return match["letter"]
    if len(lines) == 1 and (match := forms.option.fullmatch(lines[0].strip(WHITE_SPACE))):
        return None if forms.another.search(match["text"]) else match["letter"]
    return None


def _is_article(text: str, match: re.Match[str]) -> bool:
    """A lower-case letter that prose goes on from, as in ``the answer is a matter of taste``."""
    return match["letter"].islower() and _GOES_ON.match(text, match.end()) is not None


_GOES_ON = re.compile(r"[ \t]+\w")
_OPEN, _SHUT = r"[ \t(\[*]*", r"[ \t)\]*]*"
_WORD_END = r"(?![\w+#]|['\u2019-]\w)"  # C++ and B-side are words of their own


@dataclass(frozen=True, slots=True)
class _Forms:
    """How a choice may be written, for one set of letters and one label."""

    statement: re.Pattern[str]
    alternative: re.Pattern[str]
    alone: re.Pattern[str]
    option: re.Pattern[str]
    another: re.Pattern[str]


@lru_cache(maxsize=64)
def _forms(letters: str, label: str) -> _Forms:
    own = "".join(re.escape(letter) for letter in sorted({*letters.upper(), *letters.lower()}))
    upper = "".join(re.escape(letter) for letter in sorted(set(letters.upper())))
    letter = f"[A-Za-z{own}]"
    named = rf"(?<!\w)(?i:{re.escape(label.strip())})(?!\w)(?:[ \t]+(?i:is):?[ \t]+|\**[ \t]*[:=])"
    either = rf"\(?(?:/|\||&|(?i:or|and)\b){_OPEN}{letter}{_WORD_END}"
    listed = rf",{_OPEN}[{upper}]{_WORD_END}(?![ \t]+(?!(?i:or|and)\b)\w)"
    return _Forms(
        statement=re.compile(rf"{named}{_OPEN}(?P<letter>{letter}){_WORD_END}"),
        alternative=re.compile(rf"{_SHUT}(?:{either}|{listed})"),
        alone=re.compile(rf"{_OPEN}(?P<letter>{letter}){_SHUT}\.?{_SHUT}"),
        option=re.compile(rf"(?P<letter>{letter})\)[ \t]*(?P<text>.+)"),
        another=re.compile(rf"(?<!\w){letter}\)"),
    )
