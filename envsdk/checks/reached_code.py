"""The part of a Python verifier's module that its function can reach.

A verifier that is written next to its tasks is stored with its whole module: what draws the tasks has no say in the
verdict. Reached is what is named, from the function on, at the module's top level; names made up at run time are not
seen.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache


@lru_cache(maxsize=256)
def reached(source: str, function: str) -> str:
    """The sources of the function and of all top-level statements it leads to; the whole where it is not there."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return source
    makers: dict[str, list[ast.stmt]] = {}
    for statement in tree.body:
        for name in _made(statement):
            makers.setdefault(name, []).append(statement)
    if function not in makers:
        return source
    found: list[ast.stmt] = []
    pending = [function]
    seen = {function}
    while pending:
        for statement in makers[pending.pop()]:
            if statement not in found:
                found.append(statement)
                fresh = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)} & makers.keys() - seen
                seen |= fresh
                pending += sorted(fresh)
    ordered = sorted(found, key=lambda statement: statement.lineno)
    return "\n".join(ast.get_source_segment(source, statement) or "" for statement in ordered)


def _made(statement: ast.stmt) -> Iterator[str]:
    """Names that a top-level statement gives a meaning to."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        yield from ((alias.asname or alias.name).split(".")[0] for alias in statement.names)
    else:
        stored = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
        yield from (node.id for node in stored if isinstance(node.ctx, ast.Store))
