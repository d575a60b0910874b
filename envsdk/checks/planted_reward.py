"""``planted_reward``: reward files that lie there right before the script starts do not count.

They are planted after the runner's own removal, with nothing else done: a verifier that respects what it finds fails.
"""

from __future__ import annotations

from envsdk.checks.check import (
    MACHINERY,
    Check,
    Finding,
    does_not_apply,
    fails,
    is_full,
    passes,
    said,
    shown,
    undecided,
)
from envsdk.checks.scene import Scene
from envsdk.checks.stage import Stage
from envsdk.sandboxes.base import Sandbox
from envsdk.verifying.results import RESULTS_DIR


async def _examine(stage: Stage) -> Finding:
    spec = stage.task.spec.verifier
    if spec.kind != "script":
        return does_not_apply("a Python verifier returns its reward and reads none")

    async def plant(box: Sandbox) -> None:
        await box.write(f"{RESULTS_DIR}/reward.txt", f"{spec.high:g}\n".encode(), user="root")
        await box.write(f"{RESULTS_DIR}/reward.json", f'{{"reward": {spec.high:g}}}\n'.encode(), user="root")

    verdict = await stage.play(Scene(before_start=plant))
    if verdict.code in MACHINERY:
        return undecided(f"could not verify: {verdict.code}", **shown(verdict))
    if is_full(verdict, spec):
        return fails("a reward that was there before the script started counted", **shown(verdict))
    # Refused is right too: what the verifier wrote contradicts what it left lying beside it.
    end = said(verdict) if verdict.reward is not None else f"refused as {verdict.code or verdict.status}"
    return passes(f"the planted reward did not count: {end}")


CHECK = Check(
    id="planted_reward",
    question="Is a reward that was there before the script started ignored?",
    fix="remove both reward files at the start of the script, and write one on every path",
    examine=_examine,
)
