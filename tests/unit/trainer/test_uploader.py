"""Telling the registry: in batches, again after a failure, never lost."""

from __future__ import annotations

import asyncio

from envsdk.errors import StoreError
from tests.fakes.episodes import make_draw, make_record, scored
from trainer.group import Member
from trainer.uploader import Uploader


def record(index: int):
    return make_record(Member(make_draw(), index, 0), scored(1.0))


async def test_records_are_sent_once_in_order() -> None:
    sent = []
    uploader = Uploader(sent.extend)
    for index in range(3):
        uploader.add(record(index))
    await uploader.flush()
    await uploader.flush()
    assert [item.index_in_group for item in sent] == [0, 1, 2]
    assert (uploader.sent, uploader.waiting) == (3, 0)


async def test_what_a_failed_send_held_is_sent_with_the_next_one() -> None:
    sent, warned = [], []

    def send(batch):
        if not warned:
            raise StoreError("database is locked")
        sent.extend(batch)

    uploader = Uploader(send, warn=warned.append)
    uploader.add(record(0))
    await uploader.flush()
    uploader.add(record(1))
    await uploader.flush()
    assert [item.index_in_group for item in sent] == [0, 1]
    assert "database is locked" in warned[0]


async def test_a_record_added_while_a_batch_is_sent_waits_for_the_next() -> None:
    sent = []

    def send(batch):
        if not sent:
            uploader.add(record(9))
        sent.append([item.index_in_group for item in batch])

    uploader = Uploader(send)
    uploader.add(record(0))
    await uploader.flush()
    await uploader.flush()
    assert sent == [[0], [9]]


async def test_serving_sends_until_cancelled() -> None:
    sent = []
    uploader = Uploader(sent.extend, pause_s=0.0)
    task = asyncio.create_task(uploader.serve())
    uploader.add(record(0))
    while not sent:  # noqa: ASYNC110 - the sender is a thread
        await asyncio.sleep(0.001)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert len(sent) == 1
