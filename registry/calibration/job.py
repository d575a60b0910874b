"""Calibrate the tasks of a query with a named policy, from opening it to the refit of priors."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

from envsdk.episode.conversation import ConversationAgent
from envsdk.errors import PrerequisiteError
from envsdk.policies.find import open_policy
from envsdk.sandboxes import open_provider
from envsdk.sandboxes.base import SandboxProvider
from registry.calibration.measure import Campaign, candidates, measure
from registry.client import RegistryClient


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
        heard: told after every look.
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
        return await measure(
            registry,
            items,
            agent=lambda task, _place: ConversationAgent(opened, group_id=task.digests.task),
            lineage=opened.id.lineage or opened.id.model,
            provider=provider,
            folder=folder,
            run=f"calibrate-{int(time.time())}-{uuid.uuid4().hex[:4]}",
            concurrency=concurrency,
            heard=heard,
        )
