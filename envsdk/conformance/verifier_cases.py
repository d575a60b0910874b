"""Judge of ``verifier_defects``: the checker is run on a miniature task, its cheats and variants hidden.

What running showed (``runs``) is compared with what the checks found, of each that was decided; then the cheat and the
variant are played in the oracle's place. Not compared: a check that was skipped, as where the oracle fails; an oracle
that varies; and whether a cheat still earns the reward that leaves a process behind, which a runner may end.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from envsdk.checks.engine import check_task
from envsdk.checks.report import CheckReport
from envsdk.conformance.fields import known_fields
from envsdk.conformance.run import Case, SkipCaseError, known
from envsdk.errors import PrerequisiteError
from envsdk.sandboxes import open_provider
from envsdk.sandboxes.base import SandboxProvider
from envsdk.spec.load import load_task

_INPUTS = ("defect", "needs", "artifacts", "cheat", "variant")
_PLAYED = ("cheat", "variant")
HIDDEN = tuple(f"{name}.sh" for name in _PLAYED)
_PASSES_WHERE = {
    **{check: {"fail"} for check in ("noop", "empty", "malformed")},
    "oracle": {"pass"},
    "planted_reward": {"fail", "error"},
    **{check: {"same"} for check in ("repeat", "clock", "hash_seed")},
}
"""What running must have shown where a check passes; anything else is a fault that it must find."""
_IN_BACKGROUND = re.compile(r"[^&>]&\s*$", re.MULTILINE)
_RESULTS = {"pass", "fail", "error", "varies", "same", "changes"}


def judge_verifier(case: Case) -> None:
    """A bad verifier is caught by the check named first; of a good one no check finds fault; runs are as they were."""
    known_fields(case, _INPUTS, {"label", "caught_by", "may_flag", "runs"})
    known("label", [case.body["expected"]["label"]], {"good", "bad"})
    folder = case.path.parent / case.id
    if not folder.is_dir():
        raise SkipCaseError(f"no task directory beside {case.path.name}")
    runs: Mapping[str, str] = case.body["expected"].get("runs", {})
    known("runs", runs, {*_PASSES_WHERE, *_PLAYED})
    known("results of runs", {result.partition(":")[0] for result in runs.values()}, _RESULTS)
    with tempfile.TemporaryDirectory(prefix="envsdk-defects-") as name:
        copy = Path(name) / case.id
        shutil.copytree(folder, copy, symlinks=True, ignore=shutil.ignore_patterns(*HIDDEN))
        report = asyncio.run(_checked(copy))
        played = {name: _earns_all(copy, folder / f"{name}.sh") for name in _PLAYED if name in runs}
    failed = [result.check for result in report.checks if result.outcome == "fail"]
    undecided = [f"{result.check}: {result.why}" for result in report.checks if result.outcome == "error"]
    if case.body["expected"]["label"] == "good":
        why = [f"{result.check}: {result.why}" for result in report.checks if result.outcome == "fail"]
        assert not failed, f"good, but {why}"
        assert not undecided, f"could not decide {undecided}"
    else:
        first = case.body["expected"]["caught_by"][0]
        assert first in failed, f"not caught by {first}; failed: {failed}; undecided: {undecided}"
    odd = [*_odd_checks(report, runs), *(name for name, earned in played.items() if earned and runs[name] != "pass")]
    assert not odd, f"other than running showed: {', '.join(odd)}"
    lost = [
        name
        for name, earned in played.items()
        if not earned and runs[name] == "pass" and not _leaves_a_process(folder / f"{name}.sh")
    ]
    assert not lost, f"earns no reward here: {', '.join(lost)}"


def _odd_checks(report: CheckReport, runs: Mapping[str, str]) -> list[str]:
    """Checks that found what does not fit with what running showed."""
    odd = []
    for result in report.checks:
        showed = runs.get(result.check, "")
        if not showed or result.outcome not in {"pass", "fail"} or (result.check, showed) == ("oracle", "varies"):
            continue
        kind, _, code = showed.partition(":")
        if (result.outcome == "pass") != (kind in _PASSES_WHERE[result.check]):
            odd.append(f"{result.check} {result.outcome}, where running showed {showed} ({result.why})")
        elif result.outcome == "fail" and code not in result.why:
            odd.append(f"{result.check} says {result.why}, where running showed {showed}")
    return odd


def _leaves_a_process(script: Path) -> bool:
    return _IN_BACKGROUND.search(script.read_text(encoding="utf-8", errors="replace")) is not None


def _earns_all(task: Path, script: Path) -> bool:
    """Whether a script in the oracle's place earns the full reward."""
    oracle = task / "solution" / "solve.sh"
    kept = oracle.read_bytes()
    oracle.write_bytes(script.read_bytes())
    try:
        report = asyncio.run(_checked(task, checks=["oracle"]))
    finally:
        oracle.write_bytes(kept)
    return all(result.outcome == "pass" for result in report.checks)


async def _checked(folder: Path, *, checks: Sequence[str] | None = None) -> CheckReport:
    async with AsyncExitStack() as closing:
        provider = _provider()
        closing.push_async_callback(provider.close)
        return await check_task(load_task(folder), provider, checks=checks)


def _provider() -> SandboxProvider:
    """The bubblewrap back end where it works, since it starts in milliseconds; else whatever does."""
    try:
        return open_provider("bubblewrap")
    except PrerequisiteError:
        pass
    try:
        return open_provider()
    except PrerequisiteError as error:
        raise SkipCaseError(f"no sandbox on this machine: {error.message}") from error
