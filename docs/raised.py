"""Which errors the sources raise: codes, exit codes, messages and hints, read from the syntax without running anything.

Found are calls of the project's error classes and of `Problem`, with texts that stand in the call, in a variable of the
same function or in a constant of the module, and calls of functions that pass a code on to one of these. Not found: a
code that is put together while the program runs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("envsdk", "registry", "trainer", "tasks")
_CODE = re.compile(r"[a-z][a-z0-9_]*")
Variables = Mapping[str, list[ast.expr]]
Function = ast.FunctionDef | ast.AsyncFunctionDef


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


@dataclass(frozen=True)
class Passer:
    """A function that makes an error of ``kind`` from a code that it is given; positions of its parameters."""

    kind: Kind
    code: int
    message: int | None
    hints: tuple[str, ...]


def sources() -> dict[Path, ast.Module]:
    """Every module of the project, parsed."""
    paths = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def entries(modules: Mapping[Path, ast.Module]) -> dict[str, Entry]:
    """Every code that a call in the sources gives, or that an error class falls back on."""
    classes = kinds(modules)
    found: dict[str, Entry] = {}
    shared = {n: p for module in modules.values() for n, p in _passers(module, classes).items() if n[0] != "_"}
    for module in modules.values():
        passers = shared | _passers(module, classes)
        for call, variables in _calls(module):
            name = ast.unparse(call.func).rpartition(".")[2]
            if name in passers:
                _add_passed(found, call, passers[name], variables)
            else:
                _add(found, call, classes.get(name), variables)
    return found


def _add(found: dict[str, Entry], call: ast.Call, kind: Kind | None, variables: Variables) -> None:
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    has_message = bool(call.args) or "message" in given
    codes = list(_texts(given["code"], variables)) if "code" in given else [kind.code] if kind and has_message else []
    for code in filter(_CODE.fullmatch, codes):
        entry = found.setdefault(code, Entry())
        if kind is not None and kind.exit is not None:
            entry.exits.add(kind.exit)
            message = call.args[0] if call.args else given.get("message")
            entry.messages.update(_texts(message, variables) if message is not None else ())
        entry.hints.update(_texts(given["hint"], variables) if "hint" in given else ())


def _add_passed(found: dict[str, Entry], call: ast.Call, passer: Passer, variables: Variables) -> None:
    if len(call.args) <= passer.code:
        return
    for code in filter(_CODE.fullmatch, _texts(call.args[passer.code], variables)):
        entry = found.setdefault(code, Entry())
        entry.hints.update(passer.hints)
        if passer.kind.exit is not None:
            entry.exits.add(passer.kind.exit)
        if passer.message is not None and len(call.args) > passer.message:
            entry.messages.update(_texts(call.args[passer.message], variables))


def kinds(modules: Mapping[Path, ast.Module]) -> dict[str, Kind]:
    """Every error class, with its own or its nearest ancestor's code and exit code; and `Problem`, a `SpecError`'s."""
    found: dict[str, Kind] = {"EnvsdkError": Kind("", "error", 4)}
    classes = [node for module in modules.values() for node in ast.walk(module) if isinstance(node, ast.ClassDef)]
    for node in classes:
        if node.bases and node.name != "EnvsdkError":
            constants = _constants(node)
            base = ast.unparse(node.bases[0]).rpartition(".")[2]
            found[node.name] = Kind(base, str(constants.get("default_code", "")), _exit(constants))
    ours = {name: kind for name, kind in found.items() if _root(name, found) == "EnvsdkError"}
    for name in sorted(ours, key=lambda item: _depth(item, found)):
        kind, parent = ours[name], ours.get(ours[name].base)
        if parent is not None:
            kind.code = kind.code or parent.code
            kind.exit = parent.exit if kind.exit is None else kind.exit
    if "SpecError" in ours:
        ours["Problem"] = Kind("", "", ours["SpecError"].exit)
    return ours


def _exit(constants: Mapping[str, object]) -> int | None:
    code = constants.get("exit_code")
    return code if isinstance(code, int) else None


def _constants(node: ast.ClassDef) -> dict[str, object]:
    """Constants that a class assigns in its body, by name."""
    found: dict[str, object] = {}
    for line in node.body:
        if isinstance(line, ast.Assign | ast.AnnAssign) and isinstance(line.value, ast.Constant):
            targets = line.targets if isinstance(line, ast.Assign) else [line.target]
            found |= {target.id: line.value.value for target in targets if isinstance(target, ast.Name)}
    return found


def _root(name: str, found: Mapping[str, Kind]) -> str:
    while name in found and found[name].base in found:
        name = found[name].base
    return name


def _depth(name: str, found: Mapping[str, Kind]) -> int:
    return 0 if name not in found or not found[name].base else 1 + _depth(found[name].base, found)


def _passers(module: ast.Module, classes: Mapping[str, Kind]) -> dict[str, Passer]:
    """Functions of a module that make an error from a code that they are given by position."""
    found: dict[str, Passer] = {}
    constants = _variables(module.body)
    for function in (node for node in ast.walk(module) if isinstance(node, Function)):
        parameters = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
        variables = {**constants, **_variables(ast.walk(function))}
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            kind = classes.get(ast.unparse(call.func).rpartition(".")[2])
            given = {keyword.arg: keyword.value for keyword in call.keywords}
            code = given.get("code")
            if kind is None or not isinstance(code, ast.Name) or code.id not in parameters:
                continue
            message = call.args[0] if call.args else given.get("message")
            place = parameters.index(message.id) if isinstance(message, ast.Name) and message.id in parameters else None
            hints = tuple(_texts(given["hint"], variables)) if "hint" in given else ()
            found[function.name] = Passer(kind, parameters.index(code.id), place, hints)
    return found


def _calls(module: ast.Module) -> Iterator[tuple[ast.Call, Variables]]:
    """Every call, with what the module's constants and the variables of the innermost function around it are set to."""
    constants = _variables(module.body)
    pending: list[tuple[ast.AST, Variables]] = [(module, constants)]
    while pending:
        node, variables = pending.pop()
        inside = {**constants, **_variables(ast.walk(node))} if isinstance(node, Function) else variables
        if isinstance(node, ast.Call):
            yield node, inside
        pending += [(child, inside) for child in ast.iter_child_nodes(node)]


def _variables(nodes: Iterable[ast.AST]) -> dict[str, list[ast.expr]]:
    found: dict[str, list[ast.expr]] = {}
    for node in (node for node in nodes if isinstance(node, ast.Assign) and len(node.targets) == 1):
        target, value = node.targets[0], node.value
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = list(zip(target.elts, value.elts, strict=False))
        for one, given in pairs:
            if isinstance(one, ast.Name):
                found.setdefault(one.id, []).append(given)
    return found


def _texts(node: ast.expr, variables: Variables) -> Iterator[str]:
    """The texts an expression can be, with an ellipsis for what is only known when it runs."""
    if isinstance(node, ast.IfExp):
        yield from _texts(node.body, variables)
        yield from _texts(node.orelse, variables)
    elif isinstance(node, ast.BoolOp):
        for value in node.values:
            yield from _texts(value, variables)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        for left in _texts(node.left, variables):
            yield from (left + right for right in _texts(node.right, variables))
    elif isinstance(node, ast.Name) and node.id in variables:
        # A variable that is set from itself is not followed round and round.
        others = {name: values for name, values in variables.items() if name != node.id}
        for value in variables[node.id]:
            yield from _texts(value, others)
