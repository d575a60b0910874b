"""fix-function: repair small Python functions so that they do what their docstrings say; judged by running them.

The box holds a package ``shop`` of ten modules, each with one function that has a bug. Level ``functions``: how many of
them the task names, from one to eight; ``shown``: whether the instruction shows a failing example, or leaves finding one
to the agent. The verifier calls each named function in processes of its own, without rights to read the expected values,
and compares what comes back; every named function must be right in every case. What else lies in the folder is not run.
"""

from __future__ import annotations

import json
import random

from envsdk import AgentSpec, Budget, ContainerSpec, Draw, Example, Script, family
from envsdk.sandboxes.base import Limits

FUNCTIONS: dict[str, tuple[str, str, str]] = {
    "clamp": (
        'def clamp(value, low, high):\n    """The value, but at least low and at most high."""\n',
        "    return max(low, min(value, high))\n",
        "    return min(low, max(value, high))\n",
    ),
    "median": (
        'def median(values):\n    """The middle of the sorted values; of an even number of them the mean of the middle two."""\n',
        "    values = sorted(values)\n    half = len(values) // 2\n    if len(values) % 2:\n        return values[half]\n"
        "    return (values[half - 1] + values[half]) / 2\n",
        "    values = sorted(values)\n    half = len(values) // 2\n    return values[half]\n",
    ),
    "chunks": (
        'def chunks(items, size):\n    """The items in lists of the given size, in order; the last may be shorter."""\n',
        "    return [items[i:i + size] for i in range(0, len(items), size)]\n",
        "    return [items[i:i + size] for i in range(0, len(items) - size, size)]\n",
    ),
    "initials": (
        'def initials(name):\n    """The first letter of each word, in capitals, each followed by a dot; words are split at blanks."""\n',
        '    return "".join(word[0].upper() + "." for word in name.split())\n',
        '    return "".join(word[0].upper() + "." for word in name.split(" "))\n',
    ),
    "parse_price": (
        'def parse_price(text):\n    """Cents of a price such as 1,234.50 or 7; a dot is followed by two digits, commas are ignored."""\n',
        '    whole, _, cents = text.replace(",", "").partition(".")\n    return int(whole) * 100 + int(cents or 0)\n',
        '    whole, _, cents = text.partition(".")\n    return int(whole) * 100 + int(cents or 0)\n',
    ),
    "running_total": (
        'def running_total(numbers):\n    """For each position the sum of the numbers up to and with it."""\n',
        "    total, result = 0, []\n    for number in numbers:\n        total += number\n        result.append(total)\n    return result\n",
        "    total, result = 0, []\n    for number in numbers:\n        result.append(total)\n        total += number\n    return result\n",
    ),
    "runs": (
        'def runs(text):\n    """Runs of equal characters as a list of [character, length]."""\n',
        "    result = []\n    for character in text:\n        if result and result[-1][0] == character:\n            result[-1][1] += 1\n"
        "        else:\n            result.append([character, 1])\n    return result\n",
        "    result = []\n    for character in text:\n        if result and result[-1][0] == character:\n            result[-1][1] += 1\n"
        "        else:\n            result.append([character, 0])\n    return result\n",
    ),
    "is_leap": (
        'def is_leap(year):\n    """Whether a year of the Gregorian calendar has 366 days."""\n',
        "    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)\n",
        "    return year % 4 == 0 and year % 100 != 0\n",
    ),
    "merge": (
        'def merge(spans):\n    """Sorted, non-overlapping [start, end] spans that cover what the given ones cover; touching ones become one."""\n',
        "    result = []\n    for start, end in sorted(spans):\n        if result and start <= result[-1][1]:\n"
        "            result[-1][1] = max(result[-1][1], end)\n        else:\n            result.append([start, end])\n    return result\n",
        "    result = []\n    for start, end in sorted(spans):\n        if result and start < result[-1][1]:\n"
        "            result[-1][1] = end\n        else:\n            result.append([start, end])\n    return result\n",
    ),
    "balanced": (
        'def balanced(text):\n    """Whether every ( [ { is closed by its own ) ] } in the right order; other characters do not count."""\n',
        '    pairs, open_ones = {")": "(", "]": "[", "}": "{"}, []\n    for character in text:\n        if character in "([{":\n'
        "            open_ones.append(character)\n        elif character in pairs:\n            if not open_ones or open_ones.pop() != pairs[character]:\n"
        "                return False\n    return not open_ones\n",
        '    pairs, open_ones = {")": "(", "]": "[", "}": "{"}, []\n    for character in text:\n        if character in "([{":\n'
        "            open_ones.append(character)\n        elif character in pairs:\n            if open_ones and open_ones.pop() != pairs[character]:\n"
        "                return False\n    return not open_ones\n",
    ),
}
"""Name -> head with docstring, right body, wrong body."""

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
            input=request, capture_output=True, text=True, timeout=20, cwd="/", env={"LC_ALL": "C.UTF-8"}, **nobody,
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


