"""Sockets of engines: in one folder of the trainer's, which goes with it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from trainer.engines import sockets


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(os, "environ", {})
    sockets._folder.cache_clear()
    yield tmp_path
    sockets._folder.cache_clear()


def test_all_engines_of_a_process_meet_in_one_folder_of_its_own(temporary: Path) -> None:
    sockets.keep_sockets_together()
    first = os.environ[sockets.FOLDER]
    sockets.keep_sockets_together()
    assert os.environ[sockets.FOLDER] == first
    assert [str(path) for path in temporary.iterdir()] == [first]


def test_a_folder_that_the_user_named_stays_his(temporary: Path) -> None:
    os.environ[sockets.FOLDER] = "/elsewhere"
    sockets.keep_sockets_together()
    assert os.environ[sockets.FOLDER] == "/elsewhere"
    assert list(temporary.iterdir()) == []


def test_what_a_killed_trainer_left_is_removed_by_the_next_and_nothing_else(temporary: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    names = (f"envsdk-engine-{gone.pid}-a1", f"envsdk-engine-{os.getpid()}-b2", "envsdk-engine-notes", "other")
    for name in names:
        (temporary / name).mkdir()
        (temporary / name / "socket").touch()
    assert sockets.remove_abandoned_sockets(temporary) == [temporary / names[0]]
    assert {path.name for path in temporary.iterdir()} == set(names[1:])


def test_the_end_of_the_process_is_the_folders_end(tmp_path: Path) -> None:
    program = "import os; from trainer.engines.sockets import *; keep_sockets_together(); print(os.environ[FOLDER])"
    others = {name: value for name, value in os.environ.items() if name != sockets.FOLDER}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=others | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(done.stdout.strip()).parent == tmp_path
    assert list(tmp_path.iterdir()) == []


def test_temporary_files_of_an_engine_lie_in_the_folder_and_what_torch_compiled_does_not(temporary: Path) -> None:
    sockets.keep_sockets_together()
    sockets.keep_temporary_files_there()
    assert tempfile.gettempdir() == os.environ[sockets.FOLDER]
    assert Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]).parent == temporary


@pytest.mark.parametrize("folder", ["", "/elsewhere", "/nowhere/envsdk-engine-1-x"])
def test_temporary_files_stay_where_they_are_without_a_folder_of_ours(temporary: Path, folder: str) -> None:
    os.environ[sockets.FOLDER] = folder
    sockets.keep_temporary_files_there()
    assert tempfile.gettempdir() == str(temporary)
