"""What a program answers to questions close to the verifier's own: tells a wrong program from an equal one."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping, Sequence

from envsdk.checks.mutation import numbers
from envsdk.checks.mutation.recording import Asked
from envsdk.checks.program_files import Language
from envsdk.checks.scene import Scene
from envsdk.checks.stage import Stage

MAX_CALLS = 12
_RUN: dict[Language, str] = {"python": "python3", "shell": "sh", "javascript": "node", "perl": "perl"}


def calls(path: str, language: Language, asked: Sequence[Asked], *, wide: bool = False) -> list[str]:
    """Shell commands that ask a program what the verifier asked, and what is near to it; at most `MAX_CALLS`.

    ``wide``: also what is not as near on its standard input, and may be nothing that it need understand.
    """
    commands = []
    for question in asked:
        for arguments in (question.arguments, *_nearby(question.arguments)):
            if question.function:
                commands.append(_call(path, question.function, arguments))
            else:
                run = shlex.join([*(question.command or (_RUN[language], path)), *map(str, arguments)])
                given = question.given.decode("utf-8", "replace")
                texts = [given, f"{given}1\n"] if given else [""]
                if given and wide:
                    texts += [numbers.every_plus_one(given), f"b {given}"]
                commands += [f"printf %s {shlex.quote(text)} | {run}" for text in texts]
    return list(dict.fromkeys(commands))[:MAX_CALLS]


async def answers(stage: Stage, files: Mapping[str, bytes], commands: Sequence[str]) -> list[bytes]:
    """What each command prints where these files lie over the oracle's state. Raises `SandboxError`."""
    async with stage.box(Scene(files=files, after_oracle=True)) as box:
        ended = [await box.exec(f"timeout 5 sh -c {shlex.quote(command)}", timeout_s=10) for command in commands]
    return [run.stdout.strip() + b"\0%d" % (run.exit_code or 0) for run in ended]


async def same_behaviour(stage: Stage, files: Mapping[str, bytes], commands: Sequence[str]) -> bool:
    """Files instead of the oracle's change no answer. Raises `SandboxError`."""
    one, other = await asyncio.gather(answers(stage, {}, commands), answers(stage, files, commands))
    return one == other


def _nearby(arguments: Sequence[object]) -> list[tuple[object, ...]]:
    places = enumerate(arguments)
    return [(*arguments[:at], other, *arguments[at + 1 :]) for at, word in places for other in _others(word)]


def _others(word: object) -> list[object]:
    if isinstance(word, bool):
        return [not word]
    if isinstance(word, int | float):
        return [word + 1, word * 3 + 7]
    if isinstance(word, str):
        try:
            return [str(int(word) + 1), str(int(word) * 3 + 7)]
        except ValueError:
            return [word + "A b", word[::-1]]
    if isinstance(word, list | tuple):
        return [type(word)([*word, *word]), type(word)()]
    return []


def _call(path: str, function: str, arguments: Sequence[object]) -> str:
    folder, _, name = path.rpartition("/")
    module = name.removesuffix(".py")
    load = f"import sys; sys.path.insert(0, {folder!r}); import {module}"
    return shlex.join(["python3", "-c", f"{load}; print({module}.{function}(*{tuple(arguments)!r}))"])
