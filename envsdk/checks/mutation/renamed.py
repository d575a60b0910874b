"""A right variation of a Python program: the same, written down anew, with its variables named otherwise.

Refused by a verifier that looks for words of the oracle's own source.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator

from envsdk.checks.mutation.mutant import Mutant

_FORM = re.compile(
    r"\b(?:named?|variables?|comments?|docstrings?|characters|lines? of code|format(?:ted|ting)?|style|pep ?8|black"
    r"|lint\w*|source|implementation)\b",
    re.IGNORECASE,
)
_SEEN_BY_NAME = {"locals", "globals", "vars", "eval", "exec", "getattr", "setattr"}
_BINDS_BY_TEXT = ast.Global | ast.Nonlocal | ast.Match
_SCOPES = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda


def variant(path: str, source: bytes, instruction: str) -> Iterator[Mutant]:
    """One, of a script that defines nothing itself, or of a module whose functions have variables; else none."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    if _FORM.search(instruction) or names & _SEEN_BY_NAME or any(isinstance(n, _BINDS_BY_TEXT) for n in ast.walk(tree)):
        return
    own = _variables(tree) - set(re.findall(r"\w+", instruction)) - set(dir(builtins))
    if not own:
        return
    others = {name: f"{name}_too" for name in own if f"{name}_too" not in names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in others:
            node.id = others[node.id]
    yield Mutant(f"{path}: the same program with other names of variables", {path: ast.unparse(tree).encode() + b"\n"})


def _variables(tree: ast.Module) -> set[str]:
    """Names that one scope alone knows: the script's own, or those of functions that hold no other scope."""
    scopes = [node for node in ast.walk(tree) if isinstance(node, _SCOPES)]
    taken = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    taken |= {node.name for node in scopes if not isinstance(node, ast.Lambda)}
    taken |= {arg.arg for node in ast.walk(tree) if isinstance(node, ast.arguments) for arg in _arguments(node)}
    taken |= {node.name for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and node.name}
    if not scopes:
        return _stored(tree) - taken
    module = {name for node in tree.body if not isinstance(node, _SCOPES) for name in _stored(node)}
    inner = [node for node in scopes if not any(isinstance(n, _SCOPES) and n is not node for n in ast.walk(node))]
    outer = {name for node in scopes if node not in inner for name in _stored(node)}
    return {name for node in inner for name in _stored(node)} - taken - module - outer


def _arguments(node: ast.arguments) -> list[ast.arg]:
    return [*node.posonlyargs, *node.args, *node.kwonlyargs, *filter(None, (node.vararg, node.kwarg))]


def _stored(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
