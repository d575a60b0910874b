"""A site that is ended, in whatever way, leaves no worker behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

_IGNORING = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"


def _workers(url: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0] if words else "Z"
        except OSError:
            continue
        if b"work" in words and url.encode() in words and state != "Z":
            found.append(int(entry.name))
    return found


def _until(condition) -> None:
    while not condition():
        time.sleep(0.1)


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    url = f"sqlite:///{tmp_path}/registry.sqlite"
    yield url
    for pid in _workers(url):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_no_worker_outlives_its_site(url: str, how: signal.Signals) -> None:
    program = [sys.executable, "-c", "from envsdk.cli.entry import main; main()", "registry", "serve", "--port", "0"]
    # As a shell starts a background job: with interrupts ignored, which is inherited.
    ignoring = [sys.executable, "-c", _IGNORING] if how is signal.SIGTERM else []
    with subprocess.Popen([*ignoring, *program, "--registry", url], stderr=subprocess.PIPE, text=True) as site:
        assert "http://127.0.0.1:" in site.stderr.readline()
        _until(lambda: _workers(url))
        time.sleep(0.5)  # whatever it is doing by then
        site.send_signal(how)
        _until(lambda: not _workers(url))
    assert _workers(url) == []
