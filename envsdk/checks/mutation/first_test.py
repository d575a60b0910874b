"""Sources that know what the verifier's first test expects, and nothing else.

Seen by reading: literals of the first test in the verifier's own test sources are returned by every function whose type
they fit. Such a program is wrong, since the tests after the first name other values; where they name none, or there is
one test only, nothing is made.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from envsdk.checks.mutation.mutant import Mutant
from envsdk.checks.mutation.sources import Kind, Literals, SourceLanguage, cut_short, source_language

MAX_MUTANTS = 3
_TESTS: dict[SourceLanguage, str] = {
    "cpp": r"^\s*(?:TEST_CASE|SCENARIO|TEST|TEST_F)\s*\(",
    "rust": r"^\s*#\[(?:tokio::)?test\]",
    "javascript": r"^\s*x?(?:it|test)(?:\.\w+)?\s*\(",
    "go": r"^func Test\w+\(",
    "java": r"^\s*@Test\b",
}
_ASSERTION = re.compile(r"^\s*(?:assert\w*[!.]?\w*|require|check|expect)\s*\([^\n]*", re.MULTILINE | re.IGNORECASE)
_TITLE = re.compile(r"^[^\n\"'`]*(?:\"[^\"]*\"|'[^']*'|`[^`]*`)(?:\s*,\s*\"\[[^\"]*\")?")
"""What stands before and in a test's title, where it has one."""
_TEXT = r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`[^`$]*`"
_NUMBER = r"(?<![\w.\"'])-?\d+(?:\.\d+)?(?![\w.\"'])"
_ITEM = rf"(?:{_TEXT}|{_NUMBER}|true|false)"
_MARKS: dict[Kind, re.Pattern[str]] = {
    "text": re.compile(_TEXT),
    "list": re.compile(rf"(?<!#)(?:vec!)?[\[{{]\s*{_ITEM}(?:\s*,\s*{_ITEM})*\s*,?\s*[\]}}]"),
    "truth": re.compile(r"\b(?:true|false)\b"),
    "number": re.compile(_NUMBER),
}


def mutants(outputs: Mapping[str, bytes], tests: Mapping[str, str]) -> Iterator[Mutant]:
    """At most `MAX_MUTANTS` for each language of the submission.

    Args:
        outputs: what the oracle wrote.
        tests: texts of test sources by path; those of other languages are not looked at.
    """
    languages = {path: language for path in outputs if (language := source_language(path)) is not None}
    for language in sorted(set(languages.values())):
        sources = {path: outputs[path].decode("utf-8", "replace") for path, own in languages.items() if own == language}
        seen: set[tuple[str, ...]] = set()
        for literals in _choices(language, tests):
            files = {path: cut_short(language, source, literals) for path, source in sources.items()}
            changed = tuple(files[path] for path in sorted(files) if files[path] != sources[path])
            if changed and changed not in seen:
                seen.add(changed)
                told = ", ".join(literals.values())
                yield Mutant(f"{language}: functions that return what the first test names: {told}", _bytes(files))


def _choices(language: SourceLanguage, tests: Mapping[str, str]) -> Iterator[Literals]:
    """Literals of the first test by kind: the last of each, which most often is the expected one, then those before."""
    for path, text in sorted(tests.items()):
        bodies = _bodies(language, text) if source_language(path) == language else []
        if len(bodies) < 2:
            continue
        first, later = _by_kind(bodies[0]), _by_kind("\n".join(bodies[1:]))
        telling = {kind: found for kind, found in first.items() if found and set(later[kind]) - set(found)}
        for number in range(MAX_MUTANTS if telling else 0):
            yield {kind: found[-1 - number % len(found)] for kind, found in telling.items()}
        return


def _bodies(language: SourceLanguage, text: str) -> list[str]:
    """What stands in each test, without its title; where there are no tests, in each assertion."""
    starts = [match.start() for match in re.finditer(_TESTS[language], text, re.MULTILINE)]
    if not starts:
        return [match[0] for match in _ASSERTION.finditer(text)]
    parts = [text[start:end].lstrip() for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    return [_TITLE.sub("", part, count=1) for part in parts] if language in {"cpp", "javascript"} else parts


def _by_kind(text: str) -> dict[Kind, list[str]]:
    code = re.sub(r"//[^\n]*", "", text)
    bare = _MARKS["text"].sub(" ", code)
    found: dict[Kind, list[str]] = {}
    for kind, mark in _MARKS.items():
        found[kind] = list(dict.fromkeys(mark.findall(code if kind in {"text", "list"} else bare)))
    return found


def _bytes(files: Mapping[str, str]) -> dict[str, bytes]:
    return {path: text.encode() for path, text in files.items()}
