"""The learner's thread: one thing at a time, in order, counted as busy, and nothing left behind."""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.fakes.learner import FakeLearner
from trainer import checkpoint
from trainer.activity import Activity
from trainer.engines.weight_file import WeightReader
from trainer.learner_thread import LOOP_STATE, LearnerThread
from trainer.model_folder import origin
from trainer.recovery import LoopState, beginning


@pytest.fixture
async def thread(tmp_path: Path):
    made = LearnerThread(Activity(), folder=tmp_path)
    await made.start(FakeLearner)
    yield made
    made.close()


async def test_everything_runs_in_one_thread_that_is_not_the_loops(thread: LearnerThread) -> None:
    seen = await asyncio.gather(*(thread._run(threading.get_ident) for _ in range(5)))
    assert len(set(seen)) == 1
    assert threading.get_ident() not in seen


async def test_calls_run_in_the_order_they_were_made(thread: LearnerThread) -> None:
    order: list[int] = []
    await asyncio.gather(*(thread._run(lambda n=n: order.append(n)) for n in range(20)))
    assert order == list(range(20))


async def test_a_step_is_the_learners_busy_time_even_when_it_fails(tmp_path: Path) -> None:
    class Clock:
        now = 0.0

        def __call__(self) -> float:
            return self.now

    class Failing(FakeLearner):
        def step(self, batch):
            clock.now += 3.0
            raise ArithmeticError

    clock = Clock()
    activity = Activity(now=clock)
    made = LearnerThread(activity, folder=tmp_path)
    await made.start(Failing)
    with pytest.raises(ArithmeticError):
        await made.step([])
    clock.now += 5.0
    assert activity.totals.learner_busy_s == 3.0
    made.close()


async def test_weights_are_laid_out_once_and_rewritten(thread: LearnerThread) -> None:
    first = await thread.write(1)
    reader = WeightReader(first)
    await thread.step([])
    second = await thread.write(2)
    assert first == second
    assert dict(reader.tensors(version=2))["w"].item() == 1.0


async def test_closing_removes_the_weight_file(tmp_path: Path) -> None:
    made = LearnerThread(Activity(), folder=tmp_path)
    await made.start(FakeLearner)
    path = await made.write(1)
    made.close()
    assert not path.exists()


async def test_a_checkpoint_holds_both_states_and_loads_back(thread: LearnerThread, tmp_path: Path) -> None:
    await thread.step([])
    state = beginning(version=4, sampler={"drawn": 2}).model_copy(update={"step": 7})
    await thread.save(tmp_path / "checkpoints", state)
    saved = checkpoint.newest(tmp_path / "checkpoints")
    assert LoopState.model_validate_json((saved / LOOP_STATE).read_text()) == state
    await thread.step([])
    await thread.load(saved)
    assert thread._given.updates == 1


async def test_an_export_is_a_model_folder(thread: LearnerThread, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "config.json").write_text("{}")
    await thread.step([])
    await thread.export(tmp_path / "out", source, lineage="x", version=5)
    assert torch.equal(load_file(tmp_path / "out" / "model.safetensors")["w"], torch.tensor([1.0]))
    assert origin(tmp_path / "out") == ("x", 5)


class FineLearner(FakeLearner):
    """Its weight needs more digits than bf16 has."""

    def named_weights(self):
        yield "w", torch.tensor([1.0 + 2**-12])


@pytest.mark.parametrize(("dtype", "exact"), [("float32", True), ("bfloat16", False)])
async def test_weights_are_written_and_exported_in_what_the_engines_serve_in(
    tmp_path: Path, dtype: str, exact: bool
) -> None:
    made = LearnerThread(Activity(), folder=tmp_path, dtype=dtype)
    await made.start(FineLearner)
    model = tmp_path / "of"
    model.mkdir()
    try:
        read = dict(WeightReader(await made.write(1)).tensors(version=1))["w"]
        await made.export(tmp_path / "out", model, lineage="l", version=1)
    finally:
        made.close()
    exported = load_file(tmp_path / "out" / "model.safetensors")["w"]
    for tensor in (read, exported):
        assert tensor.dtype == getattr(torch, dtype)
        assert (tensor.float().item() == 1.0 + 2**-12) is exact


async def test_shared_memory_without_room_is_said_and_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small, disk = tmp_path / "small", tmp_path / "disk"
    small.mkdir()
    disk.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(disk))
    honest = os.posix_fallocate

    def allocate(handle: int, start: int, size: int) -> None:
        if Path(f"/proc/self/fd/{handle}").readlink().parent == small:
            raise OSError(28, "No space left on device")
        honest(handle, start, size)

    monkeypatch.setattr(os, "posix_fallocate", allocate)
    said: list[str] = []
    made = LearnerThread(Activity(), folder=small, say=said.append)
    await made.start(FakeLearner)
    try:
        path = await made.write(3)
        assert dict(WeightReader(path).tensors(version=3))["w"].item() == 0.0
    finally:
        made.close()
    assert path.parent == disk
    assert list(small.iterdir()) == list(disk.iterdir()) == []
    assert len(said) == 1
    assert "--shm-size" in said[0]
