"""Small slips in a Python program: another comparison or operator, a number off by one, a step dropped."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator

from envsdk.checks.mutation.mutant import Mutant

MAX_MUTANTS = 12
_COMPARE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_BINARY: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
}


def mutants(path: str, source: bytes) -> Iterator[Mutant]:
    """At most `MAX_MUTANTS`, spread evenly over the program; none where it does not parse."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    changes = list(_changes(tree))
    step = max(1, len(changes) / MAX_MUTANTS)
    for number in range(min(len(changes), MAX_MUTANTS)):
        what, change = changes[int(number * step)]
        other = copy.deepcopy(tree)
        change(other)
        code = ast.unparse(ast.fix_missing_locations(other)) + "\n"
        if code != ast.unparse(tree) + "\n":
            yield Mutant(f"{path}: {what}", {path: code.encode()}, weight="fine")


def _changes(tree: ast.Module) -> Iterator[tuple[str, Callable[[ast.Module], None]]]:
    """What can be changed, each with a function that changes it in a copy of the tree."""
    for index, node in enumerate(ast.walk(tree)):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARE:
            yield f"another comparison in line {line}", _at(index, _other_comparison)
        elif isinstance(node, ast.BinOp) and type(node.op) in _BINARY and not isinstance(node.left, ast.Constant):
            yield f"another operator in line {line}", _at(index, _other_operator)
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            yield f"a number off by one in line {line}", _at(index, _off_by_one)
        elif isinstance(node, ast.If):
            yield f"a branch turned round in line {line}", _at(index, _turned_round)
        elif isinstance(node, ast.AugAssign) or (
            isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant)  # a docstring is no step
        ):
            yield f"a step dropped in line {line}", _at(index, _dropped)


def _at(index: int, edit: Callable[[ast.Module, ast.AST], None]) -> Callable[[ast.Module], None]:
    def change(tree: ast.Module) -> None:
        edit(tree, list(ast.walk(tree))[index])

    return change


def _other_comparison(_tree: ast.Module, node: ast.AST) -> None:
    assert isinstance(node, ast.Compare)
    node.ops[0] = _COMPARE[type(node.ops[0])]()


def _other_operator(_tree: ast.Module, node: ast.AST) -> None:
    assert isinstance(node, ast.BinOp)
    node.op = _BINARY[type(node.op)]()


def _off_by_one(_tree: ast.Module, node: ast.AST) -> None:
    assert isinstance(node, ast.Constant)
    assert isinstance(node.value, int)
    node.value += 1


def _turned_round(_tree: ast.Module, node: ast.AST) -> None:
    assert isinstance(node, ast.If)
    node.test = ast.UnaryOp(ast.Not(), node.test)


def _dropped(tree: ast.Module, node: ast.AST) -> None:
    for parent in ast.walk(tree):
        for name, body in ast.iter_fields(parent):
            if isinstance(body, list) and node in body and name in {"body", "orelse", "finalbody"}:
                body[body.index(node)] = ast.Pass()
                return
