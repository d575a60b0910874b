"""Checkpoints are whole or absent, and a learner resumed from one goes on bit for bit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
import torch

from envsdk.errors import StoreError
from tests.fakes.episode_records import make_record, tiny_llama, updated
from trainer import checkpoint
from trainer.batch import build_batch
from trainer.learner import Learner
from trainer.learner_config import LearnerConfig

STEPS = 6


def write_some(folder: Path) -> None:
    (folder / "weights.bin").write_bytes(b"weights")
    (folder / "inner").mkdir()
    (folder / "inner" / "state.json").write_text("{}")


def recorded(step: int) -> list[list]:
    """The episodes of one step, as a ledger would replay them."""
    return [
        [
            make_record(reward=float((i + step) % 2), own=[10 + i + step, 20 + step], group=f"{step}", index=i)
            for i in range(4)
        ]
    ]


def make_learner(precision: str) -> Learner:
    config = LearnerConfig.model_validate(
        {
            "precision": precision,
            "lr": 1e-2,
            "warmup_steps": 2,
            "deterministic": True,
            "threads": 1,
            "weight_decay": 0.1,
        }
    )
    return Learner(None, config, model=tiny_llama())


def train(root: Path, precision: str, *, die_at: int | None = None) -> Learner:
    """Train on recorded episodes from the newest checkpoint on, saving after every second step."""
    learner = make_learner(precision)
    start = checkpoint.newest(root)
    if start is not None:
        learner.load(start)
    for step in range(learner.updates, STEPS):
        if step == die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        updated(learner, build_batch(recorded(step), trainer_version=step))
        if step % 2:
            checkpoint.save(root, step + 1, learner.save)
    return learner


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_killed_and_resumed_equals_never_killed_bit_for_bit(tmp_path: Path, precision: str) -> None:
    program = (
        "import sys; from pathlib import Path; from tests.unit.trainer.test_checkpoint import train; "
        "train(Path(sys.argv[1]), sys.argv[2], die_at=5)"
    )
    root = Path(__file__).parents[3]
    killed = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "killed"), precision],
        env={**os.environ, "PYTHONPATH": str(root)},
        cwd=root,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    assert checkpoint.step_of(checkpoint.newest(tmp_path / "killed") or Path()) == 4
    resumed = train(tmp_path / "killed", precision)
    whole = train(tmp_path / "whole", precision)
    for name, weight in whole.weights.masters.items():
        assert torch.equal(resumed.weights.masters[name], weight), name
        for moment in ("exp_avg", "exp_avg_sq", "step"):
            ours = resumed.optimizer.state[resumed.weights.masters[name]][moment]
            assert torch.equal(ours, whole.optimizer.state[weight][moment]), (name, moment)
    for (name, ours), (_, theirs) in zip(resumed.named_weights(), whole.named_weights(), strict=True):
        assert torch.equal(ours, theirs), name


def test_a_resumed_learner_makes_the_very_next_update(tmp_path: Path) -> None:
    first = make_learner("bf16")
    updated(first, build_batch(recorded(0), trainer_version=0))
    saved = checkpoint.save(tmp_path, 1, first.save)
    second = make_learner("bf16")
    second.load(saved)
    batch = build_batch(recorded(1), trainer_version=1)
    ours, theirs = dict(updated(second, batch)), dict(updated(first, batch))
    assert {k: v for k, v in ours.items() if not k.endswith("_s")} == {
        k: v for k, v in theirs.items() if not k.endswith("_s")
    }


def test_a_checkpoint_of_another_model_is_refused_by_code(tmp_path: Path) -> None:
    saved = checkpoint.save(tmp_path, 1, make_learner("fp32").save)
    other = Learner(None, LearnerConfig(precision="fp32"), model=tiny_llama(hidden_size=24))
    with pytest.raises(StoreError) as caught:
        other.load(saved)
    assert caught.value.code == "wrong_checkpoint"


def test_no_pickle_is_written(tmp_path: Path) -> None:
    saved = checkpoint.save(tmp_path, 1, make_learner("fp32").save)
    assert {path.suffix for path in saved.rglob("*") if path.is_file()} == {".safetensors", ".json"}


def test_the_newest_whole_checkpoint_is_found(tmp_path: Path) -> None:
    for step in (1, 12):
        checkpoint.save(tmp_path, step, write_some)
    assert checkpoint.newest(tmp_path) == tmp_path / "step-000012"
    assert checkpoint.step_of(tmp_path / "step-000012") == 12


def test_only_the_newest_stay(tmp_path: Path) -> None:
    for step in range(1, 6):
        checkpoint.save(tmp_path, step, write_some, keep=2)
    assert [path.name for path in checkpoint.complete(tmp_path)] == ["step-000004", "step-000005"]


def test_half_written_folders_are_ignored_and_removed_by_the_next_save(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, 1, write_some)
    for left in (tmp_path / ".growing-step-000002", tmp_path / "step-000003"):
        left.mkdir()
        (left / "weights.bin").write_bytes(b"half")
    assert checkpoint.newest(tmp_path) == tmp_path / "step-000001"
    checkpoint.save(tmp_path, 4, write_some)
    assert not (tmp_path / ".growing-step-000002").exists()


@pytest.mark.parametrize("damage", ["lost", "short", "changed", "marker", "odd marker"])
def test_a_damaged_checkpoint_is_passed_over_for_the_one_before_and_that_is_said(tmp_path: Path, damage: str) -> None:
    checkpoint.save(tmp_path, 1, write_some)
    newer = checkpoint.save(tmp_path, 2, write_some)
    spoil(newer, damage)
    said: list[str] = []
    assert checkpoint.newest(tmp_path, say=said.append) == tmp_path / "step-000001"
    assert len(said) == 1
    assert "step-000002 is damaged" in said[0]


def test_where_every_checkpoint_is_damaged_training_does_not_begin_again_in_silence(tmp_path: Path) -> None:
    for step, damage in ((1, "short"), (2, "changed")):
        spoil(checkpoint.save(tmp_path, step, write_some), damage)
    with pytest.raises(StoreError) as caught:
        checkpoint.newest(tmp_path)
    assert caught.value.code == "no_whole_checkpoint"
    assert "step-000001" in caught.value.message
    assert "step-000002" in caught.value.message


def spoil(newer: Path, damage: str) -> None:
    match damage:
        case "lost":
            (newer / "inner" / "state.json").unlink()
        case "short":
            (newer / "weights.bin").write_bytes(b"wei")
        case "changed":
            (newer / "weights.bin").write_bytes(b"Weights")
        case "marker":
            (newer / checkpoint.DONE).write_text("{")
        case "odd marker":
            (newer / checkpoint.DONE).write_text("[]")


def test_the_first_write_that_fails_does_not_speak_of_one_before_it(tmp_path: Path) -> None:
    def full_disk(_folder: Path) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(StoreError) as caught:
        checkpoint.save(tmp_path, 2, full_disk)
    assert "there is none before it" in caught.value.hint


def test_a_write_that_fails_leaves_the_checkpoint_before_it(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, 1, write_some)

    def full_disk(folder: Path) -> None:
        write_some(folder)
        raise OSError(28, "No space left on device")

    with pytest.raises(StoreError) as caught:
        checkpoint.save(tmp_path, 2, full_disk)
    assert caught.value.code == "checkpoint_failed"
    assert "step-000001 is whole" in caught.value.hint
    assert [path.name for path in tmp_path.iterdir()] == ["step-000001"]


def test_saving_a_step_again_replaces_it(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, 1, write_some)
    checkpoint.save(tmp_path, 1, lambda folder: (folder / "other").write_text("x") and None)
    assert sorted(path.name for path in (tmp_path / "step-000001").iterdir()) == ["done.json", "other"]


def test_the_marker_lists_every_file_with_its_size_and_checksum(tmp_path: Path) -> None:
    done = json.loads((checkpoint.save(tmp_path, 3, write_some) / checkpoint.DONE).read_text())
    files = {"inner/state.json": b"{}", "weights.bin": b"weights"}
    facts = {name: {"bytes": len(data), "crc32": zlib.crc32(data)} for name, data in files.items()}
    assert done == {"step": 3, "files": facts}


def test_a_checkpoint_of_before_checksums_is_still_one(tmp_path: Path) -> None:
    saved = checkpoint.save(tmp_path, 3, write_some)
    (saved / checkpoint.DONE).write_text(json.dumps({"step": 3, "files": {"inner/state.json": 2, "weights.bin": 7}}))
    assert checkpoint.newest(tmp_path) == saved
    (saved / "weights.bin").write_bytes(b"wei")
    assert "weights.bin" in checkpoint.damage(saved)


def test_there_is_nothing_newest_where_there_is_no_folder(tmp_path: Path) -> None:
    assert checkpoint.newest(tmp_path / "missing") is None
