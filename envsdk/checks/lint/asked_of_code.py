"""What a verifier's Python asks of a module beyond the names of its functions: names of parameters, words of errors.

``convert(value=3)`` demands a parameter of that name, ``pytest.raises(ValueError, match="must not be negative")`` those
words. Neither counts where the instruction or a file of the image says them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

_WORD = re.compile(r"[A-Za-z]{2,}")
_OPEN = re.compile(r"\.[*+]\??|\||\\")
_OF_PYTHON = re.compile(
    r"division|literal|index|subscript|keyword|argument|attribute|unhashable|unpack|convert|no such file|iterable|"
    r"object is|out of range|not defined|recursion|encode|decode",
    re.IGNORECASE,
)
"""Words of errors that Python raises by itself."""


def parameters(stem: str, text: str) -> Iterator[tuple[str, int]]:
    """Keyword and line of each call of a function that is imported from the module ``stem``."""
    tree = _parsed(text)
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == stem
        for alias in node.names
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        is_its = (isinstance(called, ast.Name) and called.id in imported) or (
            isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == stem
        )
        if is_its:
            yield from ((word.arg, node.lineno) for word in node.keywords if word.arg is not None)


def messages(text: str) -> Iterator[tuple[str, int]]:
    """Pattern and line of each ``match=`` of ``pytest.raises`` that holds two words or more."""
    for node in ast.walk(_parsed(text)):
        is_raises = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "raises"
        for word in node.keywords if is_raises and isinstance(node, ast.Call) else ():
            said = word.value.value if isinstance(word.value, ast.Constant) else None
            if word.arg == "match" and isinstance(said, str) and len(_WORD.findall(said)) > 1:
                yield said, word.value.lineno


def is_said(message: str, known: str) -> bool:
    """Every part of a message that has two words or more stands in a text, or is one of Python's own."""
    spaced = " ".join(known.lower().split())
    parts = [" ".join(part.lower().split()) for part in _OPEN.split(message)]
    telling = [part for part in parts if len(_WORD.findall(part)) > 1]
    return _OF_PYTHON.search(message) is not None or all(part.strip("^$ ") in spaced for part in telling)


def _parsed(text: str) -> ast.AST:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return ast.Module(body=[], type_ignores=[])
