"""The data folder: one variable moves it, and no image reference escapes it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsdk import home as place


def test_the_variable_moves_everything(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ENVSDK_HOME", str(tmp_path))
    made = [place.models_dir(), place.rootfs_dir(), place.images_dir(), place.services_dir(), place.blobs_dir()]
    assert all(path.parent.is_relative_to(tmp_path) for path in [*made, place.registry_path()])


def test_a_relative_folder_becomes_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ENVSDK_HOME", "here")
    assert place.home() == tmp_path / "here"


@pytest.mark.parametrize("value", ["", "   "])
def test_an_empty_variable_is_no_folder(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("ENVSDK_HOME", value)
    assert place.home().name == "envsdk"


def test_naming_a_path_creates_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ENVSDK_HOME", str(tmp_path / "none"))
    place.models_dir(), place.rootfs_dir(), place.registry_path()
    assert not (tmp_path / "none").exists()


def test_the_base_image_has_the_documented_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ENVSDK_HOME", str(tmp_path))
    assert place.rootfs_dir("envsdk-base:bookworm") == tmp_path / "rootfs" / "envsdk-base-bookworm"


@given(st.text(max_size=60))
def test_no_image_reference_leaves_the_folder(image: str) -> None:
    path = place.rootfs_dir(image)
    assert path.parent == place.home() / "rootfs"
    assert path.name not in {"", ".", ".."}
