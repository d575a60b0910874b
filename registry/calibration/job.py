"""Calibrate the tasks of a query with a named policy, from opening it to closing it.

Where the registry's database is at hand, the first look at the tasks is followed by priors from how other policies did.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

from envsdk.episode.conversation import ConversationAgent
from envsdk.errors import PrerequisiteError
from envsdk.policies.find import open_policy
from envsdk.policy import Policy
from envsdk.sandboxes import open_provider
from envsdk.sandboxes.base import SandboxProvider
from registry.calibration.campaign import Campaign
from registry.calibration.measure import candidates, measure
from registry.calibration.refit import refit
from registry.client import RegistryClient
from registry.local import LocalRegistry


async def calibrate_query(
    registry: RegistryClient,
    q: str,
    *,
    policy: str,
    folder: Path,
    sandbox: str | None = None,
    concurrency: int = 32,
    heard: Callable[[Campaign], None] = lambda _: None,
    warn: Callable[[str], None] = lambda _: None,
) -> Campaign:
    """Screen what ``q`` finds with real episodes; cancelling it keeps what ended.

    Args:
        registry: where tasks come from and outcomes go.
        q: a query; drafts and broken tasks in it are left out.
        policy: ``vllm:MODEL`` or ``openai:URL#MODEL``.
        folder: where task directories are written.
        sandbox: name of the back end; where `None`, the first that works, or none at all for tasks of pure text.
        concurrency: episodes at a time.
        heard: told at the beginning of a round and after every look.
        warn: hears what the reader should know.

    Raises:
        UsageError: a fault in the query, or no such policy.
        PrerequisiteError: the policy or the named sandbox cannot run here.
    """
    items, _ = candidates(registry, q)
    async with AsyncExitStack() as closing:
        warn(f"starting {policy}")
        opened = open_policy(policy)
        closing.push_async_callback(opened.close)
        provider: SandboxProvider | None = None
        try:
            provider = open_provider(sandbox)
            closing.push_async_callback(provider.close)
        except PrerequisiteError as error:
            if sandbox is not None:
                raise
            warn(f"going on without a sandbox: {error}")
        lineage = opened.id.lineage or opened.id.model
        return await measure(
            registry,
            items,
            agent=lambda task, _place: ConversationAgent(opened, group_id=task.digests.task),
            lineage=lineage,
            provider=provider,
            folder=folder,
            run=f"calibrate-{int(time.time())}-{uuid.uuid4().hex[:4]}",
            concurrency=concurrency,
            heard=heard,
            first_looked=lambda: give_priors(registry, lineage),
            ready=lambda: is_ready(opened),
        )


def give_priors(registry: RegistryClient, lineage: str) -> None:
    """What other policies' outcomes say of a lineage's tasks, put in force; where the database is not at hand, nothing.

    A lineage's first look at a campaign's tasks tells its ability well enough for that.
    """
    if isinstance(registry, LocalRegistry):
        with registry.database.writing() as session:
            refit(session, lineage=lineage)


def is_ready(policy: Policy) -> bool:
    """Whether a policy can answer; one that starts its engine when first asked says so by ``ready``."""
    return bool(getattr(policy, "ready", True))
