"""A right variation of a Python program: its errors say other words, where the instruction gives none.

Refused by a verifier that looks for the oracle's own message where a kind of error was asked for.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from envsdk.checks.mutation.mutant import Mutant

_SPOKEN = re.compile(r"\bmessages?\b|\bsay(?:s|ing)?\b|\bprint|\btext\b|\bstderr\b|\bstandard error\b", re.IGNORECASE)
_RAISES = re.compile(r"\brais(?:e|es|ing)\b|\bthrow", re.IGNORECASE)
_OTHER = "not accepted"


def variant(path: str, source: bytes, instruction: str) -> Iterator[Mutant]:
    """One, of a module that raises errors with a text, where it is asked to raise and not what they say."""
    if not _RAISES.search(instruction) or _SPOKEN.search(instruction):
        return
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    changed = False
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and len(node.exc.args) == 1):
            continue
        said = node.exc.args[0]
        text = said.value if isinstance(said, ast.Constant) else None
        # One word, or one that is filled in, may be the name of what was at fault.
        if isinstance(text, str) and len(text.split()) > 1 and text not in instruction:
            node.exc.args = [ast.Constant(_OTHER)]
            changed = True
    if changed:
        yield Mutant(f"{path}: the same program with other words in its errors", {path: _written(tree)})


def _written(tree: ast.Module) -> bytes:
    return ast.unparse(ast.fix_missing_locations(tree)).encode() + b"\n"
