"""Programs that know the verifier's first case and nothing else.

Such a program is wrong where the oracle's own answers differ: among the verifier's cases, or, where it asks only one
question, on a question close to it. A verifier that goes through no cases and asks one question of several lines has
its cases in them: that a program could know them all is a slip, that it need know no more than the first is none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from envsdk.checks.lint.files import read_task_files
from envsdk.checks.mutation.behaviour import calls, same_behaviour
from envsdk.checks.mutation.constant_programs import constant_program
from envsdk.checks.mutation.mutant import Mutant
from envsdk.checks.mutation.recording import Asked
from envsdk.checks.program_files import programs
from envsdk.checks.stage import Stage

_MANY_LINES = 3
_GOES_THROUGH = re.compile(r"\b(?:for|while|until|foreach)\b|\b(?:all|any|map|next|zip|iter)\(|\bparametrize\b")


async def mutants(stage: Stage, outputs: Mapping[str, bytes], asked: Sequence[Asked]) -> list[Mutant]:
    """At most two for each program that was asked, wrong by the oracle's own answers. Raises `SandboxError`."""
    made = []
    tests = "\n".join(read_task_files(stage.task).under("tests").values())
    for path, language in programs(outputs).items():
        mine = [question for question in asked if question.path == path]
        if not mine:
            continue
        first = mine[0]
        value = first.answer if first.function else str(first.answer).removesuffix("\n")
        files = {path: constant_program(language, outputs[path], value)}
        if not await same_behaviour(stage, files, calls(path, language, mine, wide=True)):
            is_slip = len(mine) == 1 and _is_many(first) and not _GOES_THROUGH.search(tests)
            made.append(Mutant(f"{path}: only the first case", files, weight="fine" if is_slip else "gross"))
        lines = [] if first.function else str(first.answer).splitlines()
        if len(set(lines)) > 1:
            value = "\n".join([lines[0], *("x" for _ in lines[1:])])
            files = {path: constant_program(language, outputs[path], value)}
            made.append(Mutant(f"{path}: only the first line of its first answer", files))
    return made


def _is_many(question: Asked) -> bool:
    """One question of several lines: on its standard input, or in a file that it names."""
    named = any(isinstance(word, str) and word.startswith("/") for word in question.arguments)
    return named or len(question.given.splitlines()) >= _MANY_LINES