def main():
    """Write 1 where every named function gives every expected result, else 0."""
    cases = json.loads(Path("/tests/cases.json").read_text(encoding="utf-8"))
    if os.geteuid() == 0:
        os.chmod("/tests", 0o700)
    passed = True
    for name, rows in cases.items():
        try:
            source = Path(f"/app/shop/{name}.py").read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            passed = False
            continue
        results = call(source, name, [row[0] for row in rows])
        passed = passed and same(results, [row[1] for row in rows])
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
                user='def double(number):\n    """Twice the number."""\n    return number + 2',
                assistant="sed -i 's/number + 2/number * 2/' shop/double.py",
            ),
            Example(user="(no output)", assistant="done"),
        ),
    ),
    container=ContainerSpec(limits=Limits(cpus=1, memory_mib=256, pids=64)),
    artifacts=("/app/shop",),
    tags=("shell", "code", "repair"),
    predicted_pass=lambda *, functions, shown: 0.2**functions * (1.0 if shown else 0.5),
)
def fix_function(rng: random.Random, *, functions: int, shown: bool) -> Draw:
    """Repair Python functions by their docstrings."""
    names = rng.sample(sorted(FUNCTIONS), functions)
    cases = {name: _cases(name, rng) for name in names}
    lines = []
    for name in names:
        line = f"The function {name} in /app/shop/{name}.py does not do what its docstring says."
        if shown:
            given, expected = next(row for row in cases[name] if _call(name, row[0], good=False) != row[1])
            line += f" For example {name}({', '.join(map(repr, given))}) must be {expected!r}."
        lines.append(line)
    repairs = {name: _write(name, good=True) for name in names}
    script = "\n".join(repairs.values())
    first = names[0]
    constant = f"cat > shop/{first}.py <<'END'\n{FUNCTIONS[first][0]}    return {cases[first][0][1]!r}\nEND"
    others = "\n".join(repairs[name] for name in names[1:])
    return Draw(
        instruction="\n".join([*lines, "Repair it." if functions == 1 else "Repair all of them."]),
        oracle=script,
        wrong={
            "one-not-repaired": others or "true",
            "first-case-only": f"{others}\n{constant}",
            "exits-early": f"{script}\nprintf 'import os\\nos._exit(0)\\n' > shop/{first}.py",
            "prints-results": f"{others}\nprintf 'print([])\\n' > shop/{first}.py",
        },
        files={f"shop/{name}.py": head + bad for name, (head, _, bad) in FUNCTIONS.items()} | {"shop/__init__.py": ""},
        tests={"judge.py": JUDGE, "cases.json": json.dumps(cases, indent=1) + "\n"},
        budget=Budget(turns=6 * functions, reply_tokens=256, step_s=20, episode_s=120 * functions, verify_s=60),
    )


def _write(name: str, *, good: bool) -> str:
    head, right, wrong = FUNCTIONS[name]
    return f"cat > shop/{name}.py <<'END'\n{head}{right if good else wrong}END"


def _call(name: str, arguments: list[object], *, good: bool) -> object:
    head, right, wrong = FUNCTIONS[name]
    space: dict[str, object] = {}
    exec(head + (right if good else wrong), space)  # noqa: S102 - the constants of this file
    try:
        return space[name](*arguments)  # type: ignore[operator]
    except (IndexError, ValueError):
        return None


def _cases(name: str, rng: random.Random) -> list[tuple[list[object], object]]:
    """Arguments and right results: drawn ones, at least one on which the buggy function is wrong."""
    rows: list[tuple[list[object], object]] = []
    while len(rows) < 12 or all(_call(name, row[0], good=False) == row[1] for row in rows):
        arguments = _arguments(name, rng)
        rows.append((arguments, _call(name, arguments, good=True)))
    return rows


def _arguments(name: str, rng: random.Random) -> list[object]:
    numbers = [rng.randint(-20, 20) for _ in range(rng.randint(1, 7))]
    if name == "clamp":
        low = rng.randint(-10, 5)
        return [rng.randint(-20, 20), low, low + rng.randint(0, 10)]
    if name == "chunks":
        return [numbers, rng.randint(1, 4)]
    if name == "initials":
        words = [rng.choice(("ada", "grace", "alan", "edsger", "barbara")) for _ in range(rng.randint(1, 3))]
        return [rng.choice((" ", "  ")).join(words)]
    if name == "parse_price":
        return [f"{rng.randint(0, 99999):,}" + rng.choice(("", f".{rng.randint(0, 99):02d}"))]
    if name == "runs":
        return ["".join(rng.choice("aab") for _ in range(rng.randint(0, 8)))]
    if name == "is_leap":
        return [rng.choice((1900, 2000, 2023, 2024, 2100, 2400, rng.randint(1600, 2400)))]
    if name == "merge":
        return [
            [[start, start + rng.randint(1, 6)] for start in (rng.randint(0, 20) for _ in range(rng.randint(1, 5)))]
        ]
    if name == "balanced":
        return ["".join(rng.choice("()[]{}x") for _ in range(rng.randint(1, 6))) if rng.random() < 0.5 else "{[()]x}"]
    return [numbers]
