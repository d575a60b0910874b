"""A million episodes sent to a server, cut off on either side: what is there at the end, how long, how much memory.

``python -m benchmarks.cut_off_upload URL --episodes N`` on an empty database. One request of all lines: its client dies
by SIGKILL at half of the bytes, then the server, sent all again, at three quarters of the episodes; then
``envsdk registry ingest`` sends all of them to a new server. With ``--file`` ``ingest`` of the file into the database
itself is killed at half, and run again.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import func, select

from benchmarks.large_registry import fill
from benchmarks.registry_ingest import TASKS, part
from registry.db import Outcome
from registry.derive.rebuild import rebuild
from registry.integrity import look
from registry.local import LocalRegistry
from registry.outcomes import BATCH
from registry.tokens import create_token

_ENVSDK = [sys.executable, "-c", "from envsdk.cli.app import main; main()"]
_CHUNK = 1 << 20
_LOOK_S = 0.5


def write_ledger(path: Path, episodes: int) -> None:
    """Lines of 1.4 KB, of 2,000 tasks."""
    with path.open("wb") as out:
        for start in range(0, episodes, BATCH):
            out.writelines(line + b"\n" for line in part(start, min(BATCH, episodes - start))[1])


def send(path: Path, port: int, token: str, *, die_at: int | None) -> bytes:
    """One POST of the whole file, as any client might send it; with ``die_at`` this process kills itself there."""
    sent = 0
    with socket.create_connection(("127.0.0.1", port)) as connection, path.open("rb") as lines:
        head = f"POST /api/outcomes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n"
        connection.sendall(f"{head}Content-Length: {path.stat().st_size}\r\n\r\n".encode())
        while chunk := lines.read(_CHUNK):
            connection.sendall(chunk)
            sent += len(chunk)
            if die_at is not None and sent >= die_at:
                os.kill(os.getpid(), signal.SIGKILL)
        return b"".join(iter(lambda: connection.recv(_CHUNK), b""))


class Served:
    """A running server: its process, its port."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        self.process = process
        said = re.search(r":(\d+)/", process.stderr.readline())
        assert said is not None
        self.port = int(said.group(1))
        threading.Thread(target=process.stderr.read, daemon=True).start()

    @property
    def most_memory(self) -> int:
        """MiB, at its highest."""
        return most_memory(self.process.pid)


def most_memory(pid: int) -> int:
    """MiB that a process held at its highest; 0 where it has ended."""
    try:
        said = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(encoding="ascii"))
    except OSError:
        return 0
    return int(said.group(1)) >> 10 if said else 0


@contextmanager
def served(url: str) -> Iterator[Served]:
    """``envsdk registry serve`` in a process of its own."""
    command = [*_ENVSDK, "registry", "serve", "--port", "0", "--no-worker", "--registry", url]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield Served(process)
        finally:
            process.kill()


def count(registry: LocalRegistry) -> int:
    """Outcomes that are there."""
    with registry.database.reading() as session:
        return session.scalar(select(func.count()).select_from(Outcome)) or 0


def reached(registry: LocalRegistry, wanted: int, process: subprocess.Popen[str]) -> int:
    """Wait until that many outcomes are there, or ``process`` has ended."""
    while (found := count(registry)) < wanted and process.poll() is None:
        time.sleep(_LOOK_S)
    return found


def settled(registry: LocalRegistry) -> int:
    """The number of outcomes when it has stopped growing."""
    before, found = -1, count(registry)
    while found != before:
        time.sleep(20 * _LOOK_S)
        before, found = found, count(registry)
    return found


