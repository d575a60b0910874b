"""``skip_ratio``: of the verifier's own tests at least one runs, and not too large a share is left out.

Runner summaries are read from the script's output and logs, with what it throws away into ``/dev/null`` kept for this
one run. Where no runner speaks, markers in the verifier's sources are counted.
"""

from __future__ import annotations

from envsdk.checks.check import Check, Finding, does_not_apply, fails, passes
from envsdk.checks.declared_tests import Declared, count_tests, own_tests
from envsdk.checks.lint.files import read_task_files
from envsdk.checks.runners import Counts, read_counts
from envsdk.checks.stage import Stage, oracle_scene

MAX_SHARE = 0.5
"""A share of skipped tests from which on the verifier proves too little."""
_SEEN = "/tmp/envsdk-seen"  # noqa: S108 - inside the box
_KEEP = f"sed -i 's#>[[:space:]]*/dev/null#>>{_SEEN}#g' /tests/*.sh 2>/dev/null; : > {_SEEN}; chmod 666 {_SEEN}"
_LOGS = f"cat {_SEEN}; find /logs -type f -size -2048k ! -name 'reward.*' -exec cat {{}} +; true"


async def _examine(stage: Stage) -> Finding:
    if stage.task.spec.verifier.kind != "script":
        return does_not_apply("a Python verifier runs no test runner")
    files = read_task_files(stage.task)
    tests = files.under("tests")
    scripts = "\n".join(text for path, text in tests.items() if path.endswith(".sh"))
    settings = f"{scripts}\n{files.dockerfile}"
    container = stage.task.spec.container
    settings += "\n".join([*stage.task.spec.verifier.env, *(container.env if container else {})])
    declared = count_tests(own_tests(tests, scripts), settings)
    return judge(read_counts(await _heard(stage)), declared)


def judge(counts: list[Counts], declared: Declared) -> Finding:
    """The finding for what runners said and what the sources declare."""
    evidence = {"runners": [f"{row.runner}: {row.ran} ran, {row.skipped} skipped" for row in counts]}
    ran, skipped = sum(row.ran for row in counts), sum(row.skipped for row in counts)
    if counts and ran == 0:
        return fails("no test of the verifier ran", **evidence)
    if counts and skipped / (ran + skipped) >= MAX_SHARE:
        return fails(f"{skipped} of {ran + skipped} tests of the verifier are skipped", **evidence)
    if counts and declared.tests >= 2 and ran / declared.tests <= MAX_SHARE:
        return fails(f"the verifier declares {declared.tests} tests and {ran} ran", **evidence)
    if counts:
        return passes(f"{ran} tests ran, {skipped} were skipped", **evidence)
    if declared.tests and declared.left_out / declared.tests >= MAX_SHARE:
        return fails(f"{declared.left_out} of {declared.tests} tests of the verifier are marked to be skipped")
    return passes("no test runner speaks") if not declared.tests else passes(f"{declared.tests} tests declared")


async def _heard(stage: Stage) -> str:
    """What the verifier says of the oracle's state, with its logs."""
    verdict, logs = await stage.watch(await oracle_scene(stage), before=_KEEP, after=_LOGS)
    return verdict.evidence.stdout_tail + "\n" + logs.decode("utf-8", "replace")


CHECK = Check(
    id="skip_ratio",
    question="Do the verifier's own tests run?",
    fix="set the variable or drop the markers that leave tests out, match the files' names, and demand that tests ran",
    examine=_examine,
    needs="oracle",
)
