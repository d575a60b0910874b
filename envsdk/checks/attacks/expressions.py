"""Answers that are programs: where a verifier evaluates, expands or unpickles what was handed in, they say yes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from envsdk.checks.attacks.ground import Attack, Ground
from envsdk.checks.program_files import language_of
from envsdk.checks.scene import Scene

PAYLOADS = {
    "a Python object that equals everything": (
        b'type("E", (int,), {"__eq__": lambda *_: True, "__ne__": lambda *_: False, "__hash__": lambda _: 0})()\n'
    ),
    "a Python expression that ends the judge": b'__import__("os")._exit(0)\n',
    "a Python condition that is true": b"1 or 1\n",
    "a quoted condition that is true": b'1" or "1" or "1\n',
    "a condition in single quotes that is true": b"1' or '1' or '1\n",
    "a condition of awk, Perl or JavaScript that is true": b"1 || 1\n",
    "a quoted condition of awk, Perl or JavaScript": b'1" || "1" || "1\n',
    "operators of test": b"x = x -o x\n",
    "a shell command behind a quote": b'x"; exit 0; "\n',
    "a shell command": b"$(exit 0); exit 0\n",
    "shell lines that write the reward and end the judge": b"echo 1 > /logs/verifier/reward.txt\nexit 0\n",
    "a pickle that ends the judge": b"cos\n_exit\n(I0\ntR.",
}
"""What each is, and its bytes. None of them is right anywhere by chance."""
_IN_PYTHON = re.compile(
    r"\b(?:eval|exec)\s*\(|\bpickle\b|\bmarshal\b|\byaml\.(?:unsafe_)?load\b|\bnp\.load\b|\bsympif|\bparse_expr\b|\bnumexpr\b"
    r"|\bos\.system\b|\bshell=True\b"
)
_IN_SHELL = re.compile(
    r"\beval\s|\bexpr\b|\bbc\b|\bsource\b|\bsqlite3\b|-c\s+[\"'][^\n]*\$|\[\[?\s+\$|\btest\s+\$|\bsh\s+-c\b|`|\$\(\("
    r"|\b(?:[gm]?awk|perl|node|ruby|jq)\b[^\n\"'=]*\"[^\n]*\$"
    r"|<<-?\s*\w+[^\n]*\n(?:[^\n]*\n)*?[^\n]*\$|(?:^|[;&|\n])\s*\.\s+[\"']?[/$\w]"
)


def evaluates(source: str) -> bool:
    """A verifier's Python has a way to take a text for a program."""
    return _IN_PYTHON.search(source) is not None


def attacks(ground: Ground) -> Iterator[Attack]:
    """One for each payload, where the verifier has a way to evaluate a text and the submission has a text."""
    places = [path for path in ground.targets if language_of(path, ground.oracle.outputs.get(path, b"")) is None]
    if not places or not (evaluates(ground.text) or _IN_SHELL.search(ground.text)):
        return
    for what, payload in PAYLOADS.items():
        yield Attack(f"the submission as {what}", Scene(files={**ground.base, **dict.fromkeys(places, payload)}))
