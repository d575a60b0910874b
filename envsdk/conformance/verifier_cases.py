"""Judge of ``verifier_defects``: the checker is run on a miniature task, its cheats and variants hidden."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
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
HIDDEN = ("cheat.sh", "variant.sh")


def judge_verifier(case: Case) -> None:
    """A bad verifier is caught by the check named first; of a good one no check finds fault."""
    known_fields(case, _INPUTS, {"label", "caught_by", "may_flag", "runs"})
    known("label", [case.body["expected"]["label"]], {"good", "bad"})
    folder = case.path.parent / case.id
    if not folder.is_dir():
        raise SkipCaseError(f"no task directory beside {case.path.name}")
    with tempfile.TemporaryDirectory(prefix="envsdk-defects-") as name:
        copy = Path(name) / case.id
        shutil.copytree(folder, copy, symlinks=True, ignore=shutil.ignore_patterns(*HIDDEN))
        report = asyncio.run(_checked(copy))
    failed = [result.check for result in report.checks if result.outcome == "fail"]
    undecided = [f"{result.check}: {result.why}" for result in report.checks if result.outcome == "error"]
    if case.body["expected"]["label"] == "good":
        why = [f"{result.check}: {result.why}" for result in report.checks if result.outcome == "fail"]
        assert not failed, f"good, but {why}"
        assert not undecided, f"could not decide {undecided}"
    else:
        first = case.body["expected"]["caught_by"][0]
        assert first in failed, f"not caught by {first}; failed: {failed}; undecided: {undecided}"


async def _checked(folder: Path) -> CheckReport:
    async with AsyncExitStack() as closing:
        provider = _provider()
        closing.push_async_callback(provider.close)
        return await check_task(load_task(folder), provider)


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
