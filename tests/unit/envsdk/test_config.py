"""Settings: the nearest origin wins, and each value knows its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsdk import config
from envsdk.errors import UsageError


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in config.DEFAULTS:
        monkeypatch.delenv(f"ENVSDK_{name.upper()}", raising=False)
    monkeypatch.setattr(config.platformdirs, "user_config_path", lambda *_, **__: tmp_path / "user")


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def origin(tmp_path: Path, name: str = "registry") -> tuple[str, str]:
    found = config.setting(name, start=tmp_path / "a" / "b")
    return found.value, found.origin


def test_defaults_come_last(tmp_path: Path) -> None:
    assert origin(tmp_path) == ("", "default")


def test_each_origin_beats_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user = write(tmp_path / "user" / "config.toml", 'registry = "user"\n')
    assert origin(tmp_path) == ("user", str(user))
    project = write(tmp_path / "a" / "pyproject.toml", '[tool.envsdk]\nregistry = "project"\n')
    assert origin(tmp_path) == ("project", str(project))
    own = write(tmp_path / "a" / "envsdk.toml", 'registry = "own"\n')
    assert origin(tmp_path) == ("own", str(own))
    nearer = write(tmp_path / "a" / "b" / "envsdk.toml", 'registry = "nearer"\n')
    assert origin(tmp_path) == ("nearer", str(nearer))
    monkeypatch.setenv("ENVSDK_REGISTRY", "environment")
    assert origin(tmp_path) == ("environment", "ENVSDK_REGISTRY")


def test_a_project_without_our_table_is_passed_by(tmp_path: Path) -> None:
    write(tmp_path / "a" / "b" / "pyproject.toml", "[project]\n")
    own = write(tmp_path / "a" / "envsdk.toml", 'registry = "x"\n')
    assert origin(tmp_path) == ("x", str(own))


@pytest.mark.parametrize(
    ("text", "hint"), [('regisrty = "x"', "did you mean 'registry'?"), ("registry = 1", "quote"), ("registry", "fix")]
)
def test_a_faulty_file_is_named(tmp_path: Path, text: str, hint: str) -> None:
    path = write(tmp_path / "a" / "envsdk.toml", text)
    with pytest.raises(UsageError) as caught:
        origin(tmp_path)
    assert (caught.value.code, caught.value.where, hint in caught.value.hint) == ("bad_config", str(path), True)


def test_a_command_s_table_is_left_to_the_command(tmp_path: Path) -> None:
    own = write(tmp_path / "a" / "envsdk.toml", 'registry = "x"\n[train]\nsteps = 3\n')
    assert origin(tmp_path) == ("x", str(own))
    ((_, table),) = config.settings_files(start=tmp_path / "a" / "b")
    assert table["train"] == {"steps": 3}


def test_a_table_of_no_command_is_refused_with_a_guess(tmp_path: Path) -> None:
    write(tmp_path / "a" / "envsdk.toml", "[trian]\nsteps = 3\n")
    with pytest.raises(UsageError) as caught:
        origin(tmp_path)
    assert caught.value.code == "bad_config"
    assert caught.value.hint == "did you mean 'train'?"


def test_the_data_folder_is_no_setting_of_a_file(tmp_path: Path) -> None:
    write(tmp_path / "a" / "envsdk.toml", 'home = "/elsewhere"\n')
    with pytest.raises(UsageError, match="unknown setting 'home'"):
        origin(tmp_path)


def test_a_setting_that_is_none_is_a_key_error(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        origin(tmp_path, "colour")