def upload(url: str, ledger: Path, episodes: int) -> None:
    """Both deaths over HTTP, then all again."""
    with LocalRegistry(url) as registry:
        with registry.database.writing() as session:
            token = create_token(session, "cut off", scopes=("outcomes",)).secret
        sender = [sys.executable, "-m", "benchmarks.cut_off_upload", url, "--send", str(ledger), "--token", token]
        with served(url) as server:
            half = str(ledger.stat().st_size // 2)
            began = time.perf_counter()
            died = subprocess.run([*sender, "--port", str(server.port), "--die-at", half], check=False)
            print(f"the client died at half of the bytes ({died.returncode}), {time.perf_counter() - began:.0f} s")
            print(f"  {settled(registry):,} outcomes; server at most {server.most_memory} MiB", flush=True)
            began = time.perf_counter()
            with subprocess.Popen([*sender, "--port", str(server.port)], text=True) as again:
                reached(registry, episodes * 3 // 4, again)
                memory = server.most_memory
                server.process.kill()
            print(f"the server was killed after {time.perf_counter() - began:.0f} s, client ended {again.returncode}")
            print(f"  {count(registry):,} outcomes; server at most {memory} MiB", flush=True)
        with served(url) as server:
            _ingest(ledger, f"http://127.0.0.1:{server.port}", token=token)
            print(f"  {count(registry):,} outcomes; server at most {server.most_memory} MiB", flush=True)
        with served(url) as server:
            began = time.perf_counter()
            answer = subprocess.run([*sender, "--port", str(server.port)], capture_output=True, check=True).stdout
            print(f"once more in one request, {time.perf_counter() - began:.0f} s: {answer[-120:].decode()}")
            print(f"  server at most {server.most_memory} MiB", flush=True)


def from_file(url: str, ledger: Path, episodes: int) -> None:
    """Ingest of a file, killed at half, and again."""
    with LocalRegistry(url) as registry:
        with subprocess.Popen([*_ENVSDK, "registry", "ingest", str(ledger), "--registry", url], text=True) as first:
            reached(registry, episodes // 2, first)
            memory = most_memory(first.pid)
            first.kill()
        print(f"ingest killed: {count(registry):,} outcomes; at most {memory} MiB", flush=True)
        _ingest(ledger, url)
        print(f"  {count(registry):,} outcomes", flush=True)


def _ingest(ledger: Path, registry: str, *, token: str = "") -> None:
    began, memory = time.perf_counter(), 0
    command = [*_ENVSDK, "registry", "ingest", str(ledger), "--registry", registry]
    environment = os.environ | ({"ENVSDK_TOKEN": token} if token else {})
    with tempfile.TemporaryFile("w+") as out:
        with subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, env=environment, text=True) as process:
            while process.poll() is None:
                memory = max(memory, most_memory(process.pid))
                time.sleep(_LOOK_S)
        out.seek(0)
        said = out.read().strip()
    print(f"all again by ingest, {time.perf_counter() - began:.0f} s, exit {process.returncode}: {said}")
    print(f"  client at most {memory} MiB")


def sound(url: str) -> None:
    """What ``check`` and ``rebuild`` say at the end."""
    with LocalRegistry(url) as registry, registry.database.writing() as session:
        findings = list(look(session, registry.blobs))
        result = rebuild(session)
    print(f"check: {len(findings)} findings; rebuild: {result.outcomes:,} outcomes, the same: {result.same}")


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--episodes", type=int, default=1_000_000)
    parser.add_argument("--file", action="store_true")
    parser.add_argument("--send", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--token", default="", help=argparse.SUPPRESS)
    parser.add_argument("--die-at", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.send:
        print(send(given.send, given.port, given.token, die_at=given.die_at).decode())
        return
    with tempfile.TemporaryDirectory() as folder:
        ledger = Path(folder) / "ledger.jsonl"
        write_ledger(ledger, given.episodes)
        print(f"{given.episodes:,} episodes, {ledger.stat().st_size >> 20} MiB", flush=True)
        with LocalRegistry(given.url) as registry:
            fill(registry, TASKS, outcomes=0)
            with registry.database.writing() as session:
                rebuild(session)  # what was filled in by hand becomes what the program itself derives
        (from_file if given.file else upload)(given.url, ledger, given.episodes)
    sound(given.url)


if __name__ == "__main__":
    main()
