"""A refresh from its plan to a stored proposal, with real checks and, where a policy is named, real episodes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from envsdk.authoring import registered_families
from envsdk.checks.engine import check_task
from envsdk.checks.report import CheckReport
from envsdk.episode.conversation import ConversationAgent
from envsdk.policies.find import open_policy
from envsdk.sandboxes import open_provider
from envsdk.spec.model import Task
from registry.calibration.measure import Campaign, Measured, measure
from registry.local import LocalRegistry
from registry.refresh.begun import run_name
from registry.refresh.carry_out import Refused, Replacement, find_replacements, store_proposal
from registry.refresh.proposal import plan_refresh
from registry.revisions import SetEntry


async def propose_refresh(
    registry: LocalRegistry,
    name: str,
    *,
    folder: Path,
    lineage: str = "",
    policy: str = "",
    sandbox: str | None = None,
    heard: Callable[[int, int], None] = lambda _found, _wanted: None,
    looked: Callable[[Campaign], None] = lambda _: None,
) -> tuple[int, dict[str, Any]]:
    """Propose a refresh of the set ``name``; the proposal's number and body.

    Args:
        registry: an open database.
        name: of the set.
        folder: where replacements are written.
        lineage: whose saturation counts; the reference's where empty.
        policy: measures the replacements; without one they are only checked.
        sandbox: name of the back end; the first that works where `None`.
        heard: told (found, wanted) after each round of draws.
        looked: told after every look at a replacement.
    """
    families = registered_families()
    with registry.database.reading() as session:
        plan = plan_refresh(session, name, lineage=lineage, families=families)
    replacements: list[Replacement] = []
    refused: list[Refused] = []
    if plan.draw:
        async with AsyncExitStack() as closing:
            provider = open_provider(sandbox)
            closing.push_async_callback(provider.close)

            async def check(task: Task) -> CheckReport:
                return await check_task(task, provider)

            measuring = None
            if policy:
                opened = open_policy(policy)
                closing.push_async_callback(opened.close)

                async def measure_tasks(tasks: list[Task]) -> list[Measured]:
                    campaign = await measure(
                        registry,
                        [SetEntry(task.slug, task.digests.task, task.digests.verifier) for task in tasks],
                        agent=lambda task, _place: ConversationAgent(opened, group_id=task.digests.task),
                        lineage=opened.id.lineage or opened.id.model,
                        provider=provider,
                        folder=folder / "measured",
                        run=run_name(plan),
                        heard=looked,
                    )
                    return campaign.measured

                measuring = measure_tasks
            replacements, refused = await find_replacements(
                registry, plan, families=families, folder=folder, check=check, measure=measuring, heard=heard
            )
    with registry.database.writing() as session:
        proposal = store_proposal(session, plan, replacements, refused)
        return proposal.id, proposal.body
