"""Functions in sources of languages with braces, and their return cut short: C++, Rust, JavaScript, Go, Java.

No parser: a function is found by the look of its head. What is missed stays as it was, and what is taken for one by
mistake does not build, so that its mutant is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

SourceLanguage = Literal["cpp", "rust", "javascript", "go", "java"]
Kind = Literal["text", "number", "truth", "list"]
Literals = dict[Kind, str]
"""A literal of the tests for each kind of value, as the tests write it."""

_SUFFIXES: dict[SourceLanguage, str] = {
    "cpp": r"\.(?:c|cc|cpp|cxx|h|hh|hpp)$",
    "rust": r"\.rs$",
    "javascript": r"\.(?:js|mjs|cjs|jsx|ts|tsx)$",
    "go": r"\.go$",
    "java": r"\.java$",
}
_HEADS: dict[SourceLanguage, re.Pattern[str]] = {
    "cpp": re.compile(
        r"(?P<type>[A-Za-z_][\w:<>, ]*?[\w>])[ \t\n]+(?P<name>[\w:]+)\s*\([^;{}]*\)\s*"
        r"(?:const\s*)?(?:noexcept\s*)?\{"
    ),
    "rust": re.compile(r"\bfn\s+(?P<name>\w+)[^{};]*?->\s*(?P<type>[^{};]+?)\s*(?:where[^{]*)?\{"),
    "javascript": re.compile(
        r"(?:function\s*\w*\s*\([^)]*\)|(?:const|let|var)\s+\w+\s*=\s*(?:async\s*)?(?:\([^)]*\)|\w+)\s*=>|"
        r"^\s+(?:get\s+|static\s+)?(?!if|for|while|switch|constructor|catch)\w+\s*\([^)]*\))\s*(?P<brace>\{|(?<==>)\s*(?=\S))",
        re.MULTILINE,
    ),
    "go": re.compile(r"^func\s+(?:\([^)]*\)\s*)?(?P<name>\w+)\([^)]*\)\s*(?P<type>[\w\[\]*.]+)\s*\{", re.MULTILINE),
    "java": re.compile(
        r"(?:public|private|protected|static|final|\s)+\s+(?P<type>[\w<>\[\], ]+?)\s+(?P<name>\w+)\s*\([^)]*\)\s*"
        r"(?:throws [\w, ]+)?\{"
    ),
}
_QUALIFIER = re.compile(r"\b(?:static|inline|constexpr|virtual|extern|final|synchronized)\b")
_NO_TYPE = re.compile(r"^(?:return|else|new|throw|void|namespace|class|struct|enum|case|public|private)\b|\bvoid\b")
_TEXT = re.compile(r"string|String|\bstr\b|char\s*\*")
_TRUTH = re.compile(r"^(?:bool|boolean)$")
_NUMBER = re.compile(
    r"^(?:(?:un)?signed|short|long|int|float|double|size_t|(?:std::)?u?int\d*(?:_t)?|[iuf]\d+|[iu]size)[\w ]*$"
)
_LIST = re.compile(r"vector|array|list|List|\bset\b|^Vec<|\[\]")


@dataclass(frozen=True, slots=True)
class Head:
    """A function's head: where its body begins, and the type it returns (empty where the language states none)."""

    end: int
    type: str


def source_language(path: str) -> SourceLanguage | None:
    """By the suffix; `None` for anything else."""
    return next((language for language, suffix in _SUFFIXES.items() if re.search(suffix, path)), None)


def heads(language: SourceLanguage, source: str) -> Iterator[Head]:
    """Functions that return something."""
    for match in _HEADS[language].finditer(source):
        kind = "" if language == "javascript" else " ".join(_QUALIFIER.sub("", match["type"]).split())
        if not _NO_TYPE.search(kind):
            yield Head(match.end(), kind)


def cut_short(language: SourceLanguage, source: str, literals: Literals) -> str:
    """The source with every function that can return one of the literals doing so at once; the same where none can."""
    made, at = [], 0
    for head in heads(language, source):
        value = _RETURNS[language](head.type, literals)
        if not value or head.end < at:
            continue
        is_arrow = language == "javascript" and source[head.end - 1] != "{"
        early = f"true ? {value} : " if is_arrow else _EARLY[language].format(value=value)
        made += [source[at : head.end], early]
        at = head.end
    return "".join([*made, source[at:]])


_EARLY: dict[SourceLanguage, str] = {
    "cpp": " if (true) return {value};",
    "rust": " if true {{ return {value}; }}",
    "javascript": " if (true) return {value};",
    "go": " if true {{ return {value} }}",
    "java": " if (true) return {value};",
}
"""The rest of the body stays, so that nothing in it becomes unused: warnings may be errors."""


def _plain(kind: str, literals: Literals) -> str:
    if _LIST.search(kind):
        return literals.get("list", "")
    if _TEXT.search(kind):
        return literals.get("text", "")
    if _TRUTH.match(kind):
        return literals.get("truth", "")
    return literals.get("number", "") if _NUMBER.match(kind) else ""


def _rust(kind: str, literals: Literals) -> str:
    if wrapped := re.fullmatch(r"(Option|Result)<(.*)>", kind):
        inner = _rust(wrapped[2].rsplit(",", 1)[0] if wrapped[1] == "Result" else wrapped[2], literals)
        return f"{'Some' if wrapped[1] == 'Option' else 'Ok'}({inner})" if inner else ""
    value = _plain(kind, literals)
    if value and _LIST.search(kind):
        return "vec!" + re.sub(r"^(?:vec!|&)?", "", value)
    return f"{value}.to_string()" if value and kind == "String" else value


def _cpp(kind: str, literals: Literals) -> str:
    value = _plain(kind, literals)
    return "{" + value.strip("{}[]") + "}" if value and _LIST.search(kind) else value


def _go(kind: str, literals: Literals) -> str:
    value = _plain(kind, literals)
    return f"{kind}{{{value.strip('{}[]')}}}" if value and _LIST.search(kind) else value


def _java(kind: str, literals: Literals) -> str:
    value = _plain(kind, literals)
    if value and kind.startswith("List"):
        return f"java.util.Arrays.asList({value.strip('{}[]')})"
    return f"new {kind} {{{value.strip('{}[]')}}}" if value and kind.endswith("[]") else value


def _javascript(_kind: str, literals: Literals) -> str:
    return next((literals[kind] for kind in ("text", "list", "number", "truth") if kind in literals), "")


_RETURNS: dict[SourceLanguage, Callable[[str, Literals], str]] = {
    "cpp": _cpp,
    "rust": _rust,
    "javascript": _javascript,
    "go": _go,
    "java": _java,
}
