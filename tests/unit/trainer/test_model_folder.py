"""A trained model's folder: complete, in place of the old one, and it says who it is."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from trainer.model_folder import origin, write_model


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "smollm2"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"old weights")
    return folder


def test_it_holds_the_new_weights_and_the_old_configuration(source: Path, tmp_path: Path) -> None:
    write_model(tmp_path / "model", [("w", torch.ones(2, 3).T)], source, lineage="smollm2", version=7)
    assert (tmp_path / "model" / "config.json").read_text() == "{}"
    assert torch.equal(load_file(tmp_path / "model" / "model.safetensors")["w"], torch.ones(3, 2))
    assert origin(tmp_path / "model") == ("smollm2", 7)


def test_it_replaces_what_was_there(source: Path, tmp_path: Path) -> None:
    for version in (1, 2):
        write_model(tmp_path / "model", [("w", torch.zeros(1))], source, lineage="smollm2", version=version)
    assert origin(tmp_path / "model")[1] == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "smollm2"]


def test_training_on_goes_on_counting(source: Path, tmp_path: Path) -> None:
    write_model(tmp_path / "first", [("w", torch.zeros(1))], source, lineage="smollm2", version=3)
    write_model(tmp_path / "second", [("w", torch.zeros(1))], tmp_path / "first", lineage="smollm2", version=5)
    assert origin(tmp_path / "second") == ("smollm2", 5)


def test_a_model_that_was_not_trained_here_is_its_own_lineage(source: Path) -> None:
    assert origin(source) == ("smollm2", 0)
