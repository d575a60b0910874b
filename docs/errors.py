"""Write the reference page of error codes from the sources: ``python docs/errors.py``.

Every place that raises one of the project's errors gives its code, its message and its hint; this reads them without
running anything. A test compares the page with the sources, so that no code goes undocumented.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "errors.md"
PACKAGES = ("envsdk", "registry", "trainer", "tasks")
HEAD = """# Error codes

Every failure that is expected has a code that stays the same across versions, in the `errors` of `--json` and in the
web API: `{"code", "message", "hint", "where"}`. The exit code tells the kind: 1 what was checked is bad, 2 usage, 3 a
prerequisite is missing, 4 could not decide, or the machinery failed on the way. `…` stands for the object at hand.

This page is written from the sources by `python docs/errors.py`.

"""


@dataclass
class Kind:
    """One class of errors."""

    base: str
    code: str = ""
    exit: int | None = None


@dataclass
class Entry:
    """One code: what its places say."""

    exits: set[int] = field(default_factory=set)
    messages: set[str] = field(default_factory=set)
    hints: set[str] = field(default_factory=set)


def sources() -> dict[Path, ast.Module]:
    """Every module of the project, parsed."""
    paths = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def kinds(modules: dict[Path, ast.Module]) -> dict[str, Kind]:
    """Every error class, with its own or its nearest ancestor's code and exit code."""
    found: dict[str, Kind] = {}
    for module in modules.values():
        for node in (item for item in ast.walk(module) if isinstance(item, ast.ClassDef) and item.bases):
            kind = Kind(ast.unparse(node.bases[0]).rpartition(".")[2])
            for line in node.body:
                name = (
                    ast.unparse(line.target if isinstance(line, ast.AnnAssign) else line.targets[0])
                    if _assigns(line)
                    else ""
                )
                if name == "default_code" and isinstance(line.value, ast.Constant):
                    kind.code = line.value.value
                elif name == "exit_code" and isinstance(line.value, ast.Constant):
                    kind.exit = line.value.value
            found[node.name] = kind
    found["EnvsdkError"] = Kind("", "error", 4)
    ours = {name: kind for name, kind in found.items() if _root(name, found) == "EnvsdkError"}
    for name in sorted(ours, key=lambda item: _depth(item, found)):
        kind = ours[name]
        if kind.base in ours:
            kind.code, kind.exit = (
                kind.code or ours[kind.base].code,
                ours[kind.base].exit if kind.exit is None else kind.exit,
            )
    return ours


def _assigns(line: ast.stmt) -> bool:
    return isinstance(line, ast.AnnAssign) or (isinstance(line, ast.Assign) and len(line.targets) == 1)


def _root(name: str, found: dict[str, Kind]) -> str:
    while name in found and found[name].base in found:
        name = found[name].base
    return name


def _depth(name: str, found: dict[str, Kind]) -> int:
    return 0 if name not in found or not found[name].base else 1 + _depth(found[name].base, found)


def entries(modules: dict[Path, ast.Module]) -> dict[str, Entry]:
    """Every code that a call in the sources gives, or that an error class falls back on."""
    classes = kinds(modules)
    found: dict[str, Entry] = {}
    for module in modules.values():
        for call in (item for item in ast.walk(module) if isinstance(item, ast.Call)):
            kind = classes.get(ast.unparse(call.func).rpartition(".")[2])
            given = {keyword.arg: keyword.value for keyword in call.keywords}
            codes = list(_texts(given["code"])) if "code" in given else [kind.code] if kind and call.args else []
            for code in filter(re.compile(r"[a-z][a-z0-9_]*").fullmatch, codes):
                entry = found.setdefault(code, Entry())
                if kind is not None and kind.exit is not None:
                    entry.exits.add(kind.exit)
                entry.messages.update(_texts(call.args[0]) if call.args and kind else ())
                entry.hints.update(_texts(given["hint"]) if "hint" in given else ())
    return found


def _texts(node: ast.expr) -> Iterator[str]:
    """The texts an expression can be, with an ellipsis for what is only known when it runs."""
    if isinstance(node, ast.IfExp):
        yield from _texts(node.body)
        yield from _texts(node.orelse)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        for left in _texts(node.left):
            yield from (left + right for right in _texts(node.right))


def page() -> str:
    """The whole page."""
    rows = ["| code | exit | what happened | what to do |", "|---|---|---|---|"]
    for code, entry in sorted(entries(sources()).items()):
        exits = ", ".join(map(str, sorted(entry.exits))) or "4"
        rows.append(f"| `{code}` | {exits} | {_cell(entry.messages)} | {_cell(entry.hints)} |")
    return HEAD + "\n".join(rows) + "\n"


def _cell(texts: set[str]) -> str:
    shown = sorted(
        text.strip().replace("|", "\\|").replace("\n", " ").replace("<", "&lt;") for text in texts if text.strip(" …")
    )
    return "<br>".join(shown)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
