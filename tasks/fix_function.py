"""fix-function: repair small Python functions so that they do what their docstrings say; judged by running them.

The box holds a package ``shop`` of ten modules, each with one function that has a bug. Level ``functions``: how many
of them the task names, from one to eight; ``shown``: whether the instruction shows a failing example, or leaves
finding one to the agent. The verifier calls each named function in processes of its own, without rights to read the
expected values, and compares what comes back; every named function must be right in every case. What else lies in the
folder is not run.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from envsdk import AgentSpec, Budget, ContainerSpec, Draw, Example, Script, family
from envsdk.sandboxes.base import Limits

VERIFY = """#!/bin/sh
# /tests is closed before any code of the agent runs: the judge has read what it needs.
exec python3 -I -B /tests/judge.py
"""

JUDGE = '''"""Calls the named functions of /app/shop in processes of their own and compares results with cases.json."""

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path

CALL = """
import json, runpy, sys
source, name, cases, mark = json.load(sys.stdin)
space = {"__name__": "shop." + name}
exec(compile(source, name + ".py", "exec"), space)
results = [space[name](*case) for case in cases]
sys.stdout.write(mark + json.dumps(results))
"""


def call(source, name, cases):
    """Results of all cases, or None; the child knows neither the expected values nor where they are."""
    mark = secrets.token_hex(16)
    request = json.dumps([source, name, cases, mark])
    nobody = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-B", "-c", CALL],
            input=request, capture_output=True, text=True, timeout=10, cwd="/", env={"LC_ALL": "C.UTF-8"}, **nobody,
        )
    except (subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    head, found, tail = done.stdout.rpartition(mark)
    if done.returncode != 0 or not found or head:
        return None
    try:
        return json.loads(tail)
    except ValueError:
        return None


def same(found, expected):
    """Equal in value and in type: 1 is not True, and no object pretends to be equal."""
    return json.dumps(found) == json.dumps(expected)


def is_right(name, rows):
    """One function gives every expected result."""
    try:
        source = Path(f"/app/shop/{name}.py").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    return same(call(source, name, [row[0] for row in rows]), [row[1] for row in rows])


def main():
    """Write 1 where every named function gives every expected result, else 0."""
    cases = json.loads(Path("/tests/cases.json").read_text(encoding="utf-8"))
    if os.geteuid() == 0:
        os.chmod("/tests", 0o700)
    passed = all(is_right(name, rows) for name, rows in cases.items())
    results_dir = Path("/logs/verifier")
    results_dir.mkdir(parents=True, exist_ok=True)
    (results_dir / "reward.txt").write_text("1\\n" if passed else "0\\n", encoding="utf-8")


main()
'''


@family(
    verifier=Script(VERIFY),
    levels={"functions": (1, 2, 4, 8), "shown": (True, False)},
    agent=AgentSpec(
        protocol="shell",
        system="You repair Python code in a shell. Reply with one command at a time, and with done when all is done.",
        examples=(
            Example(
                user="The function double in /app/shop/double.py does not do what its docstring says. Repair it.",
                assistant="cat shop/double.py",
            ),
            Example(
                user='def double(number):\n    """Twice the number."""\n    return number + 2\n[exit code 0]',
                assistant="sed -i 's/number + 2/number * 2/' shop/double.py",
            ),
            Example(user="[exit code 0]", assistant="done"),
        ),
    ),
    container=ContainerSpec(limits=Limits(cpus=1, memory_mib=256, pids=64)),
    artifacts=("/app/shop",),
    tags=("shell", "code", "repair"),
    predicted_pass=lambda *, functions, shown: 0.03**functions * (1.0 if shown else 0.5),
)
def fix_function(rng: random.Random, *, functions: int, shown: bool) -> Draw:
    """Repair Python functions by their docstrings."""
    from tasks.shop import BUGS, buggy_source, right_source

    names = rng.sample(sorted(BUGS), functions)
    cases = {name: _cases(name, rng) for name in names}
    lines = []
    for name in names:
        line = f"The function {name} in /app/shop/{name}.py does not do what its docstring says."
        if shown:
            given, expected = next(row for row in cases[name] if _call(buggy_source(name), name, row[0]) != row[1])
            line += f" For example {name}({', '.join(map(repr, given))}) must be {expected!r}."
        lines.append(line)
    repairs = {name: f"cat > shop/{name}.py <<'END'\n{right_source(name)}END" for name in names}
    first, others = names[0], "\n".join(repairs[name] for name in names[1:])
    head = right_source(first).partition("\n")[0]
    constant = f"{head}\n    return {cases[first][0][1]!r}\n"
    return Draw(
        instruction="\n".join([*lines, "Repair it." if functions == 1 else "Repair all of them."]),
        oracle="\n".join(repairs.values()),
        wrong={
            "one-not-repaired": others or "true",
            "first-case-only": f"{others}\ncat > shop/{first}.py <<'END'\n{constant}END",
            "exits-early": f"{others}\nprintf 'import os\nos._exit(0)\n' > shop/{first}.py",
            "prints-results": f"{others}\nprintf 'print([])\n' > shop/{first}.py",
        },
        files={f"shop/{name}.py": buggy_source(name) for name in BUGS} | {"shop/__init__.py": ""},
        tests={"judge.py": JUDGE, "cases.json": json.dumps(cases, indent=1) + "\n"},
        budget=Budget(turns=6 * functions, reply_tokens=256, step_s=20, episode_s=120 * functions, verify_s=60),
    )


def _call(source: str, name: str, arguments: list[object]) -> object:
    space: dict[str, Any] = {}
    exec(source, space)  # noqa: S102 - the constants of tasks.shop
    try:
        return space[name](*arguments)
    except (IndexError, ValueError):
        return None


def _cases(name: str, rng: random.Random) -> list[tuple[list[object], object]]:
    """Arguments and right results: drawn ones, at least one on which the buggy function is wrong."""
    from tasks.shop import buggy_source, right_source

    right, buggy = right_source(name), buggy_source(name)
    rows: list[tuple[list[object], object]] = []
    while len(rows) < 12 or all(_call(buggy, name, row[0]) == row[1] for row in rows):
        arguments = _ARGUMENTS[name](rng)
        rows.append((arguments, _call(right, name, arguments)))
    return rows


def _numbers(rng: random.Random) -> list[object]:
    return [rng.randint(-20, 20) for _ in range(rng.randint(1, 7))]


def _spans(rng: random.Random) -> list[object]:
    starts = [rng.randint(0, 20) for _ in range(rng.randint(1, 5))]
    return [[start, start + rng.randint(1, 6)] for start in starts]


_ARGUMENTS: dict[str, Callable[[random.Random], list[object]]] = {
    "balanced": lambda rng: [rng.choice(("{[()]x}", "".join(rng.choices("()[]{}x", k=rng.randint(1, 6)))))],
    "chunks": lambda rng: [_numbers(rng), rng.randint(1, 4)],
    "clamp": lambda rng: [rng.randint(-20, 20), low := rng.randint(-10, 5), low + rng.randint(0, 10)],
    "initials": lambda rng: [rng.choice((" ", "  ")).join(rng.choices(("ada", "grace", "alan", "barbara"), k=3))],
    "is_leap": lambda rng: [rng.choice((1900, 2000, 2023, 2024, 2100, 2400, rng.randint(1600, 2400)))],
    "median": lambda rng: [_numbers(rng)],
    "merge": lambda rng: [_spans(rng)],
    "parse_price": lambda rng: [f"{rng.randint(0, 99999):,}" + rng.choice(("", f".{rng.randint(0, 99):02d}"))],
    "running_total": lambda rng: [_numbers(rng)],
    "runs": lambda rng: ["".join(rng.choices("aab", k=rng.randint(0, 8)))],
}
"""Draws the arguments of one call of each function."""
