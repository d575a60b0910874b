"""Fake tasks, records and episodes for tests of the scheduler: no sandbox, no engine, every end under control."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from envsdk.episode.record import EpisodeRecord, PhaseTimes, PolicyId, TokenTrace, VersionSpan
from envsdk.outcome import classify
from envsdk.spec.model import Digests, Task, TaskSpec
from trainer.group import CompleteGroup, Draw, EndedMember, Member

FAKE_POLICY = PolicyId(model="fake")
FINISHED = {"phase": "verify", "ended_by": "final_answer", "sandbox": {"alive": True}}
ENGINE_500 = {
    "phase": "agent",
    "ended_by": "inference_reply",
    "inference": {"status": 500, "code": "internal", "attempts": 4, "replica_healthy": False},
}


def make_task(number: int = 0) -> Task:
    digest = f"{number:064x}"
    spec = TaskSpec(slug=f"task-{number}", instruction="do it", family="fake")
    return Task(spec=spec, digests=Digests(task=digest, verifier=digest, package=digest), root=Path("/nowhere"))


def scored(reward: float) -> dict:
    return {**FINISHED, "verifier": {"status": "scored", "reward": reward}}


def make_record(
    member: Member,
    facts: dict,
    *,
    version: int = 0,
    stamps: dict[str, float] | None = None,
    times: PhaseTimes | None = None,
) -> EpisodeRecord:
    outcome = classify(facts)
    tokens = TokenTrace(
        ids=(1, 2, 3, 4),
        loss_mask=(0, 0, 1, 1),
        logprobs=(0.0, 0.0, -0.5, -0.25),
        versions=(VersionSpan(version=version, start=2, end=4),),
        prompt_len=2,
    )
    return EpisodeRecord(
        episode_id=member.episode_id,
        slug=member.draw.task.slug,
        task_digest=member.draw.task.digests.task,
        verifier_digest=member.draw.task.digests.verifier,
        family="fake",
        group_id=member.draw.group_id,
        index_in_group=member.index,
        attempt=member.attempt,
        policy=FAKE_POLICY,
        weight_version_oldest=version,
        weight_version_newest=version,
        outcome=outcome,
        facts=facts,
        tokens=tokens,
        stamps=stamps or {},
        times=times or PhaseTimes(),
    )


def make_draw(order: int = 0, *, size: int = 2, version: int = 0, at: float = 0.0) -> Draw:
    return Draw(f"g{order:06d}", order, make_task(order), size, version, at)


def make_group(
    order: int = 0,
    rewards: tuple[float, ...] = (1.0, 0.0),
    *,
    version: int = 0,
    dispatched_at: float = 0.0,
    completed_at: float = 1.0,
    completion_order: int | None = None,
) -> CompleteGroup:
    draw = make_draw(order, size=len(rewards), version=version, at=dispatched_at)
    members = tuple(
        EndedMember(make_record(Member(draw, index, 0), scored(reward), version=version), dispatched_at, completed_at)
        for index, reward in enumerate(rewards)
    )
    return CompleteGroup(draw, members, completed_at, order if completion_order is None else completion_order)


class FakeEpisodes:
    """Runs members: ``facts`` says how each ends; ``steps`` how often it yields before, ``verifying`` while verified."""

    def __init__(
        self,
        facts: Callable[[Member], dict] = lambda member: scored(float(member.index % 2)),
        *,
        steps: Callable[[Member], int] = lambda _member: 1,
        verifying: Callable[[Member], int] = lambda _member: 0,
        version: Callable[[], int] = lambda: 0,
    ) -> None:
        self.facts = facts
        self.steps = steps
        self.verifying = verifying
        self.version = version
        self.started: list[Member] = []
        self.acting: list[Member] = []
        self.verified: list[Member] = []
        self.most_acting = self.most_verified = self.most_alive = self.alive = 0

    async def run(self, member: Member, grading: AbstractAsyncContextManager[object]) -> EpisodeRecord:
        self.started.append(member)
        self.alive += 1
        version = self.version()
        try:
            await self._busy(self.acting, member, self.steps(member))
            async with grading:
                await self._busy(self.verified, member, self.verifying(member))
            return make_record(member, self.facts(member), version=version)
        finally:
            self.alive -= 1

    async def _busy(self, where: list[Member], member: Member, steps: int) -> None:
        where.append(member)
        self.most_acting = max(self.most_acting, len(self.acting))
        self.most_verified = max(self.most_verified, len(self.verified))
        self.most_alive = max(self.most_alive, self.alive)
        try:
            for _ in range(steps):
                await asyncio.sleep(0)
        finally:
            where.remove(member)
