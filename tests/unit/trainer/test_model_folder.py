"""A trained model's folder: complete, in place of the old one, and it says who it is."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from trainer.model_folder import origin, revision, seen_in_training, write_model


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


def test_what_it_was_trained_on_is_kept_also_of_the_trainings_before(source: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    write_model(first, [("w", torch.zeros(1))], source, lineage="s", version=3, trained_on={"b", "a"})
    write_model(second, [("w", torch.zeros(1))], first, lineage="s", version=5, trained_on=["c", "b"])
    assert seen_in_training(source) == frozenset()
    assert seen_in_training(second) == {"a", "b", "c"}


def test_a_folder_from_before_it_was_kept_does_not_say_what_it_was_trained_on(source: Path) -> None:
    (source / "envsdk.json").write_text('{"lineage": "s", "weight_version": 3}')
    assert seen_in_training(source) is None


def test_models_of_one_lineage_differ_in_their_revision(source: Path, tmp_path: Path) -> None:
    for name, version, value in (("one", 3, 0.0), ("other", 3, 1.0), ("later", 4, 0.0)):
        write_model(tmp_path / name, [("w", torch.full((1,), value))], source, lineage="s", version=version)
    revisions = [revision(tmp_path / name) for name in ("one", "other", "later")]
    assert len({revision(source), *revisions}) == 4
    assert [text.partition("-")[0] for text in revisions] == ["3", "3", "4"]


def test_a_revision_is_the_same_wherever_the_folder_lies_and_whether_it_names_its_digest(
    source: Path, tmp_path: Path
) -> None:
    write_model(tmp_path / "one", [("w", torch.zeros(1))], source, lineage="s", version=3)
    said = revision(tmp_path / "one")
    (tmp_path / "one").rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "envsdk.json").write_text('{"lineage": "s", "weight_version": 3}')
    assert revision(tmp_path / "elsewhere") == said


def test_a_model_that_was_not_trained_here_is_its_own_lineage(source: Path) -> None:
    assert origin(source) == ("smollm2", 0)
