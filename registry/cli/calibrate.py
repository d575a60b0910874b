"""``envsdk registry calibrate``: measure the tasks of a query with real episodes of a policy."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from envsdk.cli.envelope import success
from envsdk.cli.options import JsonFlag, SandboxOption, emit
from envsdk.errors import EnvsdkError, Interruption
from envsdk.files.scratch import scratch
from registry.cli.options import RegistryOption, empty_query, plain, rate, table
from registry.cli.progress import line, teller

if TYPE_CHECKING:
    from registry.calibration.campaign import Campaign, Measured
    from registry.client import RegistryClient


def calibrate(
    q: Annotated[str, typer.Argument(metavar="QUERY", help="Which tasks; drafts and broken ones are left out.")],
    *,
    policy: Annotated[str, typer.Option(help="vllm:MODEL or openai:URL#MODEL.")],
    concurrency: Annotated[int, typer.Option(min=1, help="Episodes at a time.")] = 32,
    sandbox: SandboxOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would take; run nothing.")] = False,
    registry: RegistryOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Screen tasks: four episodes each, then four at a time where they tell most: at most 16 a task on average.

    Interrupted, it keeps what ended; run it again.

    Exit 1 where the query finds no task to measure, 4 where no episode at all could be graded.
    Example: envsdk registry calibrate "status:checked family:upper-word" --policy vllm:smollm2
    """
    from registry.calibration.campaign import Campaign
    from registry.calibration.measure import candidates
    from registry.client import open_registry

    with open_registry(registry) as opened:
        items, left_out = candidates(opened, q)
        for item in left_out[:10]:
            typer.echo(f"left out: {item.slug} ({'broken' if item.broken else item.status})", err=True)
        if not items:
            raise empty_query(q)
        estimate = _estimate(len(items))
        typer.echo(_estimated(estimate), err=True)
        campaign: Campaign | None = None
        interrupted = False
        if not dry_run:
            campaign, interrupted = asyncio.run(_run(opened, q, policy, concurrency, sandbox))
            _refit(opened)
    _report(
        campaign or Campaign(tasks=len(items)),
        estimate=estimate,
        left_out=len(left_out),
        interrupted=interrupted,
        as_json=as_json,
    )


def _estimate(tasks: int) -> dict[str, int]:
    """What measuring so many tasks takes: graded episodes at least and at most, and what a fixed number would."""
    from registry.saturation.lookahead import BUDGET
    from registry.saturation.screening import AT_MOST, STEP

    return {"tasks": tasks, "at_least": tasks * STEP, "at_most": tasks * BUDGET, "fixed": tasks * AT_MOST}


def _estimated(estimate: dict[str, int]) -> str:
    return (
        f"{estimate['tasks']} tasks: from {estimate['at_least']} to {estimate['at_most']} episodes, mostly close to "
        f"that (a fixed number would take {estimate['fixed']})"
    )


async def _run(
    registry: RegistryClient, q: str, policy: str, concurrency: int, sandbox: str | None
) -> tuple[Campaign | None, bool]:
    """What came of it, and whether it was interrupted."""
    from envsdk.waiting import told
    from registry.calibration.job import calibrate_query

    latest: list[Campaign] = []

    def say(text: str) -> None:
        typer.echo(text, err=True)

    def standing() -> str:
        return line(latest[-1]) if latest else "opening the policy and the sandboxes"

    with scratch("calibrate") as folder:
        try:
            work = calibrate_query(
                registry,
                q,
                policy=policy,
                folder=folder,
                sandbox=sandbox,
                concurrency=concurrency,
                heard=teller(latest.append),
                warn=say,
            )
            campaign = await told(work, say, standing)
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None:
                current.uncancel()
            return (latest[-1] if latest else None), True
    return campaign, False


def _refit(registry: RegistryClient) -> None:
    """Give tasks the priors that the new outcomes allow; only where the database is at hand."""
    from registry.calibration.refit import refit
    from registry.local import LocalRegistry

    if not isinstance(registry, LocalRegistry):
        return
    with registry.database.writing() as session:
        result = refit(session)
    said = result.why or f"{result.priors} priors from {result.lineages} policies"
    typer.echo(f"difficulty: {said}", err=True)


def _report(campaign: Campaign, *, estimate: dict[str, int], left_out: int, interrupted: bool, as_json: bool) -> None:
    done = sorted(campaign.measured, key=lambda item: (item.slug, item.task_digest))
    saved = campaign.fixed - campaign.episodes
    keys = {
        "measured": plain(done),
        "episodes": campaign.episodes,
        "ungraded": campaign.ungraded,
        "fixed": campaign.fixed,
        "saved": saved,
        "generated_tokens": campaign.generated_tokens,
        "seconds": campaign.progress().elapsed_s if done else 0.0,
        "estimate": estimate,
        "left_out": left_out,
        "interrupted": interrupted,
    }
    nothing_graded = 0 < campaign.episodes == campaign.ungraded
    said = f"spent {campaign.episodes} episodes and {campaign.generated_tokens} generated tokens"
    if campaign.ungraded:
        said += f"; {campaign.ungraded} could not be graded and count for nothing: {campaign.why_ungraded}"
    if campaign.fixed and not nothing_graded:
        said += f"; a fixed 32 a task: {campaign.fixed}, saved {100 * saved / campaign.fixed:.0f} %"
    typer.echo(said, err=True)
    rows = [(item.slug, _called(item), rate(item.mean, item.low, item.high, item.n)) for item in done]
    text = table(rows, head=("slug", "verdict", "pass rate"))
    if interrupted:
        if not as_json:
            typer.echo(text)
        raise Interruption("interrupted; what ended is kept", hint="run it again to go on", result=keys)
    if nothing_graded:
        raise EnvsdkError(
            f"none of {campaign.episodes} episodes could be graded: {campaign.why_ungraded}",
            code="nothing_graded",
            hint="see that the policy's server and the sandboxes work: envsdk run TASK --policy POLICY",
        )
    emit(success(**keys), as_json=as_json, text=text)


def _called(item: Measured) -> str:
    """The verdict; where it is uncertain but for no want of grades, the likeliest class and its chance, too."""
    if item.verdict != "uncertain" or not item.n:
        return item.verdict
    return f"uncertain: {item.likeliest} {item.chance:.0%}"
