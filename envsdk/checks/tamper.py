"""``tamper``: known attacks earn nothing.

Each attack is played on a submission that is wrong; one that earns the full reward is a fault of the verifier. Beside
them, a program handed in must not be able to read ``/tests`` while it is judged, and what is right must not move with
an input that the agent may change.
"""

from __future__ import annotations

import asyncio

from envsdk.checks.attacks import expressions, interpreter, leftover, links, path, settings, submission, workspace
from envsdk.checks.attacks.ground import WRONG, Attack, Ground, survey
from envsdk.checks.attacks.moved import moved_input
from envsdk.checks.attacks.reading import readable_tests
from envsdk.checks.check import (
    MACHINERY,
    Check,
    Finding,
    does_not_apply,
    fails,
    is_full,
    not_assessed,
    passes,
    said,
    shown,
    undecided,
)
from envsdk.checks.lint.files import read_task_files
from envsdk.checks.repeat import repeated
from envsdk.checks.scene import Scene
from envsdk.checks.stage import Stage
from envsdk.verifying.verdict import Verdict

KINDS = (workspace, links, interpreter, settings, path, submission, expressions, leftover)
_SHOWN = 10


async def _examine(stage: Stage) -> Finding:
    if stage.task.spec.verifier.kind == "state":
        return does_not_apply("the verifier runs away from the agent's box and reads files")
    if (await repeated(stage)).outcome == "fail":
        return not_assessed("runs on one state do not agree: see repeat")
    run = await stage.passing_oracle()
    assert run is not None
    if stage.task.spec.verifier.kind == "text":
        return await _told(stage)
    ground = await survey(stage, run)
    if is_full(await stage.play(Scene(files=dict(ground.base))), stage.task.spec.verifier):
        signals = list(workspace.signals(ground))
        found = _judged(stage, signals, await _played(stage, signals))
        nothing = does_not_apply("a wrong submission earns the full reward without any attack")
        return found if found.outcome == "fail" else nothing
    return await _attacked(stage, ground)


async def _told(stage: Stage) -> Finding:
    """Answers to a Python verifier that are programs, where it has a way to take them for such."""
    tests = read_task_files(stage.task).under("tests")
    if not expressions.evaluates("\n".join(text for path, text in tests.items() if path.endswith(".py"))):
        return does_not_apply("the verifier takes no answer for a program")
    if is_full(await stage.play(Scene(files={stage.answer_path: WRONG})), stage.task.spec.verifier):
        return does_not_apply("a wrong answer earns the full reward without any attack")
    scenes = {what: Scene(files={stage.answer_path: payload}) for what, payload in expressions.PAYLOADS.items()}
    attacks = [Attack(f"the answer as {what}", scene) for what, scene in scenes.items()]
    return _judged(stage, attacks, await _played(stage, attacks))


async def _attacked(stage: Stage, ground: Ground) -> Finding:
    attacks = [attack for kind in KINDS for attack in kind.attacks(ground)]
    verdicts = await _played(stage, attacks)
    if idle := await _did_nothing(stage, attacks, verdicts):
        pairs = [pair for pair in zip(attacks, verdicts, strict=True) if pair[0] not in idle]
        attacks, verdicts = [attack for attack, _ in pairs], [verdict for _, verdict in pairs]
    found = _judged(stage, attacks, verdicts)
    if found.outcome != "fail" and await readable_tests(stage, ground):
        return fails("a program that is handed in can read /tests while it is judged")
    if found.outcome != "fail" and (path := await moved_input(stage, ground)):
        return fails(f"what is right is computed from {path}, which the agent may change", input=path)
    return found


async def _played(stage: Stage, attacks: list[Attack]) -> list[Verdict]:
    return await asyncio.gather(*(stage.play(attack.scene) for attack in attacks))


async def _did_nothing(stage: Stage, attacks: list[Attack], verdicts: list[Verdict]) -> list[Attack]:
    """Those that earned the full reward, as their controls do."""
    spec = stage.task.spec.verifier
    won = [attack for attack, verdict in zip(attacks, verdicts, strict=True) if is_full(verdict, spec)]
    controlled = [(attack, attack.control) for attack in won if attack.control is not None]
    played = await asyncio.gather(*(stage.play(control) for _, control in controlled))
    return [attack for (attack, _), verdict in zip(controlled, played, strict=True) if is_full(verdict, spec)]


def _judged(stage: Stage, attacks: list[Attack], verdicts: list[Verdict]) -> Finding:
    won = [pair for pair in zip(attacks, verdicts, strict=True) if is_full(pair[1], stage.task.spec.verifier)]
    if won:
        return _lost(won)
    broken = [verdict for verdict in verdicts if verdict.code in MACHINERY]
    if broken:
        return undecided(f"{len(broken)} attacks could not be verified: {broken[0].code}", **shown(broken[0]))
    return passes(f"{len(attacks)} attacks earned nothing", attacks=len(attacks))


def _lost(won: list[tuple[Attack, Verdict]]) -> Finding:
    rows = [{"attack": attack.name, "verdict": said(verdict)} for attack, verdict in won[:_SHOWN]]
    more = f", and {len(won) - 1} more" if len(won) > 1 else ""
    return fails(f"an attack earned the full reward: {won[0][0].name}{more}", attacks=rows, **shown(won[0][1]))


CHECK = Check(
    id="tamper",
    question="Do known attacks earn nothing?",
    fix="judge from files under /tests with the agent's processes gone: `python3 -I`, a PATH of root's folders, "
    "programs run as the agent with /tests closed, nothing of the workspace trusted",
    examine=_examine,
    needs="passing_oracle",
)
