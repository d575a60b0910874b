"""Evaluation: what enters a rate, what does not, and what stands beside it."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter, defaultdict

from tests.fakes.episodes import ENGINE_500, make_draw, make_record, make_task, scored
from trainer.evaluate import evaluate, summarise
from trainer.group import Member


def record_of(task, episode_id: str, facts):
    made = make_record(Member(make_draw(), 0, 0), facts)
    return made.model_copy(
        update={"episode_id": episode_id, "task_digest": task.digests.task, "family": task.spec.family}
    )


async def test_every_task_gets_its_attempts_with_seeds_of_their_own() -> None:
    seen = []

    async def run(task, episode_id, seed):
        seen.append((task.slug, episode_id, seed))
        return record_of(task, episode_id, scored(1.0))

    tasks = [make_task(number) for number in range(3)]
    found = await evaluate(tasks, run, n=2)
    assert Counter(slug for slug, _, _ in seen) == {task.slug: 2 for task in tasks}
    assert len({episode_id for _, episode_id, _ in seen}) == len({seed for _, _, seed in seen}) == 6
    assert (found.overall.rate, found.overall.n, found.overall.clusters, found.coverage) == (1.0, 6, 3, 1.0)


async def test_what_the_machinery_spoiled_is_tried_again_and_then_left_out_of_the_rate() -> None:
    tries = Counter()
    seeds = {}

    async def run(task, episode_id, seed):
        place = int(episode_id.split("-")[-1].split(".")[0])
        tries[place] += 1
        assert seeds.setdefault(place, seed) == seed
        broken = place == 0 or (place == 1 and tries[place] == 1)
        return record_of(task, episode_id, ENGINE_500 if broken else scored(1.0))

    found = await evaluate([make_task()], run, n=4)
    assert tries == {0: 3, 1: 2, 2: 1, 3: 1}
    assert (found.overall.rate, found.overall.n, found.coverage) == (1.0, 3, 0.75)


async def test_a_cancelled_evaluation_ends_its_episodes_and_begins_none_again() -> None:
    begun: list[str] = []
    ended = []

    async def run(task, episode_id, seed):
        """Ends as episodes do: a cancel makes a record."""
        begun.append(episode_id)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            asyncio.current_task().uncancel()
        return record_of(task, episode_id, {"phase": "agent", "ended_by": "cancel"})

    work = asyncio.create_task(evaluate([make_task()], run, n=3, concurrency=2, on_end=ended.append))
    while len(begun) < 2:  # noqa: ASYNC110 - begun by tasks that know of no event
        await asyncio.sleep(0)
    work.cancel()
    await asyncio.wait([work], timeout=10)
    assert work.cancelled()
    assert [record.episode_id for record in ended] == begun
    assert len(begun) == 2


async def test_no_two_evaluations_name_an_episode_alike() -> None:
    async def run(task, episode_id, seed):
        return record_of(task, episode_id, scored(1.0))

    both = [await evaluate([make_task()], run, n=2) for _ in range(2)]
    assert len({record.episode_id for found in both for record in found.records}) == 4


async def test_seeds_of_two_episodes_lie_further_apart_than_an_episode_has_turns() -> None:
    seeds = []

    async def run(task, episode_id, seed):
        seeds.append(seed)
        return record_of(task, episode_id, scored(1.0))

    for seed in range(2):
        await evaluate([make_task(number) for number in range(50)], run, n=8, seed=seed)
    ordered = sorted(seeds)
    assert min(later - earlier for earlier, later in itertools.pairwise(ordered)) > 1_000


async def test_a_tasks_seeds_do_not_depend_on_the_tasks_beside_it() -> None:
    seen = defaultdict(set)

    async def run(task, episode_id, seed):
        seen[task.slug].add(seed)
        return record_of(task, episode_id, scored(1.0))

    for tasks in ([make_task(1)], [make_task(0), make_task(1)]):
        await evaluate(tasks, run, n=3)
    assert len(seen["task-1"]) == 3


async def test_no_more_run_at_once_than_allowed() -> None:
    running = most = 0

    async def run(task, episode_id, seed):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return record_of(task, episode_id, scored(0.0))

    await evaluate([make_task(number) for number in range(5)], run, n=3, concurrency=4)
    assert most == 4


def test_nothing_scored_is_no_rate_and_no_coverage() -> None:
    found = summarise([record_of(make_task(), "a", ENGINE_500)])
    assert found.overall.rate is None
    assert found.coverage == 0.0


def test_families_are_told_apart() -> None:
    tasks = [make_task(number) for number in range(2)]
    records = [record_of(tasks[0], "a", scored(1.0)), record_of(tasks[1], "b", scored(0.0))]
    records[1] = records[1].model_copy(update={"family": "other"})
    found = summarise(records)
    assert {name: interval.rate for name, interval in found.families.items()} == {"fake": 1.0, "other": 0.0}
