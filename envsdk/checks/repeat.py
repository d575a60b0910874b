"""``repeat``: runs of the verifier on one state agree.

A verdict that is wrong once in four runs looks right ten times in a row in one case of eighteen. So a verifier that
names a source of chance is asked four times as often, as far as that takes a minute: then it is one in a hundred
thousand.
"""

from __future__ import annotations

from envsdk.checks.agreement import compare
from envsdk.checks.chance import sources_of_chance
from envsdk.checks.check import Check, Finding
from envsdk.checks.lint.files import read_task_files
from envsdk.checks.reached_code import reached
from envsdk.checks.stage import Stage, oracle_scene

_TIMES_WHERE_NAMED = 4
_MORE_S = 60.0


async def repeated(stage: Stage) -> Finding:
    """Whether runs on one state agree, asked once on a stage. Raises `SandboxError`."""

    async def ask() -> Finding:
        scene = await oracle_scene(stage)
        runs = await _runs(stage)
        return await compare(stage, {f"run {number}": scene for number in range(2, runs + 1)}, what="chance")

    return await stage.once("repeat", ask)  # type: ignore[no-any-return]


async def _runs(stage: Stage) -> int:
    """How many runs to compare, the oracle's own among them."""
    run = await stage.oracle()
    assert run is not None
    if not sources_of_chance(_judging(stage)):
        return stage.repeats
    more = stage.repeats * (_TIMES_WHERE_NAMED - 1)
    return stage.repeats + min(more, int(_MORE_S / max(run.verdict.seconds, 0.001)))


def _judging(stage: Stage) -> dict[str, str]:
    """Texts that have a say in the verdict: of a Python verifier's module what its function reaches."""
    texts = read_task_files(stage.task).under("tests")
    file, _, function = stage.task.spec.verifier.entry.partition("::")
    if file not in texts:
        return texts
    # Beside it lie its twin for a sandbox and what of envsdk that one needs: the process here uses neither by chance.
    aside = {"tests/test.sh", "tests/run_verifier.py"}
    kept = {path: text for path, text in texts.items() if path not in aside and not path.startswith("tests/_envsdk/")}
    return {**kept, file: reached(texts[file], function)}


CHECK = Check(
    id="repeat",
    question="Do runs on one state agree?",
    fix="seed what is random, sort what has no order, wait for what is started: one state has one verdict",
    examine=repeated,
    needs="oracle",
)
