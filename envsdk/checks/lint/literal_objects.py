"""Keys of the object that a verifier's Python compares a JSON answer with, where it is written down there.

Only names such as ``error_count`` count, of several words joined by underscores: a key of one word may be data.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

_NAME = re.compile(r"[a-z]+(?:_[a-z0-9]+)+")
_HEREDOC = re.compile(r"<<-?\s*['\"]?(?P<end>\w+)['\"]?[^\n]*\n(?P<body>.*?)^\s*(?P=end)\s*$", re.DOTALL | re.MULTILINE)


def compared_keys(path: str, text: str) -> Iterator[tuple[str, int]]:
    """Key and line of each."""
    bodies = [(text, 0)] if path.endswith(".py") else _programs(text)
    for body, above in bodies:
        try:
            tree = ast.parse(body)
        except (SyntaxError, ValueError):
            continue
        loaded = {
            target.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and _is_load(node.value)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare) and len(node.comparators) == 1 and isinstance(node.ops[0], ast.Eq):
                yield from ((key, line + above) for key, line in _sides(node.left, node.comparators[0], loaded))


def _programs(text: str) -> list[tuple[str, int]]:
    return [(match["body"], text.count("\n", 0, match.start("body"))) for match in _HEREDOC.finditer(text)]


def _sides(left: ast.expr, right: ast.expr, loaded: set[str]) -> Iterator[tuple[str, int]]:
    for asked, given in ((left, right), (right, left)):
        is_answer = _is_load(asked) or (isinstance(asked, ast.Name) and asked.id in loaded)
        if is_answer and isinstance(given, ast.Dict):
            for key in given.keys:
                if isinstance(key, ast.Constant) and isinstance(key.value, str) and _NAME.fullmatch(key.value):
                    yield key.value, key.lineno


def _is_load(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in {"load", "loads"}
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "json"
    )
