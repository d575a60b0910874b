"""``empty``: every artifact as an empty file earns a valid reward below the pass mark."""

from __future__ import annotations

import shlex

from envsdk.checks.check import Check, Finding, expect_low
from envsdk.checks.scene import Scene
from envsdk.checks.stage import Stage
from envsdk.checks.targets import target_files


async def _examine(stage: Stage) -> Finding:
    files = dict.fromkeys(await target_files(stage), b"")
    run = await stage.oracle() if stage.has_box else None
    folders = run.folders if run is not None else ()
    bare = [folder for folder in folders if not any(path.startswith(f"{folder}/") for path in files)]
    script = "; ".join(f"find {shlex.quote(folder)} -mindepth 1 -delete" for folder in bare)
    scene = Scene(files=files, script=script)
    return expect_low(await stage.play(scene), stage.task.spec.verifier, "an empty submission")


CHECK = Check(
    id="empty",
    question="Does an empty submission earn a valid reward below the pass mark?",
    fix="look at the content, not only at whether it is there, and write 0 for a wrong one on every path",
    examine=_examine,
)
