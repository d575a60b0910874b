"""``mutants``: wrong variations of the oracle do not pass, right ones do.

Wrong: what the author supplied; constants, other numbers, lines dropped or added, all candidates listed; programs that
give a constant, know only the first case, or never end; the oracle with a small slip. Right: what the author supplied;
other white space, order, and spelling where the instruction leaves it open. A gross one that passes is a fault; of
small slips a verifier may miss some, and the kill rate is reported with its interval.
"""

from __future__ import annotations

import asyncio
import shlex
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envsdk.checks.check import Check, Finding, fails, is_full, not_assessed, passes, said
from envsdk.checks.image_files import image_view
from envsdk.checks.interval import wilson
from envsdk.checks.leak import is_input
from envsdk.checks.lint.files import read_task_files
from envsdk.checks.lint.names import is_named
from envsdk.checks.mutation import (
    archives,
    bases,
    constant_programs,
    first_case,
    first_test,
    python_code,
    right,
    sets_of_files,
    shell_code,
    silent_servers,
    texts,
)
from envsdk.checks.mutation.behaviour import calls, same_behaviour
from envsdk.checks.mutation.mutant import Mutant, diff
from envsdk.checks.mutation.recording import Asked, record
from envsdk.checks.mutation.sources import source_language
from envsdk.checks.mutation.wording import read_wording
from envsdk.checks.opening import SOLVE
from envsdk.checks.outputs import read_files
from envsdk.checks.program_files import language_of, programs
from envsdk.checks.repeat import repeated
from envsdk.checks.replies import Reply, play_reply, supplied
from envsdk.checks.scene import Scene
from envsdk.checks.stage import OracleRun, Stage
from envsdk.files.scratch import scratch
from envsdk.verifying.verdict import Verdict

LEAST_KILL_RATE = 0.5
"""A share of small slips below which a verifier that misses them is at fault, from `FEWEST_SLIPS` slips on."""
FEWEST_SLIPS = 4
_ENDLESS_S = 4.0
_SHOWN = 8
Row = dict[str, Any]


async def _examine(stage: Stage) -> Finding:
    run = await stage.passing_oracle()
    assert run is not None
    if (await repeated(stage)).outcome == "fail":
        return not_assessed("runs on one state do not agree: see repeat")
    inputs = await _inputs(stage)
    asked = await record(stage, run.outputs) if stage.has_box and programs(run.outputs) else []
    wrong = [*_wrong_texts(stage, run, inputs), *constant_programs.mutants(run.outputs), *_code_slips(run)]
    wrong += await first_case.mutants(stage, run.outputs, asked)
    wrong += [*silent_servers.mutants(run.outputs), *_wrong_sets(stage, run)]
    for path, content in run.outputs.items():
        wrong += [*bases.mutants(path, content, run.before.get(path)), *archives.mutants(path, content)]
    wrong += first_test.mutants(run.outputs, read_task_files(stage.task).under("tests"))
    words = stage.task.spec.instruction + "\n".join(inputs)
    ask = stage.task.spec.instruction
    good = list(right.variants(run.outputs, run.before, read_wording(ask), words, instruction=ask, given=inputs))
    with ExitStack() as closing:
        if stage.has_box:
            folder = closing.enter_context(scratch("mutants"))
            wrong += await _oracle_slips(stage, run, folder)
        played = Played(*await asyncio.gather(_play(stage, wrong, run), _play(stage, good, run), _play_replies(stage)))
    spec = stage.task.spec.verifier
    slips = [mutant for mutant, verdict in played.wrong if mutant.weight == "fine" and is_full(verdict, spec)]
    equal = [mutant for mutant in slips if await _is_equal(stage, run, asked, mutant)]
    return _judge(stage, run, played, equal)


@dataclass(frozen=True, slots=True)
class Played:
    """Every variation with what the verifier said of it."""

    wrong: list[tuple[Mutant, Verdict]]
    good: list[tuple[Mutant, Verdict]]
    replies: list[tuple[Reply, Verdict]]


