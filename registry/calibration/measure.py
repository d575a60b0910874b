"""Measure tasks with real episodes: four at a time until one class is certain, at most 32 (`saturation.screening`).

Every look is appended to the registry before the next is taken, and what ended of a look that is cancelled, too:
running the same again goes on from there. Episodes that were not graded enter nothing; a task that gets no grade in
two looks running is given up, with the verdict ``uncertain``, and so are all where the first 32 episodes get none: then
it is the machinery that fails, not the tasks.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from envsdk.episode.agents import Agent
from envsdk.episode.group import run_group
from envsdk.episode.record import EpisodeRecord
from envsdk.sandboxes.base import SandboxProvider
from envsdk.spec.load import load_task
from envsdk.spec.model import Task
from registry.client import RegistryClient
from registry.estimates import Posterior
from registry.query.page import QueryItem
from registry.saturation.posterior import Beta, regions
from registry.saturation.screening import AT_MOST, STEP, Verdict, certain_class

_EMPTY_LOOKS = 2
_HOPELESS = 32
_TELLING_S = 5.0
_PAGE = 200


class Measurable(Protocol):
    """What names a task in the registry: an item of a query or of a set."""

    @property
    def slug(self) -> str: ...
    @property
    def task_digest(self) -> str: ...
    @property
    def verifier_digest(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Measured:
    """What measuring one task came to; ``n`` graded and ``ungraded`` episodes were spent on it now."""

    slug: str
    task_digest: str
    verifier_digest: str
    verdict: Verdict
    mean: float
    low: float
    high: float
    n: int
    ungraded: int


@dataclass(frozen=True, slots=True)
class Progress:
    """``eta_s`` takes the tasks to come to need as long as those that are done did since the first look was over.

    `None` until there is something to go by: an engine that starts for a minute says nothing about tasks.
    """

    done: int
    tasks: int
    episodes: int
    elapsed_s: float
    eta_s: float | None


@dataclass(slots=True)
class Campaign:
    """One run of measuring, as it goes: what was spent, and what a fixed 32 episodes a task would have taken more.

    ``why_ungraded`` says of the newest episode without a grade what ended it.
    """

    tasks: int
    started: float = field(default_factory=time.monotonic)
    measured: list[Measured] = field(default_factory=list)
    episodes: int = 0
    generated_tokens: int = 0
    ungraded: int = 0
    why_ungraded: str = ""
    first_look: float | None = None

    @property
    def hopeless(self) -> bool:
        """So many episodes without a single grade that more would get none either."""
        return self.episodes >= _HOPELESS and self.ungraded == self.episodes

    @property
    def fixed(self) -> int:
        """Episodes that a fixed number a task would have taken for the tasks that are done."""
        return AT_MOST * len(self.measured)

    def progress(self) -> Progress:
        """Where it stands."""
        now = time.monotonic()
        done = len(self.measured)
        since = 0.0 if self.first_look is None else now - self.first_look
        eta_s = since / done * (self.tasks - done) if done and since >= _TELLING_S else None
        return Progress(done, self.tasks, self.episodes, now - self.started, eta_s)


def candidates(registry: RegistryClient, q: str) -> tuple[list[QueryItem], list[QueryItem]]:
    """What a query finds, split into tasks to measure and those left out: drafts and broken ones teach nothing."""
    found: list[QueryItem] = []
    cursor = None
    while True:
        page = registry.query(q, limit=_PAGE, cursor=cursor)
        found += page.items
        cursor = page.next
        if cursor is None:
            break
    good = [item for item in found if item.verified == "checked" and not item.broken]
    return good, [item for item in found if item.verified != "checked" or item.broken]


async def measure(
    registry: RegistryClient,
    items: Sequence[Measurable],
    *,
    agent: Callable[[Task, int], Agent],
    lineage: str,
    provider: SandboxProvider | None,
    folder: Path,
    run: str,
    concurrency: int = 32,
    heard: Callable[[Campaign], None] = lambda _: None,
) -> Campaign:
    """Screen ``items``; cancelling it keeps what was appended.

    Args:
        registry: where tasks come from and outcomes go.
        items: what to measure.
        agent: makes the agent of a task's episode, by its number within this run.
        lineage: whose posterior decides.
        provider: where sandboxes come from.
        folder: where task directories are written.
        run: name under which the outcomes are kept.
        concurrency: episodes at a time.
        heard: told after every look.
    """
    campaign = Campaign(tasks=len(items))
    slots = asyncio.Semaphore(max(1, concurrency // STEP))
    pairs = [(item.task_digest, item.verifier_digest) for item in items]
    known = await asyncio.to_thread(registry.posteriors, pairs, lineage=lineage)

    async def one(item: Measurable) -> None:
        async with slots:
            posterior = known[item.task_digest, item.verifier_digest]
            if _needs_a_look(posterior):
                task = await asyncio.to_thread(_fetched, registry, item, folder)
                screening = _Screening(registry, task, agent, provider, lineage, run, campaign, heard)
                measured = await screening.go(posterior)
            else:
                measured = _measured(item, posterior, 0, 0)
            campaign.measured.append(measured)
            heard(campaign)

    async with asyncio.TaskGroup() as group:
        for item in items:
            group.create_task(one(item))
    return campaign


@dataclass(frozen=True, slots=True)
class _Screening:
    registry: RegistryClient
    task: Task
    agent: Callable[[Task, int], Agent]
    provider: SandboxProvider | None
    lineage: str
    run: str
    campaign: Campaign
    heard: Callable[[Campaign], None]

    async def go(self, posterior: Posterior) -> Measured:
        n = ungraded = empty = 0
        while n < AT_MOST and empty < _EMPTY_LOOKS and not self.campaign.hopeless and _needs_a_look(posterior):
            first = n + ungraded
            records = await self._look(first, STEP - n % STEP)
            posterior = await self._append(records)
            graded = sum(record.outcome.graded for record in records)
            n, ungraded = n + graded, ungraded + len(records) - graded
            empty = 0 if graded else empty + 1
            self.heard(self.campaign)
        return _measured(self.task, posterior, n, ungraded)

    async def _look(self, first: int, size: int) -> list[EpisodeRecord]:
        ended: list[EpisodeRecord] = []

        def next_agent(place: int) -> Agent:
            return self.agent(self.task, first + place)

        try:
            return await run_group(self.task, next_agent, self.provider, size, on_record=ended.append)
        except asyncio.CancelledError:
            self.registry.append(ended, run=self.run)  # in this thread: nothing may be awaited any more
            raise

    async def _append(self, records: Sequence[EpisodeRecord]) -> Posterior:
        pair = (self.task.digests.task, self.task.digests.verifier)
        await asyncio.to_thread(self.registry.append, records, run=self.run)
        lost = [record for record in records if not record.outcome.graded]
        if self.campaign.first_look is None:
            self.campaign.first_look = time.monotonic()
        self.campaign.episodes += len(records)
        self.campaign.ungraded += len(lost)
        if lost:
            self.campaign.why_ungraded = _why(lost[-1])
        self.campaign.generated_tokens += sum(turn.generated_tokens for record in records for turn in record.turns)
        found = await asyncio.to_thread(self.registry.posteriors, [pair], lineage=self.lineage)
        return found[pair]


def _why(record: EpisodeRecord) -> str:
    note = record.facts.get("exception", {}).get("note") or record.evidence.message
    return f"{record.outcome.cause}: {note}" if note else record.outcome.cause


def _needs_a_look(posterior: Posterior) -> bool:
    """Whether nothing is certain yet: a prior alone, however certain, calls no task anything."""
    return posterior.n < STEP or _verdict(posterior) == "uncertain"


def _verdict(posterior: Posterior) -> Verdict:
    return certain_class(regions(Beta(posterior.alpha, posterior.beta)))


def _measured(of: Measurable | Task, posterior: Posterior, n: int, ungraded: int) -> Measured:
    digests = (of.digests.task, of.digests.verifier) if isinstance(of, Task) else (of.task_digest, of.verifier_digest)
    return Measured(
        of.slug,
        *digests,
        verdict=_verdict(posterior),
        mean=posterior.mean,
        low=posterior.low,
        high=posterior.high,
        n=n,
        ungraded=ungraded,
    )


def _fetched(registry: RegistryClient, item: Measurable, folder: Path) -> Task:
    place = folder / f"{item.task_digest[:16]}-{item.verifier_digest[:8]}"
    return load_task(place) if place.is_dir() else registry.fetch(item.task_digest, item.verifier_digest, place)
