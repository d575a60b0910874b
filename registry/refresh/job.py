"""A refresh from its plan to a stored proposal, with real checks and, where a policy is named, real episodes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envsdk.authoring import registered_families
from envsdk.checks.engine import check_task
from envsdk.checks.report import CheckReport
from envsdk.episode.conversation import ConversationAgent
from envsdk.policies.find import open_policy
from envsdk.policy import Policy
from envsdk.sandboxes import open_provider
from envsdk.sandboxes.base import SandboxProvider
from envsdk.spec.model import Task
from registry.calibration.campaign import Campaign, Measured
from registry.calibration.job import is_ready
from registry.calibration.measure import measure
from registry.local import LocalRegistry
from registry.refresh.begun import run_name
from registry.refresh.carry_out import Refused, Replacement, find_replacements, proposal_body, store_proposal
from registry.refresh.proposal import Plan, plan_refresh
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
) -> tuple[int | None, dict[str, Any]]:
    """Propose a refresh of the set ``name``; the proposal's number and body.

    Where nothing is to be retired there is nothing to decide: nothing is stored, and the number is `None`.

    Args:
        registry: an open database.
        name: of the set.
        folder: where replacements are written.
        lineage: whose saturation counts; the reference's where empty.
        policy: measures the replacements; without one they are only checked.
        sandbox: name of the back end; the first that works where `None`.
        heard: told (found, wanted) at first and after each round of draws.
        looked: told after every look at a replacement.
    """
    families = registered_families()
    with registry.database.reading() as session:
        plan = plan_refresh(session, name, lineage=lineage, families=families)
    replacements: list[Replacement] = []
    refused: list[Refused] = []
    campaigns: list[Campaign] = []
    if plan.draw:
        async with _means(policy, sandbox) as means:
            measuring = _Measuring(registry, plan, means, folder / "measured", looked, campaigns)
            replacements, refused = await find_replacements(
                registry,
                plan,
                families=families,
                folder=folder,
                check=means.check,
                measure=measuring.tasks if policy else None,
                heard=heard,
            )
    body = proposal_body(plan, replacements, refused, spent=_spent(campaigns))
    if not plan.retire:
        return None, body
    with registry.database.writing() as session:
        return store_proposal(session, plan, body).id, body


@dataclass(frozen=True, slots=True)
class _Means:
    """What checks and measures replacements; without a policy they are only checked."""

    provider: SandboxProvider
    policy: Policy | None

    async def check(self, task: Task) -> CheckReport:
        return await check_task(task, self.provider)


@asynccontextmanager
async def _means(policy: str, sandbox: str | None) -> AsyncIterator[_Means]:
    async with AsyncExitStack() as closing:
        provider = open_provider(sandbox)
        closing.push_async_callback(provider.close)
        opened = open_policy(policy) if policy else None
        if opened is not None:
            closing.push_async_callback(opened.close)
        yield _Means(provider, opened)


@dataclass(frozen=True, slots=True)
class _Measuring:
    """Measures replacements of one plan; ``campaigns`` grows by one for each round of draws."""

    registry: LocalRegistry
    plan: Plan
    means: _Means
    folder: Path
    looked: Callable[[Campaign], None]
    campaigns: list[Campaign] = field(default_factory=list)

    async def tasks(self, tasks: list[Task]) -> list[Measured]:
        policy = self.means.policy
        assert policy is not None, "nothing is measured without a policy"
        lineage = policy.id.lineage or policy.id.model
        campaign = await measure(
            self.registry,
            [SetEntry(task.slug, task.digests.task, task.digests.verifier) for task in tasks],
            agent=lambda task, _place: ConversationAgent(policy, group_id=task.digests.task),
            lineage=lineage,
            provider=self.means.provider,
            folder=self.folder,
            run=run_name(self.plan),
            heard=self.looked,
            ready=lambda: is_ready(policy),
        )
        self.campaigns.append(campaign)
        return campaign.measured


def _spent(campaigns: list[Campaign]) -> dict[str, int]:
    return {
        "episodes": sum(campaign.episodes for campaign in campaigns),
        "ungraded": sum(campaign.ungraded for campaign in campaigns),
        "generated_tokens": sum(campaign.generated_tokens for campaign in campaigns),
    }
