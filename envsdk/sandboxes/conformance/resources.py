"""Checks of bounds: processes, memory, cpu, disk, network, each really enforced."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from envsdk.errors import PrerequisiteError
from envsdk.sandboxes.base import Limits
from envsdk.sandboxes.conformance.bench import Bench, SkipCheckError, expect, expect_output


async def check_fork_bomb(bench: Bench) -> None:
    """A fork bomb meets the limit, is counted, and can be ended; the sandbox is usable after it."""
    box = await bench.box(limits=Limits(pids=40))
    await box.exec("b() { b | b & }; b; sleep 20", timeout_s=3.0)
    counters = await box.counters()
    if counters.pids_limit is not None:
        expect(counters.pids_limit == 40 and (counters.pids_limit_hits or 0) > 0, "the limit was hit", counters)
    await box.kill_agent_processes()
    expect_output(await box.exec("echo on"), b"on\n", "the sandbox is usable")


async def check_memory(bench: Bench) -> None:
    """What takes more memory than the limit is killed, and counted; the sandbox is usable after it."""
    box = await bench.box(limits=Limits(memory_mib=64))
    result = await box.exec("x=$(head -c 200000000 /dev/zero | tr '\\000' a); echo ${#x}", timeout_s=30)
    expect(result.stdout != b"200000000\n", "200 MB do not fit in 64 MiB", result)
    counters = await box.counters()
    if counters.memory_limit_mib is not None:
        expect(counters.memory_limit_mib == 64, "the limit is the declared one", counters)
        expect((counters.oom_kills or 0) > 0, "the kill is counted", counters)
    expect_output(await box.exec("echo on"), b"on\n", "the sandbox is usable")


async def check_cpu(bench: Bench) -> None:
    """A quarter of a processor is a quarter of a processor."""
    box = await bench.box(limits=Limits(cpus=0.25))
    busy = "t=$(($(date +%s)+2)); while [ $(date +%s) -lt $t ]; do :; done; times | tail -1"
    result = await box.exec(busy, timeout_s=30)
    used = sum(_seconds(part) for part in result.stdout.decode().split())
    expect(used < 1.5, "two or three seconds at a quarter of a processor cost less than 1.5 s of it", result)


def _seconds(text: str) -> float:
    minutes, _, seconds = text.rstrip("s").partition("m")
    return float(minutes) * 60 + float(seconds)


async def check_one_large_file(bench: Bench) -> None:
    """One file cannot grow past the disk limit."""
    box = await bench.box(limits=Limits(disk_mib=16))
    await box.exec("head -c 40000000 /dev/zero > /app/large", timeout_s=30)
    size = await box.exec("wc -c < /app/large", user="root")
    expect(int(size.stdout or 0) <= 16 << 20, "at most 16 MiB were written", size)


async def check_many_files(bench: Bench) -> None:
    """Nor can many files together, by much; what was used is counted."""
    box = await bench.box(limits=Limits(disk_mib=16))
    one = "head -c 1000000 /dev/zero > /app/f$i || exit 3"
    script = f"i=0; while [ $i -lt 400 ]; do {one}; i=$((i+1)); sleep 0.01; done; echo all"
    result = await box.exec(script, timeout_s=60)
    expect(result.stdout != b"all\n", "400 MB do not fit in 16 MiB", result)
    counters = await box.counters()
    if counters.disk_used_mib is not None:
        expect(counters.disk_quota_mib == 16, "the quota is the declared one", counters)
        expect(counters.disk_used_mib >= 8, "what was used is counted", counters)


async def check_no_network(bench: Bench) -> None:
    """Without a network there is a loopback and nothing else."""
    box = await bench.box()
    listed = await box.exec("tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '")
    names = set(listed.stdout.split()) - {b"tunl0", b"sit0", b"ip6tnl0", b"gre0", b"gretap0", b"erspan0", b"ip_vti0"}
    names -= {b"ip6_vti0", b"ip6gre0"}
    expect(names == {b"lo"}, "only the loopback", listed)
    routes = await box.exec("tail -n +2 /proc/net/route | wc -l")
    expect_output(routes, b"0\n", "no route leads out")


async def check_loopback(bench: Bench) -> None:
    """The loopback is up and has its name: programs in one sandbox can talk to each other."""
    box = await bench.box()
    named = await box.exec("grep -w localhost /etc/hosts | cut -c1-9 | head -1; stat -c '%U %a' /etc/hosts")
    expect_output(named, b"127.0.0.1\nroot 644\n", "localhost has an address")
    up = await box.exec("grep -q 127.0.0.1 /proc/net/fib_trie")
    expect(up.ok, "the interface is up", up)


async def check_allow_list(bench: Bench) -> None:
    """An allow-listed network reaches what it names and nothing else; a back end without one says so before a start."""
    async with _web("127.0.0.2") as allowed, _web("127.0.0.3") as other:
        try:
            box = await bench.box(network="allowlist", allowed_hosts=("127.0.0.2",))
        except PrerequisiteError as error:
            expect(error.code == "network_unsupported" and error.hint, "it says that it has none", error)
            return
        if not (await box.exec("command -v python3")).ok:
            raise SkipCheckError("the image has no python3 to ask a web server with")
        asked = await box.exec(["python3", "-c", _ASK, f"http://127.0.0.2:{allowed}/"])
        expect_output(asked, b"200 here", "the allowed host answers")
        refused = await box.exec(["python3", "-c", _ASK, f"http://127.0.0.3:{other}/"])
        expect(refused.stdout.startswith(b"403 ") and b"127.0.0.3" in refused.stdout, "any other is refused", refused)
        around = await box.exec(["python3", "-c", _AROUND, "127.0.0.2", str(allowed)])
        expect(around.stdout == b"no way", "no way leads around the list, not even to what it names", around)
        routes = await box.exec("tail -n +2 /proc/net/route | wc -l")
        expect_output(routes, b"0\n", "no route leads out")


_ASK = """
import sys, urllib.error, urllib.request
try:
    answer = urllib.request.urlopen(sys.argv[1], timeout=10)
except urllib.error.HTTPError as error:
    answer = error
print(answer.status, answer.read().decode(), end="")
"""
_AROUND = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=5)
except OSError:
    print("no way", end="")
"""


@contextlib.asynccontextmanager
async def _web(address: str) -> AsyncIterator[int]:
    """A web server on this machine that says "here"; its port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nhere")
        writer.close()

    server = await asyncio.start_server(answer, address, 0)
    async with server:
        yield int(server.sockets[0].getsockname()[1])


async def check_capped_gigabyte(bench: Bench) -> None:
    """1 GB of output costs neither memory nor the sandbox."""
    box = await bench.box()
    result, beside = await asyncio.gather(
        box.exec("head -c 1000000000 /dev/zero", timeout_s=120, output_cap_bytes=4096),
        box.exec("echo beside", timeout_s=60),
    )
    expect(
        result.ok and result.total_bytes == 1_000_000_000 and len(result.stdout) == 4096, "all of it counted", result
    )
    expect_output(beside, b"beside\n", "a command beside it ends")