def _judge(stage: Stage, run: OracleRun, played: Played, equal: list[Mutant]) -> Finding:
    spec = stage.task.spec.verifier
    wrong, good, replies = played.wrong, played.good, played.replies
    survived = [mutant for mutant, verdict in wrong if is_full(verdict, spec)]
    if len(survived) == 1 and survived[0].may_be_right:
        equal = [*equal, *survived]
    survivors: list[Row] = [_row(run, mutant) for mutant in survived if mutant not in equal]
    survivors += [_reply_row(r, v) for r, v in replies if r.side == "wrong" and is_full(v, spec)]
    refused: list[Row] = [_row(run, m) | {"verdict": said(v)} for m, v in good if not is_full(v, spec)]
    refused += [_reply_row(r, v) for r, v in replies if r.side == "right" and not is_full(v, spec)]
    tried = len(wrong) - len(equal) + sum(reply.side == "wrong" for reply, _ in replies)
    killed = tried - len(survivors)
    low, high = wilson(killed, tried)
    rate = {"killed": f"{killed} of {tried}", "interval_95": [round(low, 3), round(high, 3)], "equal": len(equal)}
    evidence = {**rate, "survivors": survivors[:_SHOWN], "refused": refused[:_SHOWN]}
    gross = [row for row in survivors if row["weight"] == "gross"]
    if gross:
        return fails(f"a wrong submission passes: {gross[0]['name']}{_more(gross)}", **evidence)
    if refused:
        return fails(f"a right submission is refused: {refused[0]['name']}{_more(refused)}", **evidence)
    slips = [mutant for mutant, _ in wrong if mutant.weight == "fine" and mutant not in equal]
    if len(slips) >= FEWEST_SLIPS and len(survivors) > (1 - LEAST_KILL_RATE) * len(slips):
        return fails(f"{len(survivors)} of {len(slips)} small slips pass: {survivors[0]['name']}", **evidence)
    right = f"{len(good)} right ones accepted" if good else "no other right one to try"
    return passes(f"{killed} of {tried} wrong variations refused, {right}", **evidence)


async def _inputs(stage: Stage) -> list[str]:
    """Texts that the task gives to the agent."""
    if not stage.has_box:
        return []
    return [text for path, text in (await image_view(stage)).files.items() if is_input(path, stage)]


def _wrong_texts(stage: Stage, run: OracleRun, inputs: list[str]) -> Iterator[Mutant]:
    """Variations of each text that the instruction asks for; a file it does not name may go unjudged.

    Beside a program a text must be named by its own name: what lies in a folder of sources is there to build them.
    """
    spec = stage.task.spec
    workdir = spec.container.workdir if spec.container else ""
    wording = read_wording(spec.instruction)
    texts_of = [path for path, content in run.outputs.items() if not _is_code(path, content)]
    for path in texts_of:
        is_beside_code = len(texts_of) < len(run.outputs)
        named = (
            path.rsplit("/", 1)[-1] in spec.instruction if is_beside_code else is_named(path, spec.instruction, workdir)
        )
        if len(run.outputs) == 1 or named:
            is_reply = spec.agent.protocol == "answer"
            yield from texts.mutants(
                path, run.outputs[path], wording, inputs, instruction=spec.instruction, is_reply=is_reply
            )


def _wrong_sets(stage: Stage, run: OracleRun) -> Iterator[Mutant]:
    spec = stage.task.spec
    if spec.container is None:
        return
    asked = [path for path in run.outputs if is_named(path, spec.instruction, spec.container.workdir)]
    yield from sets_of_files.mutants(run.outputs, run.before, asked, run.folders, spec.instruction)


def _is_code(path: str, content: bytes) -> bool:
    return language_of(path, content) is not None or source_language(path) is not None


