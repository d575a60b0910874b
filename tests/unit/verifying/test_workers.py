"""The processes of Python verifiers: warm, few, replaced when they die, gone when they are closed."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from envsdk.errors import VerifierError
from envsdk.verifying import isolation, python, workers
from envsdk.verifying.verdict import EndState
from envsdk.verifying.verify import verify
from envsdk.verifying.workers import Workers
from tests.fakes.tasks import text_task

REQUEST = {
    "kind": "text",
    "function": "judge",
    "params": {},
    "timeout_s": 5.0,
    "memory_mib": 512,
    "answer": "",
    "files": [],
}


@pytest.fixture
def pool() -> Any:
    opened = Workers()
    yield opened
    opened.close()


def verifier_in(folder: Path, source: str = "def judge(answer):\n    return 1\n") -> Path:
    folder.mkdir(parents=True)
    (folder / "verifier.py").write_text(source)
    return folder


def test_the_same_content_keeps_its_process(tmp_path: Path, pool: Workers) -> None:
    folder = verifier_in(tmp_path / "tests")
    first = pool.get("k", folder, "verifier.py")
    assert first.submit(REQUEST).result(30)["value"] == "1.0"
    assert pool.get("k", folder, "verifier.py") is first


def test_a_process_outlives_the_thread_that_asked_for_it(tmp_path: Path, pool: Workers) -> None:
    folder = verifier_in(tmp_path / "tests")
    asking = threading.Thread(target=pool.get, args=("k", folder, "verifier.py"))
    asking.start()
    asking.join()
    worker = pool.warm("k", "verifier.py")
    assert worker is not None
    assert worker.submit(REQUEST).result(30)["value"] == "1.0"
    assert worker.submit(REQUEST).result(30)["value"] == "1.0"


async def test_a_process_that_ended_as_it_was_found_warm_is_asked_for_again(
    tmp_path: Path, pool: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(python, "WORKERS", pool)
    task = text_task(tmp_path)
    assert (await verify(task, EndState(answer=b"5"), None)).reward == 1.0
    [worker] = pool._workers.values()
    submit = worker.submit

    def dies(request: dict[str, Any]) -> Any:
        worker._process.kill()
        worker._process.wait()
        return submit(request)

    monkeypatch.setattr(worker, "submit", dies)
    assert (await verify(task, EndState(answer=b"5"), None)).reward == 1.0
    assert [other is worker for other in pool._workers.values()] == [False]


def test_a_process_that_died_is_replaced_and_says_that_it_was_lost(tmp_path: Path, pool: Workers) -> None:
    folder = verifier_in(tmp_path / "tests")
    first = pool.get("k", folder, "verifier.py")
    first.submit(REQUEST).result(30)
    os.kill(first._process.pid, signal.SIGKILL)
    first._process.wait()
    assert first.submit(REQUEST).result(30) == {"lost": True}
    assert pool.get("k", folder, "verifier.py").submit(REQUEST).result(30)["value"] == "1.0"


def test_the_least_recently_used_goes_when_there_are_too_many(
    tmp_path: Path, pool: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "MAX_WORKERS", 2)
    opened = [pool.get(str(number), verifier_in(tmp_path / str(number)), "verifier.py") for number in range(3)]
    assert [worker.alive for worker in opened] == [False, True, True]


def test_a_closed_worker_leaves_no_process_and_no_files(tmp_path: Path) -> None:
    pool = Workers()
    worker = pool.get("k", verifier_in(tmp_path / "tests"), "verifier.py")
    folder = worker._folder
    pool.close()
    assert not worker.alive
    assert not folder.exists()


def test_tests_that_are_gone_are_an_error(tmp_path: Path, pool: Workers) -> None:
    with pytest.raises(VerifierError):
        pool.get("k", tmp_path / "none", "verifier.py")


async def test_the_tests_may_be_removed_once_they_were_read(tmp_path: Path) -> None:
    task = text_task(tmp_path, source="def judge(answer):\n    import helper\n    return helper.ONE\n")
    (tmp_path / "tests/helper.py").write_text("ONE = 1\n")
    assert (await verify(task, EndState(answer=b""), None)).reward == 1.0
    (tmp_path / "tests/helper.py").unlink()
    assert (await verify(task, EndState(answer=b""), None)).reward == 1.0


def test_the_weakest_box_is_no_box_and_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(isolation.shutil, "which", lambda _: None)
    isolation.isolation.cache_clear()
    try:
        assert isolation.wrap(["python"], tmp_path) == (["python"], "none")
    finally:
        isolation.isolation.cache_clear()


def test_a_tool_that_is_there_and_does_not_work_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def broken(command: list[str], **_: Any) -> subprocess.CompletedProcess[bytes]:
        return subprocess.CompletedProcess(command, 1 if command[0] == "bwrap" else 0)

    monkeypatch.setattr(isolation.shutil, "which", lambda name: name)
    monkeypatch.setattr(isolation.subprocess, "run", broken)
    isolation.isolation.cache_clear()
    try:
        assert isolation.wrap(["python"], tmp_path)[1] == "unshare"
    finally:
        isolation.isolation.cache_clear()


def test_a_warm_worker_is_found_without_waiting_and_a_dead_one_is_not(tmp_path: Path, pool: Workers) -> None:
    folder = verifier_in(tmp_path / "tests")
    assert pool.warm("key", "verifier.py") is None
    worker = pool.get("key", folder, "verifier.py")
    assert pool.warm("key", "verifier.py") is worker
    worker.close()
    assert pool.warm("key", "verifier.py") is None
