"""The mapped weight file: values arrive, and a torn or older file is refused."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from envsdk.errors import EngineError, StoreError
from trainer.engines.weight_file import WeightFile, WeightReader, remove_abandoned


def weights(seed: int = 0) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {"a": torch.randn(3, 5, generator=generator), "b.weight": torch.randn(7, generator=generator)}


@pytest.fixture
def laid_out(tmp_path: Path):
    file = WeightFile.lay_out(weights().items(), dtype=torch.bfloat16, folder=tmp_path)
    yield file
    file.close()


def test_a_reader_gets_what_was_written_in_the_files_dtype(laid_out: WeightFile) -> None:
    laid_out.write(weights(1).items(), version=1)
    read = dict(WeightReader(laid_out.path).tensors(version=1))
    assert all(torch.equal(read[name], value.bfloat16()) for name, value in weights(1).items())


def test_a_mapping_made_once_sees_every_later_version(laid_out: WeightFile) -> None:
    reader = WeightReader(laid_out.path)
    for version in (1, 2, 3):
        laid_out.write(weights(version).items(), version=version)
        read = dict(reader.tensors(version=version))
        assert torch.equal(read["a"], weights(version)["a"].bfloat16())


def test_it_is_a_safetensors_file(laid_out: WeightFile) -> None:
    laid_out.write(weights(4).items(), version=4)
    read = load_file(laid_out.path)
    assert torch.equal(read["b.weight"], weights(4)["b.weight"].bfloat16())


def test_another_version_is_refused(laid_out: WeightFile) -> None:
    laid_out.write(weights().items(), version=1)
    with pytest.raises(EngineError, match="holds version 1") as caught:
        list(WeightReader(laid_out.path).tensors(version=2))
    assert caught.value.code == "stale_weights"


def test_a_file_that_is_being_written_is_refused(laid_out: WeightFile) -> None:
    laid_out.write(weights().items(), version=1)

    def dies_half_way():
        yield from list(weights(2).items())[:1]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        laid_out.write(dies_half_way(), version=2)
    for version in (1, 2):
        with pytest.raises(EngineError, match="being written"):
            list(WeightReader(laid_out.path).tensors(version=version))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda values: values.pop("a"), id="missing"),
        pytest.param(lambda values: values.update(new=torch.zeros(1)), id="new"),
        pytest.param(lambda values: values.update(a=torch.zeros(5, 3)), id="other shape"),
    ],
)
def test_a_changed_model_is_refused_and_leaves_no_version(laid_out: WeightFile, change) -> None:
    values = weights()
    change(values)
    with pytest.raises(StoreError) as caught:
        laid_out.write(values.items(), version=1)
    assert caught.value.code == "layout_changed"
    with pytest.raises(EngineError):
        list(WeightReader(laid_out.path).tensors(version=1))


def test_a_folder_without_room_is_an_error_and_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(StoreError, match="no room") as caught:
        WeightFile.lay_out(weights().items(), dtype=torch.bfloat16, folder=tmp_path)
    assert caught.value.code == "no_space"
    assert list(tmp_path.iterdir()) == []


def test_closing_removes_the_file(laid_out: WeightFile) -> None:
    laid_out.close()
    assert not laid_out.path.exists()


def test_a_killed_writers_file_is_removed_and_a_living_ones_is_not(laid_out: WeightFile, tmp_path: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    abandoned = tmp_path / f"envsdk-weights-{gone.pid}-x1.safetensors"
    abandoned.touch()
    assert remove_abandoned(tmp_path) == [abandoned]
    assert laid_out.path.exists()


def test_another_users_file_stays_and_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path, *, missing_ok: bool = False) -> None:
        raise PermissionError(path)

    (tmp_path / f"envsdk-weights-{1 << 22}-x1.safetensors").touch()  # Linux gives no process so high a number
    monkeypatch.setattr(Path, "unlink", refused)
    assert remove_abandoned(tmp_path) == []
