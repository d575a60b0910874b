"""Programs that know the verifier's first case and nothing else.

Such a program is wrong where the oracle's own answers differ: among the verifier's cases, or, where it asks only one
question, on a question close to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from envsdk.checks.mutation.behaviour import calls, same_behaviour
from envsdk.checks.mutation.constant_programs import constant_program
from envsdk.checks.mutation.mutant import Mutant
from envsdk.checks.mutation.recording import Asked
from envsdk.checks.program_files import programs
from envsdk.checks.stage import Stage


async def mutants(stage: Stage, outputs: Mapping[str, bytes], asked: Sequence[Asked]) -> list[Mutant]:
    """One for each program that was asked and whose answer depends on the question. Raises `SandboxError`."""
    made = []
    for path, language in programs(outputs).items():
        mine = [question for question in asked if question.path == path]
        if not mine:
            continue
        first = mine[0]
        value = first.answer if first.function else str(first.answer).removesuffix("\n")
        files = {path: constant_program(language, outputs[path], value)}
        if not await same_behaviour(stage, files, calls(path, language, mine)):
            made.append(Mutant(f"{path}: only the first case", files))
    return made
