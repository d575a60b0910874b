"""A spawned process ends with the one that spawned it, also when that one is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import ClassVar

import pytest

from trainer.engines import orphans
from trainer.engines.sockets import FOLDER
from trainer.engines.weight_file import WEIGHTS_FOLDER

PARENT = """
import multiprocessing, sys, time

def child(path):
    from trainer.engines.orphans import end_with_parent
    from trainer.engines.sockets import keep_temporary_files_there
    end_with_parent()
    end_with_parent()
    keep_temporary_files_there()
    import os, threading
    watchers = sum(thread.name == "end with parent" for thread in threading.enumerate())
    open(path, "w").write(f"{os.getpid()} {watchers}")
    time.sleep(300)

if __name__ == "__main__":
    import os
    from trainer.engines.sockets import FOLDER, keep_sockets_together
    from trainer.engines.weight_file import WEIGHTS_FOLDER
    keep_sockets_together()
    open(os.environ[FOLDER] + "/socket", "w").close()
    open(WEIGHTS_FOLDER / f"envsdk-weights-{os.getpid()}-x.safetensors", "w").close()
    process = multiprocessing.get_context("spawn").Process(target=child, args=(sys.argv[1],))
    process.start()
    process.join()
"""


def until(condition, *, seconds: float = 60.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_killed_parent_takes_its_child_along_and_one_watcher_is_enough(tmp_path: Path) -> None:
    script, note = tmp_path / "parent.py", tmp_path / "child"
    script.write_text(PARENT)
    others = {name: value for name, value in os.environ.items() if name != FOLDER}  # an engine of this process set it
    parent = subprocess.Popen(
        [sys.executable, str(script), str(note)],
        cwd=Path(__file__).parents[4],
        env=others | {"TMPDIR": str(tmp_path), "PYTHONPATH": "."},
    )
    weights = WEIGHTS_FOLDER / f"envsdk-weights-{parent.pid}-x.safetensors"
    try:
        assert until(lambda: note.exists() and " " in note.read_text())
        pid, watchers = map(int, note.read_text().split())
        assert watchers == 1
        assert running(pid)
        assert weights.exists()
        assert list(tmp_path.glob(f"envsdk-engine-{parent.pid}-*/socket"))
    finally:
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
    assert until(lambda: not running(pid))
    assert not weights.exists()
    assert not list(tmp_path.glob("envsdk-engine-*"))


def test_a_process_nobody_spawned_watches_nothing() -> None:
    orphans.end_with_parent()
    assert not [thread for thread in threading.enumerate() if thread.name == "end with parent"]


def test_only_engines_of_ours_are_tied(monkeypatch: pytest.MonkeyPatch) -> None:
    from trainer.engines import plugin

    tied = []
    monkeypatch.setattr(plugin, "end_with_parent", lambda: tied.append(1))
    monkeypatch.setitem(sys.modules, "vllm.distributed.weight_transfer.factory", FakeFactory)
    monkeypatch.delenv(orphans.OWNED, raising=False)
    plugin.register()
    assert tied == []
    monkeypatch.setenv(orphans.OWNED, "1")
    plugin.register()
    assert tied == [1]
    assert list(FakeFactory.WeightTransferEngineFactory._registry) == ["envsdk_mapped"]


class FakeFactory:
    """As much of vLLM's factory as registering touches; a second registration of a name is an error there."""

    class WeightTransferEngineFactory:
        _registry: ClassVar[dict] = {}

        @classmethod
        def register_engine(cls, name: str, module: str, attribute: str) -> None:
            assert name not in cls._registry
            cls._registry[name] = (module, attribute)


def test_a_process_that_has_ended_is_not_alive_before_its_parent_asks() -> None:
    ended = subprocess.Popen(["true"])
    assert until(lambda: not running(ended.pid))
    assert not orphans.alive(ended.pid)
    ended.wait()
    assert not orphans.alive(ended.pid)
    assert orphans.alive(os.getpid())
