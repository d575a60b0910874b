"""Measure tasks with real episodes: four of each, then four at a time where they are worth most.

After a first look at every task the looks go on in rounds: `saturation.lookahead` says which tasks are worth another,
so that all of them together take no more than 16 a task, half of a fixed 32, and none more than 32.

Every look is appended to the registry before the next round, and what ended of a look that is cancelled, too: running
the same again goes on from there. Episodes that were not graded enter nothing; a task that gets no grade in two looks
running is given up, with the verdict ``uncertain``, and so are all where the first 32 episodes get none: then it is the
machinery that fails, not the tasks.
"""

from __future__ import annotations

import asyncio
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
from registry.calibration.campaign import Campaign, Measured
from registry.client import RegistryClient
from registry.estimates import Posterior
from registry.query.page import QueryItem
from registry.saturation.lookahead import BUDGET, HORIZON, Lookahead
from registry.saturation.posterior import Beta, regions
from registry.saturation.screening import STEP, certain_class, likeliest_class

_EMPTY_LOOKS = 2
_PAGE = 200


class Measurable(Protocol):
    """What names a task in the registry: an item of a query or of a set."""

    @property
    def slug(self) -> str: ...
    @property
    def task_digest(self) -> str: ...
    @property
    def verifier_digest(self) -> str: ...


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
    first_looked: Callable[[], None] = lambda: None,
    ready: Callable[[], bool] = lambda: True,
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
        heard: told at the beginning of a round, after every look, and of each task that is done.
        first_looked: called in a thread when every task has had its first look: the registry may then give better
            priors, which decide from there on.
        ready: whether the policy can answer yet, for those who watch.
    """
    campaign = Campaign(tasks=len(items), ready=ready)
    slots = asyncio.Semaphore(max(1, concurrency // STEP))
    looks = _Looks(registry, agent, provider, run, folder, campaign, heard, slots)
    tasks = [_Screened(item) for item in items]
    pairs = [one.pair for one in tasks]

    async def read() -> None:
        known = await asyncio.to_thread(registry.posteriors, pairs, lineage=lineage)
        for one in tasks:
            one.posterior = known[one.pair]

    await read()
    # What a screening could not have counted by itself was learnt elsewhere: it has no part in the sharing.
    shared = [one for one in tasks if one.counted <= HORIZON]
    campaign.expected = max(0.0, _left(shared))
    await looks.take([one for one in tasks if one.posterior.n < STEP])
    if campaign.episodes:
        await asyncio.to_thread(first_looked)
    going = tasks
    while going:
        await read()
        chosen = await asyncio.to_thread(_chosen, going, _left(shared), campaign)
        further = set(chosen)
        campaign.measured += [one.measured() for one in going if one not in further]
        campaign.round += 1
        heard(campaign)
        await looks.take(chosen)
        going = chosen
    return campaign


def _left(shared: Sequence[_Screened]) -> float:
    """Graded episodes that the campaign may still spend."""
    return BUDGET * len(shared) - sum(one.counted for one in shared)


def _chosen(going: Sequence[_Screened], budget: float, campaign: Campaign) -> list[_Screened]:
    """The tasks that are worth another look, where all of them may take ``budget`` more graded episodes."""
    able = [] if campaign.hopeless else [one for one in going if one.empty < _EMPTY_LOOKS]
    plan = Lookahead([one.beta for one in able], [one.counted for one in able]).within(budget)
    campaign.expected = campaign.ended + float(plan.episodes.sum())
    # A prior alone, however certain, calls no task anything: what got too few grades is looked at again.
    return [one for one, look in zip(able, plan.look, strict=True) if look or one.posterior.n < STEP]


@dataclass(slots=True, eq=False)
class _Screened:
    """One task of a campaign: its posterior, and what was spent on it. ``empty``: looks running without a grade."""

    item: Measurable
    posterior: Posterior = field(init=False)
    n: int = 0
    ungraded: int = 0
    empty: int = 0

    @property
    def pair(self) -> tuple[str, str]:
        return self.item.task_digest, self.item.verifier_digest

    @property
    def beta(self) -> Beta:
        return Beta(self.posterior.alpha, self.posterior.beta)

    @property
    def counted(self) -> float:
        """Graded outcomes that the posterior rests on; what weight updates have discounted is not among them."""
        prior = self.posterior.prior_alpha + self.posterior.prior_beta
        return self.posterior.alpha + self.posterior.beta - prior

    def measured(self) -> Measured:
        found = regions(self.beta)
        likeliest, chance = likeliest_class(found)
        return Measured(
            self.item.slug,
            *self.pair,
            verdict=certain_class(found) if self.posterior.n else "uncertain",
            likeliest=likeliest,
            chance=chance,
            mean=self.posterior.mean,
            low=self.posterior.low,
            high=self.posterior.high,
            n=self.n,
            ungraded=self.ungraded,
        )


@dataclass(frozen=True, slots=True)
class _Looks:
    """Runs looks side by side and appends each as it ends."""

    registry: RegistryClient
    agent: Callable[[Task, int], Agent]
    provider: SandboxProvider | None
    run: str
    folder: Path
    campaign: Campaign
    heard: Callable[[Campaign], None]
    slots: asyncio.Semaphore

    async def take(self, tasks: Sequence[_Screened]) -> None:
        """One look at each."""
        self.campaign.looking = len(tasks)
        if tasks:
            self.heard(self.campaign)
        async with asyncio.TaskGroup() as group:
            for one in tasks:
                group.create_task(self._take(one))

    async def _take(self, one: _Screened) -> None:
        async with self.slots:
            if self.campaign.hopeless:
                return
            task = await asyncio.to_thread(_fetched, self.registry, one.item, self.folder)
            records = await self._episodes(task, one.n + one.ungraded, STEP - one.n % STEP)
            await asyncio.to_thread(self.registry.append, records, run=self.run)
            graded = sum(record.outcome.graded for record in records)
            one.n, one.ungraded = one.n + graded, one.ungraded + len(records) - graded
            one.empty = 0 if graded else one.empty + 1
            self._note(records)
            self.heard(self.campaign)

    async def _episodes(self, task: Task, first: int, size: int) -> list[EpisodeRecord]:
        ended: list[EpisodeRecord] = []

        def next_agent(place: int) -> Agent:
            return self.agent(task, first + place)

        def on_record(record: EpisodeRecord) -> None:
            ended.append(record)
            self.campaign.note_ended()

        try:
            return await run_group(task, next_agent, self.provider, size, on_record=on_record)
        except asyncio.CancelledError:
            self.registry.append(ended, run=self.run)  # in this thread: nothing may be awaited any more
            raise

    def _note(self, records: Sequence[EpisodeRecord]) -> None:
        lost = [record for record in records if not record.outcome.graded]
        self.campaign.episodes += len(records)
        self.campaign.ungraded += len(lost)
        if lost:
            self.campaign.why_ungraded = _why(lost[-1])
        self.campaign.generated_tokens += sum(turn.generated_tokens for record in records for turn in record.turns)


def _why(record: EpisodeRecord) -> str:
    note = record.facts.get("exception", {}).get("note") or record.evidence.message
    return f"{record.outcome.cause}: {note}" if note else record.outcome.cause


def _fetched(registry: RegistryClient, item: Measurable, folder: Path) -> Task:
    place = folder / f"{item.task_digest[:16]}-{item.verifier_digest[:8]}"
    return load_task(place) if place.is_dir() else registry.fetch(item.task_digest, item.verifier_digest, place)
