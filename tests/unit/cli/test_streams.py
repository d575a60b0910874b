"""The program's streams: whatever reads them, or does not, an exit code stays the command's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PROGRAM = """
import sys
import typer
from envsdk.cli import app
from envsdk.cli.options import JsonFlag, emit

def probe(text: str, *, code: int = 0, times: int = 1, as_json: JsonFlag = False) -> None:
    print("progress", file=sys.stderr)
    emit({"ok": True, "errors": [], "text": text * times}, as_json=as_json, text=text * times)
    raise typer.Exit(code)

app.OWN["probe"] = app.CommandEntry("A probe.", "probe:probe")
app.load_command = lambda name, entry: probe
app.main()
"""
ONE_MIB = ["--times", str(1 << 20)]


def probe(*args: str, **streams: object) -> subprocess.CompletedProcess[bytes]:
    program = [sys.executable, "-c", PROGRAM, "probe", *args]
    return subprocess.run(program, check=False, **{"capture_output": not streams, **streams})  # type: ignore[call-overload,no-any-return]


def reader_that_left() -> int:
    read, write = os.pipe()
    os.close(read)
    return write


@pytest.mark.parametrize("code", [0, 1, 4])
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize("size", [[], ONE_MIB])
def test_a_reader_that_left_changes_no_exit_code(code: int, stream: str, size: list[str]) -> None:
    write = reader_that_left()
    try:
        streams: dict[str, int] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: write}
        done = probe("x", "--code", str(code), *size, **streams)
    finally:
        os.close(write)
    assert done.returncode == code
    assert b"Traceback" not in (done.stderr or b"")


def test_progress_that_has_no_room_leaves_the_result_whole() -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = probe("x", "--code", "1", stdout=subprocess.PIPE, stderr=full)
    assert (done.returncode, done.stdout) == (1, b"x\n")


@pytest.mark.parametrize("flags", [[], ["--json"], ONE_MIB])
def test_a_result_that_has_no_room_is_an_error_with_its_code(flags: list[str]) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = probe("x", *flags, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 4
    assert done.stderr.startswith(b"progress\nerror [disk_full] stdout: ")
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("closed", [[1], [2], [1, 2]])
def test_a_closed_stream_changes_no_exit_code(closed: list[int]) -> None:
    def close() -> None:
        for descriptor in closed:
            os.close(descriptor)

    before: Callable[[], None] = close
    assert probe("x", "--code", "1", preexec_fn=before).returncode == 1


@pytest.mark.parametrize("text", ["é", "✔", "😀"])
def test_json_survives_an_encoding_without_its_characters(text: str) -> None:
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = probe(text, "--json", env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert (done.returncode, json.loads(done.stdout)["text"]) == (0, text)


def test_a_path_that_is_no_text_can_be_said() -> None:
    done = probe(os.fsdecode(b"a\xffb"), "--json", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert (done.returncode, json.loads(done.stdout)["text"]) == (0, "a\udcffb")
