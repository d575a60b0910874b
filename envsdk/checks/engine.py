"""Ask every check about a task, and put what they find into one report.

Checks of a task run together, each in sandboxes of its own, but those that would disturb the others: they come last.
What breaks one of them is that one's finding. Reports of unchanged tasks are kept under the data folder and not asked
again.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable
from importlib.metadata import version

from envsdk.checks import kept
from envsdk.checks.catalogue import choose
from envsdk.checks.check import Check, Finding, not_assessed, undecided
from envsdk.checks.report import CheckReport, CheckResult, Verdict
from envsdk.checks.shared import Shared
from envsdk.checks.stage import Stage
from envsdk.checks.steps import Stages, set_stages, together
from envsdk.errors import EnvsdkError
from envsdk.sandboxes.base import SandboxProvider
from envsdk.spec.model import Task

Heard = Callable[[CheckResult], None]


async def check_task(
    task: Task,
    provider: SandboxProvider | None,
    *,
    checks: Iterable[str] | None = None,
    strict: bool = False,
    fresh: bool = False,
    heard: Heard = lambda _: None,
    shared: Shared | None = None,
) -> CheckReport:
    """Check one task.

    Args:
        task: the task.
        provider: where its sandboxes come from; `None` is enough for tasks without a container.
        checks: ids, all by default.
        strict: what was undecided, or not assessed for want of an oracle, counts as a failure.
        fresh: ask again even where a report of the same content is kept.
        heard: called with each result as it comes.
        shared: what is known of images already, where tasks are checked together.

    Raises:
        UsageError: no such check.
    """
    chosen = choose(checks)
    sandbox = provider.name if provider is not None else ""
    if not fresh and (known := kept.find(task, [check.id for check in chosen], sandbox)) is not None:
        for result in known.checks:
            heard(result)
        return _strict(known) if strict else known
    async with set_stages(task, provider, shared=shared) as stages:

        async def ask(check: Check) -> CheckResult:
            result = await ask_task(check, stages)
            heard(result)
            return result

        found: dict[Check, CheckResult] = {}
        for alone in (False, True):
            turn = [check for check in chosen if check.alone == alone]
            found |= dict(zip(turn, await asyncio.gather(*map(ask, turn)), strict=True))
        results = [found[check] for check in chosen]
    report = CheckReport(
        slug=task.slug,
        task_digest=task.digests.task,
        verifier_digest=task.digests.verifier,
        verdict=verdict_of(results),
        complete=checks is None and all(map(_was_assessed, results)),
        checks=tuple(results),
        sandbox=sandbox,
        envsdk_version=version("envsdk"),
        checked_at=time.time(),
    )
    kept.keep(task, report)
    return _strict(report) if strict else report


async def check_tasks(
    tasks: Iterable[Task],
    provider: SandboxProvider | None,
    *,
    checks: Iterable[str] | None = None,
    strict: bool = False,
    fresh: bool = False,
    at_once: int | None = None,
    heard: Callable[[CheckReport], None] = lambda _: None,
    heard_check: Heard = lambda _: None,
) -> list[CheckReport]:
    """Check many tasks, ``at_once`` (default: one for each core) at a time; reports in the tasks' order.

    ``heard`` is called with each report as it comes, ``heard_check`` with each result; the rest is as for `check_task`.
    """
    asked = None if checks is None else tuple(checks)
    free = asyncio.Semaphore(at_once or os.cpu_count() or 1)
    shared = Shared()

    async def one(task: Task) -> CheckReport:
        async with free:
            report = await check_task(
                task, provider, checks=asked, strict=strict, fresh=fresh, heard=heard_check, shared=shared
            )
        heard(report)
        return report

    return await asyncio.gather(*map(one, tasks))


def verdict_of(results: Iterable[CheckResult]) -> Verdict:
    """Any fail is ``fail``, else any error is ``error``; nothing that passed is ``incomplete``."""
    outcomes = {result.outcome for result in results}
    if "fail" in outcomes:
        return "fail"
    if "error" in outcomes:
        return "error"
    return "pass" if "pass" in outcomes else "incomplete"


async def ask_task(check: Check, stages: Stages) -> CheckResult:
    """Ask one check of a task: on its stage, or of each of its steps in order."""
    found = {name: await ask_check(check, stage) for name, stage in stages.items()}
    return found[""] if "" in found else together(found)


async def ask_check(check: Check, stage: Stage) -> CheckResult:
    """Ask one check on a stage; whatever breaks becomes an undecided result."""
    start = time.monotonic()
    try:
        finding = await _examined(check, stage)
    except EnvsdkError as error:
        finding = undecided(str(error), code=error.code)
    except Exception as error:  # noqa: BLE001 - what one odd task does to one check must not take the others' findings along
        finding = undecided(f"the check itself failed: {type(error).__name__}: {error}")
    return CheckResult(
        check=check.id,
        outcome=finding.outcome,
        why=finding.why,
        fix=check.fix if finding.outcome == "fail" else "",
        evidence=finding.evidence,
        seconds=round(time.monotonic() - start, 3),
    )


async def _examined(check: Check, stage: Stage) -> Finding:
    if stage.opening is not None and stage.opening.unknown is not None:
        return stage.opening.unknown
    if check.needs and await stage.oracle() is None:
        return not_assessed("the task has no oracle")
    if check.runs_verifier and (run := await stage.oracle()) is not None and run.verdict.status == "timeout":
        return not_assessed("the verifier does not end on what the oracle left: see oracle")
    if check.needs == "passing_oracle" and await stage.passing_oracle() is None:
        return not_assessed("needs an oracle that passes")
    return await check.examine(stage)


def _was_assessed(result: CheckResult) -> bool:
    return result.outcome != "error" and result.evidence.get("assessed", True)


def _strict(report: CheckReport) -> CheckReport:
    """The report with everything undecided or not assessed as a failure."""
    results = tuple(
        result.model_copy(update={"outcome": "fail", "why": f"strict: {result.why}"})
        if result.outcome in {"error", "skipped"} and not _was_assessed(result)
        else result
        for result in report.checks
    )
    return report.model_copy(update={"checks": results, "verdict": verdict_of(results)})
