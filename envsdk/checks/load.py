"""``load``: the verdict stays the same when the verifier gets a quarter of its processor.

Busy loops are started in the verifier's own box right before its script, three for each processor that it may use. One
odd run proves nothing on a machine that is busy itself: two of three must differ, while of up to three runs without
loops one does not. Where each of those differs too, it is not told.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace

from envsdk.checks.check import MACHINERY, Check, Finding, does_not_apply, fails, passes, said, shown, undecided
from envsdk.checks.stage import Stage, oracle_scene
from envsdk.sandboxes.base import Sandbox
from envsdk.verifying.verdict import Verdict

LOOPS_PER_CPU = 3
MAX_LOOPS = 48
_CONTROLS = 3
_SLOWER = LOOPS_PER_CPU + 1


async def _examine(stage: Stage) -> Finding:
    spec = stage.task.spec
    if spec.verifier.kind != "script":
        return does_not_apply("a Python verifier measures no time of the box")
    run = await stage.oracle()
    assert run is not None
    if run.verdict.seconds * _SLOWER * 2 > spec.budget.verify_s:
        return does_not_apply(f"takes {run.verdict.seconds:.0f} s of {spec.budget.verify_s:g} s: cannot be slowed down")
    scene = await oracle_scene(stage)
    busy = replace(scene, before_start=lambda box: _keep_busy(box, stage))
    usual = said(run.verdict)
    verdicts = list(await asyncio.gather(stage.play(busy), stage.play(busy)))
    if all(said(verdict) == usual for verdict in verdicts):
        return passes(f"with a quarter of its processor: {usual}")
    verdicts.append(await stage.play(busy))
    controls = [await stage.play(scene)]
    while said(controls[-1]) != usual and len(controls) < _CONTROLS:
        controls.append(await stage.play(scene))
    return _found(usual, verdicts, controls)


def _found(usual: str, busy: list[Verdict], idle: list[Verdict]) -> Finding:
    broken = next((verdict for verdict in (*busy, *idle) if verdict.code in MACHINERY), None)
    if broken is not None:
        return undecided(f"could not verify: {broken.code}", **shown(broken))
    odd = [verdict for verdict in busy if said(verdict) != usual]
    words = {"as it is": usual, "again": list(map(said, idle)), "busy": list(map(said, busy))}
    if len(odd) < 2:
        return passes(f"{len(odd)} of 3 busy runs differ, which a busy machine may do by itself", runs=words)
    if said(idle[-1]) != usual:
        return undecided(f"differs from {usual} without loops too: ask again when the machine is less busy", runs=words)
    return fails(f"a busy processor changes the verdict: {usual}, but {said(odd[0])}", runs=words, **shown(odd[0]))


async def _keep_busy(box: Sandbox, stage: Stage) -> None:
    container = stage.task.spec.container
    cpus = container.limits.cpus if container is not None else None
    loops = f"{min(MAX_LOOPS, LOOPS_PER_CPU * math.ceil(cpus))}" if cpus else f"$(( {LOOPS_PER_CPU} * $(nproc) ))"
    loop = "nohup setsid sh -c 'while :; do :; done' > /dev/null 2>&1 < /dev/null &"
    await box.exec(f"i=0; while [ $i -lt {loops} ]; do {loop} i=$((i + 1)); done", user="root", cwd="/")


CHECK = Check(
    id="load",
    question="Does the verdict stay the same on a busy processor?",
    fix="give time limits ten times what is usual, and count work instead of seconds where speed is judged",
    examine=_examine,
    needs="passing_oracle",
    alone=True,
)
