"""Telling the registry: in batches, again after a failure, never lost, and never without a word refused."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from envsdk.errors import StoreError
from tests.fakes.episodes import make_draw, make_record, scored
from trainer.group import Member
from trainer.uploader import Uploader


def record(index: int):
    return make_record(Member(make_draw(), index, 0), scored(1.0))


@dataclass(frozen=True)
class Refusal:
    which: str
    code: str
    why: str


@dataclass(frozen=True)
class Answer:
    duplicate: int = 0
    rejected: tuple[Refusal, ...] = ()


@dataclass
class Registry:
    """Keeps what it is sent, each id once; ``refuses`` names places that it does not take."""

    refuses: frozenset[int] = frozenset()
    ids: dict[str, int] = field(default_factory=dict)
    batches: list[list[int]] = field(default_factory=list)

    def send(self, batch) -> Answer:
        self.batches.append([item.index_in_group for item in batch])
        refused = [item for item in batch if item.index_in_group in self.refuses]
        taken = [item for item in batch if item not in refused]
        known = sum(item.episode_id in self.ids for item in taken)
        self.ids |= {item.episode_id: item.index_in_group for item in taken}
        return Answer(known, tuple(Refusal(item.episode_id, "unknown_digest", "push it first") for item in refused))


class Cut(Registry):
    """Takes the first batch and breaks before it answers."""

    error: Exception = StoreError("database is locked")

    def send(self, batch) -> Answer:
        answer = super().send(batch)
        if len(self.batches) == 1:
            raise self.error
        return answer


async def test_records_are_sent_once_in_order() -> None:
    registry = Registry()
    uploader = Uploader(registry.send)
    for index in range(3):
        uploader.add(record(index))
    await uploader.flush()
    await uploader.flush()
    assert registry.batches == [[0, 1, 2]]
    assert (uploader.sent, uploader.waiting) == (3, 0)


async def test_many_records_go_in_batches() -> None:
    registry = Registry()
    uploader = Uploader(registry.send)
    for index in range(1_200):
        uploader.add(record(index))
    await uploader.flush()
    assert [len(batch) for batch in registry.batches] == [500, 500, 200]
    assert list(registry.ids.values()) == list(range(1_200))


async def test_what_a_failed_send_held_is_sent_with_the_next_one() -> None:
    registry, warned = Cut(), []
    uploader = Uploader(registry.send, warn=warned.append)
    uploader.add(record(0))
    await uploader.flush()
    assert uploader.waiting == 1
    uploader.add(record(1))
    await uploader.flush()
    assert registry.batches == [[0], [0, 1]]
    assert ["database is locked" in line for line in warned] == [True]  # and no word of what arrived before the break


async def test_an_error_that_nobody_foresaw_is_said_and_ends_no_upload() -> None:
    registry, warned = Cut(), []
    registry.error = KeyError("lineage")
    uploader = Uploader(registry.send, warn=warned.append, pause_s=0.0)
    serving = asyncio.create_task(uploader.serve())
    uploader.add(record(0))
    while uploader.waiting:  # noqa: ASYNC110 - the sender is a thread
        await asyncio.sleep(0.001)
    assert not serving.done()
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    assert "KeyError: 'lineage'" in warned[0]


async def test_what_the_registry_refuses_is_said_with_its_reason() -> None:
    warned: list[str] = []
    uploader = Uploader(Registry(refuses=frozenset({1})).send, warn=warned.append)
    for index in range(2):
        uploader.add(record(index))
    await uploader.flush()
    assert ["1 of 2" in line and "unknown_digest" in line and "push it first" in line for line in warned] == [True]
    assert uploader.waiting == 0


async def test_an_episode_that_was_there_although_it_was_never_sent_is_said() -> None:
    registry, warned = Registry(), []
    for _run in range(2):
        uploader = Uploader(registry.send, warn=warned.append)
        uploader.add(record(0))
        await uploader.flush()
    assert ["1 of 1" in line and "never sent" in line for line in warned] == [True]


async def test_what_a_killed_process_had_left_is_sent_and_what_it_had_sent_is_not_wondered_at() -> None:
    registry, warned = Registry(), []
    first = Uploader(registry.send, warn=warned.append)
    first.add(record(0))
    await first.flush()
    resumed = Uploader(registry.send, warn=warned.append)
    resumed.add_again([record(0), record(1)])
    await resumed.flush()
    assert list(registry.ids.values()) == [0, 1]
    assert warned == []


async def test_a_record_added_while_a_batch_is_sent_waits_for_the_next() -> None:
    class Busy(Registry):
        def send(self, batch) -> Answer:
            if not self.batches:
                uploader.add(record(9))
            return super().send(batch)

    registry = Busy()
    uploader = Uploader(registry.send)
    uploader.add(record(0))
    await uploader.flush()
    await uploader.flush()
    assert registry.batches == [[0], [9]]


async def test_serving_sends_until_cancelled() -> None:
    registry = Registry()
    uploader = Uploader(registry.send, pause_s=0.0)
    task = asyncio.create_task(uploader.serve())
    uploader.add(record(0))
    while not registry.batches:  # noqa: ASYNC110 - the sender is a thread
        await asyncio.sleep(0.001)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert len(registry.ids) == 1
