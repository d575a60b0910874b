"""A run that its disk cannot hold is refused before an engine starts, by a figure that is what the files take."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from envsdk.errors import PrerequisiteError
from tests.fakes.episode_records import make_record, tiny_llama
from tests.fakes.models import write_model
from trainer import checkpoint
from trainer.batch import build_batch
from trainer.config import TrainConfig
from trainer.disk_room import needed_bytes, require_room, weight_count
from trainer.learner import Learner
from trainer.learner_config import LearnerConfig
from trainer.tensor_file import save_tensors

WEIGHTS = 1000
ONE, MODEL = 12 * WEIGHTS, 2 * WEIGHTS
SetFree = Callable[[int], None]


@pytest.fixture
def model_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    write_model(folder)
    save_tensors({"w": torch.zeros(10, 100)}, folder / "model.safetensors")
    return folder


@pytest.fixture
def set_free(monkeypatch: pytest.MonkeyPatch) -> SetFree:
    """Tell the disk that so many bytes of it are free."""

    def free(count: int) -> None:
        usage = SimpleNamespace(free=count)
        monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage)

    return free


def config(*, steps: int = 40, every: int = 10) -> TrainConfig:
    return TrainConfig(query="q", steps=steps, checkpoint_every=every)


def keep(run: Path, step: int, size: int = ONE) -> None:
    checkpoint.save(run / "checkpoints", step, lambda folder: (folder / "state").write_bytes(bytes(size)) and None)


def test_a_disk_with_just_enough_room_is_taken_and_one_byte_less_refused(
    tmp_path: Path, model_dir: Path, set_free: SetFree
) -> None:
    set_free(3 * ONE)
    require_room(tmp_path / "run", config(), model_dir)
    set_free(3 * ONE - 1)
    with pytest.raises(PrerequisiteError) as caught:
        require_room(tmp_path / "run", config(), model_dir)
    assert (caught.value.code, caught.value.where) == ("disk_too_small", str(tmp_path / "run"))


@pytest.mark.parametrize(
    ("steps", "every", "needed"),
    [(40, 10, 3 * ONE), (21, 10, 3 * ONE), (20, 10, 2 * ONE + MODEL), (5, 10, ONE + MODEL), (1, 1, ONE + MODEL)],
)
def test_as_many_checkpoints_are_counted_as_lie_there_at_once(
    tmp_path: Path, model_dir: Path, steps: int, every: int, needed: int
) -> None:
    assert needed_bytes(tmp_path, config(steps=steps, every=every), model_dir) == needed


def test_a_resumed_run_needs_no_room_for_what_it_has(tmp_path: Path, model_dir: Path) -> None:
    for step in (10, 20):
        keep(tmp_path, step)
    has_two = needed_bytes(tmp_path, config(), model_dir)
    assert ONE - 1000 < has_two <= ONE  # the marker and its listing are there beside the states


def test_what_a_kill_left_half_written_will_be_gone(tmp_path: Path, model_dir: Path) -> None:
    growing = tmp_path / "checkpoints" / ".growing-step-000010"
    growing.mkdir(parents=True)
    (growing / "state").write_bytes(bytes(ONE))
    assert needed_bytes(tmp_path, config(), model_dir) == 2 * ONE


def test_the_refusal_names_the_setting_that_would_fit(tmp_path: Path, model_dir: Path, set_free: SetFree) -> None:
    set_free(ONE + MODEL)
    with pytest.raises(PrerequisiteError, match="--set checkpoint_every=40"):
        require_room(tmp_path, config(), model_dir)
    set_free(ONE + MODEL - 1)
    with pytest.raises(PrerequisiteError) as caught:
        require_room(tmp_path, config(), model_dir)
    assert "checkpoint_every" not in caught.value.hint


def test_tied_words_and_weights_that_lie_there_twice_count_once(tmp_path: Path) -> None:
    write_model(tmp_path)
    both = {"lm_head.weight": torch.zeros(7), "embed": torch.zeros(7)}
    save_tensors(both, tmp_path / "model.safetensors")
    save_tensors(both, tmp_path / "consolidated.safetensors")
    assert weight_count(tmp_path) == 14
    (tmp_path / "config.json").write_text(json.dumps({"tie_word_embeddings": True}))
    assert weight_count(tmp_path) == 7


def test_a_model_in_parts_is_counted_by_its_index(tmp_path: Path) -> None:
    write_model(tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / "model-00001-of-00002.safetensors")
    save_tensors({"v": torch.zeros(2, 3)}, tmp_path / "model-00002-of-00002.safetensors")
    parts = {"w": "model-00001-of-00002.safetensors", "v": "model-00002-of-00002.safetensors"}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": parts}))
    assert weight_count(tmp_path) == 4 + 6


def test_a_model_in_another_format_is_never_counted_too_high(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").write_bytes(bytes(4000))
    assert weight_count(tmp_path) == 1000


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_real_checkpoint_takes_what_was_counted(tmp_path: Path, precision: str) -> None:
    model = tiny_llama()
    learner = Learner(None, LearnerConfig.model_validate({"precision": precision}), model=model)
    records = [make_record(reward=float(i), own=[10 + i, 20], group="g", index=i) for i in range(2)]
    learner.step(learner.pack(build_batch([records], trainer_version=0)))
    assert learner.updates == 1
    learner.save(tmp_path)
    count = sum(weight.numel() for weight in model.parameters())
    taken = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert 12 * count <= taken < 12 * count + 50_000