def _code_slips(run: OracleRun) -> Iterator[Mutant]:
    for path, language in programs(run.outputs).items():
        if language == "python":
            yield from python_code.mutants(path, run.outputs[path])
        elif language == "shell":
            script = run.outputs[path].decode("utf-8", "replace")
            for what, other in shell_code.slips(script):
                yield Mutant(f"{path}: {what}", {path: other.encode()}, weight="fine")


async def _oracle_slips(stage: Stage, run: OracleRun, folder: Path) -> list[Mutant]:
    """The oracle's own script with a slip, where what it leaves is then different. Raises `SandboxError`."""
    script = stage.read_file(f"solution/{SOLVE}")
    if script is None:
        return []
    made = []
    for number, (what, other) in enumerate(shell_code.slips(script.decode("utf-8", "replace"))):
        solution = folder / str(number)
        shutil.copytree(stage.task.root / "solution", solution, symlinks=True)
        (solution / SOLVE).write_text(other, encoding="utf-8")
        made.append((Mutant(f"the oracle with {what}", solution=solution, weight="fine"), solution))
    kept = await asyncio.gather(*(_changes_nothing(stage, run, solution) for _, solution in made))
    return [mutant for (mutant, _), nothing in zip(made, kept, strict=True) if not nothing]


async def _changes_nothing(stage: Stage, run: OracleRun, solution: Path) -> bool:
    async with stage.box(Scene(solution=solution)) as box:
        return await read_files(box, run.outputs) == run.outputs


async def _is_equal(stage: Stage, run: OracleRun, asked: list[Asked], mutant: Mutant) -> bool:
    """The slip changes nothing that can be seen: the same answers to the verifier's questions and to close ones."""
    if not mutant.files:
        return False
    commands = [
        command
        for path in mutant.files
        if (language := programs(run.outputs).get(path)) is not None
        for command in calls(path, language, [question for question in asked if question.path == path])
    ]
    return not commands or await same_behaviour(stage, mutant.files, commands)


async def _play(stage: Stage, mutants: list[Mutant], run: OracleRun) -> list[tuple[Mutant, Verdict]]:
    limit_s = max(_ENDLESS_S, 3 * run.verdict.seconds + 2)

    def scene(mutant: Mutant) -> Scene:
        if mutant.solution is not None:
            return Scene(solution=mutant.solution)
        removed = " ".join(map(shlex.quote, mutant.removed))
        script = f"for p in {removed}; do if [ -d $p ]; then find $p -mindepth 1 -delete; else rm -f $p; fi; done"
        limit = limit_s if mutant.endless else None
        return Scene(files=mutant.files, script=script if removed else "", after_oracle=stage.has_box, verify_s=limit)

    verdicts = await asyncio.gather(*(stage.play(scene(mutant)) for mutant in mutants))
    return list(zip(mutants, verdicts, strict=True))


async def _play_replies(stage: Stage) -> list[tuple[Reply, Verdict]]:
    replies = list(supplied(stage.task.root))
    return list(zip(replies, await asyncio.gather(*(play_reply(stage, reply) for reply in replies)), strict=True))


def _row(run: OracleRun, mutant: Mutant) -> Row:
    return {"name": mutant.name, "weight": mutant.weight, "diff": diff(run.outputs, mutant)}


def _reply_row(reply: Reply, verdict: Verdict) -> Row:
    return {"name": f"the author's {reply.side} answer {reply.name}", "weight": "gross", "verdict": said(verdict)}


def _more(rows: list[Row]) -> str:
    return f", and {len(rows) - 1} more" if len(rows) > 1 else ""


CHECK = Check(
    id="mutants",
    question="Do wrong variations of the oracle fail, and right ones pass?",
    fix="judge every case and every file that the instruction asks for, with a tolerance smaller than any mistake, and "
    "accept what the instruction leaves open",
    examine=_examine,
    needs="passing_oracle",
)
