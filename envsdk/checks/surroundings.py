"""Runs in which much is changed at once: hash seed, locale, time zone and date together.

Where all of them agree with the run as it is, none of the changes matters, and nobody need try them one by one: a
change of one and a change of another would have to cancel each other out. Where one differs, the checks that ask for a
single change play each alone, and say which it was.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from envsdk.checks.chance import names_hash_order
from envsdk.checks.check import MACHINERY, Finding, passes, said
from envsdk.checks.interval import wilson
from envsdk.checks.lint.files import read_task_files
from envsdk.checks.scene import Scene
from envsdk.checks.stage import Stage, oracle_scene
from envsdk.errors import PrerequisiteError

SHIFTS = ("+1d", "+400d")
ZONES = ("AHEAD-14", "BEHIND+12")
"""POSIX zones, which need no database in the box: fourteen hours ahead of UTC, and twelve behind."""
SEEDS = ("0", "1", "2", "3", "5", "8", "13", "21", "34", "55")
_MORE_SEEDS = tuple(str(number) for number in range(100, 130))
_MORE_S = 60.0
LOCALES = ("C", "C.UTF-8")


async def seeds_for(stage: Stage) -> tuple[str, ...]:
    """Hash seeds to try: ten, and forty where a script names what hangs on them, as far as a minute allows.

    Forty, since an order that one seed in four gives is missed by ten in one case of eighteen; and a script whose
    interpreter ignores its environment (``python3 -I``) draws a seed of its own in each. A Python verifier needs an
    interpreter for each seed: it is asked with five. The stage must have an oracle. Raises `SandboxError`.
    """
    if stage.task.spec.verifier.kind != "script":
        return SEEDS[:5]
    run = await stage.oracle()
    assert run is not None
    if not names_hash_order(read_task_files(stage.task).under("tests")):
        return SEEDS
    return (SEEDS + _MORE_SEEDS)[: max(len(SEEDS), int(_MORE_S / max(run.verdict.seconds, 0.001)))]


async def all_at_once(stage: Stage) -> Finding | None:
    """A pass where every run agrees with the oracle's own; `None` where one differs, or could not be made.

    Asked once on a stage, which must have an oracle. Raises `SandboxError`.
    """
    return await stage.once("all_at_once", lambda: _played(stage))  # type: ignore[no-any-return]


async def _played(stage: Stage) -> Finding | None:
    run = await stage.oracle()
    assert run is not None
    scenes = _scenes(await oracle_scene(stage), await seeds_for(stage))
    try:
        verdicts = await asyncio.gather(*map(stage.play, scenes))
    except PrerequisiteError:
        return None  # the clock cannot be moved here: what can be is tried alone
    usual = said(run.verdict)
    if any(verdict.code in MACHINERY or said(verdict) != usual for verdict in verdicts):
        return None
    low, high = wilson(len(scenes) + 1, len(scenes) + 1)
    share = {"agreement": f"{len(scenes) + 1} of {len(scenes) + 1}", "interval_95": [round(low, 3), round(high, 3)]}
    return passes(f"{len(scenes) + 1} runs agree, with hash seed, locale, zone and date changed: {usual}", **share)


def _scenes(scene: Scene, seeds: tuple[str, ...]) -> list[Scene]:
    """One for each seed; zones, locales and dates are spread over them, each at least once."""
    made = []
    for number, seed in enumerate(seeds):
        env = {"PYTHONHASHSEED": seed}
        if number % 2 == 0 and number // 2 < len(LOCALES):
            env |= {"LC_ALL": LOCALES[number // 2], "LANG": LOCALES[number // 2]}
        if number < len(ZONES):
            env["TZ"] = ZONES[number]
        made.append(replace(scene, env=env, faketime=SHIFTS[number - 3] if 3 <= number < 3 + len(SHIFTS) else None))
    return made
