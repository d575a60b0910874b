"""Checks of files: reading, writing, trees up and down, and what stands in the way."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

from envsdk.errors import SandboxError
from envsdk.sandboxes.base import Sandbox
from envsdk.sandboxes.conformance.bench import Bench, expect, expect_output

_BYTES = bytes(range(256)) * 4096


async def _code(box: Sandbox, path: str) -> str:
    try:
        await box.read(path)
    except SandboxError as error:
        return error.code
    return "no error"


async def check_write_and_read(bench: Bench) -> None:
    """1 MiB of bytes there and back; folders on the way are made; the file is the agent's, with its mode."""
    box = await bench.box()
    await box.write("/app/deep/er/data.bin", _BYTES, mode=0o640)
    expect(await box.read("/app/deep/er/data.bin") == _BYTES, "the same bytes come back")
    result = await box.exec(
        "stat -c '%a %u' /app/deep/er/data.bin; echo more >> /app/deep/er/data.bin; touch /app/deep/x"
    )
    expect(result.ok and result.stdout.startswith(b"640 "), "mode and owner", result)
    await box.write("/app/deep/er/data.bin", b"")
    expect(await box.read("/app/deep/er/data.bin") == b"", "a file is replaced, also by an empty one")


async def check_write_as_root(bench: Bench) -> None:
    """A file written for root is closed to the agent."""
    box = await bench.box()
    await box.write("/opt/secret", b"s", mode=0o600, user="root")
    expect(not (await box.exec("cat /opt/secret")).ok, "the agent cannot read it")
    expect_output(await box.exec("cat /opt/secret", user="root"), b"s", "root can")


async def check_write_replaces_links(bench: Bench) -> None:
    """Writing to a path where the agent left a link replaces the link, and leaves its target alone."""
    box = await bench.box()
    await box.exec("echo keep > /app/target; ln -s /app/target /app/link; ln /app/target /app/hard")
    await box.write("/app/link", b"new")
    await box.write("/app/hard", b"new")
    expect_output(await box.exec("cat /app/target"), b"keep\n", "the target is untouched")


async def check_read_errors(bench: Bench) -> None:
    """What cannot be read is an error with a code; a FIFO of the agent's stops nobody for good."""
    box = await bench.box()
    expect(await _code(box, "/no/such") == "no_such_file", "no_such_file", await _code(box, "/no/such"))
    expect(await _code(box, "/etc/passwd/x") == "no_such_file", "a file is no folder")
    expect(await _code(box, "/usr") == "is_a_folder", "is_a_folder", await _code(box, "/usr"))
    await box.exec("mkfifo /app/fifo")
    stuck = asyncio.ensure_future(box.read("/app/fifo"))
    await asyncio.sleep(0.05)
    expect_output(await box.exec("echo on"), b"on\n", "the sandbox answers beside a stuck read")
    stuck.cancel()
    await asyncio.gather(stuck, return_exceptions=True)


async def check_read_cap(bench: Bench) -> None:
    """Reading stops at the cap, also of what has no end."""
    box = await bench.box()
    expect(await box.read("/dev/zero", max_bytes=1000) == bytes(1000), "1000 bytes of /dev/zero")


async def check_trees(bench: Bench) -> None:
    """A tree up and down again: bytes, links, executable bits, odd names, empty folders."""
    box = await bench.box()
    with tempfile.TemporaryDirectory() as here:
        source, back = Path(here) / "source", Path(here) / "back"
        (source / "in ner" / "empty").mkdir(parents=True)
        (source / "in ner" / "d\u00e9j\u00e0 'vu'").write_bytes(_BYTES[:5000])
        (source / "run.sh").write_text("#!/bin/sh\necho ran\n")
        (source / "run.sh").chmod(0o755)
        (source / "link").symlink_to("run.sh")
        (source / "dangling").symlink_to("/no/where")
        await box.upload(source, "/app/up")
        expect_output(await box.exec("/app/up/run.sh; readlink /app/up/dangling"), b"ran\n/no/where\n", "usable inside")
        await box.download("/app/up", back)
        expect(_listing(back) == _listing(source), "the same tree comes back", (_listing(source), _listing(back)))
        await box.upload(source / "run.sh", "/app/other/name.sh")
        expect_output(await box.exec(["/app/other/name.sh"]), b"ran\n", "a single file, under its new name")
        await box.download("/app/other/name.sh", Path(here) / "one")
        expect((Path(here) / "one").read_bytes() == (source / "run.sh").read_bytes(), "and down again")


def _listing(root: Path) -> list[tuple[str, str, bytes]]:
    found = []
    for folder, names, files in os.walk(root):
        for name in sorted([*names, *files]):
            path = Path(folder) / name
            inside = path.relative_to(root).as_posix()
            if path.is_symlink():
                found.append((inside, "link", os.fsencode(path.readlink())))
            elif path.is_dir():
                found.append((inside, "folder", b""))
            else:
                found.append((inside, "program" if path.stat().st_mode & 0o100 else "file", path.read_bytes()))
    return sorted(found)


async def check_missing_download(bench: Bench) -> None:
    """Downloading what is not there is an error, and leaves nothing on the host."""
    box = await bench.box()
    with tempfile.TemporaryDirectory() as here:
        try:
            await box.download("/no/such", Path(here) / "x")
        except SandboxError as error:
            expect(error.code == "no_such_file", "no_such_file", error.code)
        else:
            expect(condition=False, what="an error is raised")
        expect(not (Path(here) / "x").exists(), "nothing is left")


async def check_host_is_not_there(bench: Bench) -> None:
    """The host's files are not the sandbox's."""
    box = await bench.box()
    with tempfile.NamedTemporaryFile(dir="/var/tmp") as witness:
        seen = await box.exec(["ls", witness.name], user="root")
        expect(not seen.ok, "a file of the host is not seen", seen)
    kernel = await box.exec("echo 1 > /proc/sys/kernel/panic_on_oops || echo refused", user="root")
    expect(b"refused" in kernel.stdout, "the kernel's settings cannot be written", kernel)
