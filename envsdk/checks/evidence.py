"""A result's evidence in parts that a reader takes in at a glance: facts, quoted output, and lists with a diff.

Text (`envsdk.checks.render`) and page (`envsdk.checks.page`) show the same parts; ``--json`` has the whole of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["fact", "quote", "rows", "diff"]
_QUIET = {"assessed"}
_WEIGHTS = {"gross": "", "fine": " (a small slip)"}
_PER_CENT = 100


@dataclass(frozen=True, slots=True)
class Part:
    """One piece: its name, and one line (``fact``) or several (output, list entries, a diff)."""

    kind: Kind
    name: str
    lines: tuple[str, ...]


def parts(evidence: Mapping[str, Any]) -> Iterator[Part]:
    """The parts, in the evidence's order; what is empty is left out."""
    interval = evidence.get("interval_95")
    for name, value in evidence.items():
        if name in _QUIET or name == "interval_95" or value in ([], {}, "", None):
            continue
        if isinstance(value, list) and isinstance(value[0], dict):
            yield Part("rows", name, tuple(map(_row, value)))
            if diff := str(value[0].get("diff", "")):
                yield Part("diff", f"the first of the {name}" if len(value) > 1 else name, tuple(diff.splitlines()))
        elif isinstance(value, str) and "\n" in value:
            yield Part("quote", name, tuple(value.splitlines()))
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            if name in {"killed", "agreement"} and interval:
                low, high = (round(_PER_CENT * bound) for bound in interval)
                text += f" (95 % interval {low} to {high} %)"
            yield Part("fact", name.replace("_", " "), (text,))


def _row(row: Mapping[str, Any]) -> str:
    """``name`` and ``step`` speak for themselves; other keys are named."""
    head = str(row.get("name") or row.get("step") or row.get("attack") or row.get("where") or "")
    taken = {"name", "step", "attack", "where", "diff", "weight"}
    rest = ", ".join(f"{key} {value}" for key, value in row.items() if key not in taken and value not in {"", 0})
    return head + _WEIGHTS.get(str(row.get("weight", "")), "") + (": " if head and rest else "") + rest
