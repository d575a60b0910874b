"""Checks of sandboxes' lives: isolation, snapshot, fork, liveness, closing."""

from __future__ import annotations

import asyncio

from envsdk.errors import SandboxError
from envsdk.sandboxes.base import SandboxSpec
from envsdk.sandboxes.conformance.bench import Bench, expect, expect_output


async def check_isolation(bench: Bench) -> None:
    """Two sandboxes of one image see neither each other's files nor each other's processes."""
    one, two = await bench.box(), await bench.box()
    await one.exec("echo mine > /app/mine; setsid sleep 8765 >/dev/null 2>&1 &")
    expect(not (await two.exec("test -e /app/mine")).ok, "no file is shared")
    seen = await two.exec("cat /proc/[0-9]*/cmdline | tr '\\000' ' '", user="root")
    expect(b"8765" not in seen.stdout.replace(b"/proc/[0-9]", b""), "no process is seen", seen)


async def check_fresh_after_use(bench: Bench) -> None:
    """A sandbox handed out after another was closed is the image again."""
    one = await bench.box()
    await one.exec("echo used > /app/used")
    await one.close()
    for _ in range(3):
        expect(not (await (await bench.box()).exec("test -e /app/used")).ok, "nothing of the earlier one is left")


async def check_warm_and_cold_are_equal(bench: Bench) -> None:
    """A prewarmed sandbox is like any other."""
    spec = SandboxSpec(image=bench.image, workdir="/srv/warm")
    await bench.provider.prewarm(spec, 2)
    for _ in range(3):
        box = bench.adopt(await bench.provider.acquire(spec))
        expect_output(await box.exec("pwd; ls -A; touch x"), b"/srv/warm\n", "a fresh working folder")


async def check_snapshot(bench: Bench) -> None:
    """A snapshot holds the files of its moment, for sandboxes started from it; the original goes on apart from it."""
    box = await bench.box()
    await box.exec("echo then > /app/when; echo gone > /app/gone; ln -s when /app/link; chmod 700 /app/when")
    snapshot = await box.snapshot()
    await box.exec("echo now > /app/when; rm /app/gone")
    started = await bench.provider.start_from(snapshot, box.spec, 2)
    for each in started:
        bench.adopt(each)
    expect(len(started) == 2, "two were started")
    for each in started:
        seen = await each.exec("cat /app/link /app/gone; stat -c %a /app/when; echo own > /app/when")
        expect_output(seen, b"then\ngone\n700\n", "the files of that moment")
    expect_output(
        await box.exec("cat /app/when; ls /app/gone 2>/dev/null || echo none"), b"now\nnone\n", "the original"
    )


async def check_fork(bench: Bench) -> None:
    """Forks start from the same files and then go their own ways, in parallel."""
    box = await bench.box()
    await box.exec("mkdir /app/set && cd /app/set && seq 2000 | while read n; do echo $n > $n; done", timeout_s=60)
    forks = [bench.adopt(each) for each in await box.fork(4)]
    expect(len({each.id for each in [*forks, box]}) == 5, "five sandboxes")
    results = await asyncio.gather(
        *(each.exec(f"echo {n} > /app/own; ls /app/set | wc -l; cat /app/set/1999") for n, each in enumerate(forks))
    )
    for result in results:
        expect_output(result, b"2000\n1999\n", "the set-up is there")
    owns = await asyncio.gather(*(each.exec("cat /app/own") for each in forks))
    expect([own.stdout for own in owns] == [b"0\n", b"1\n", b"2\n", b"3\n"], "each has its own", owns)
    expect_output(await box.exec("ls /app; cat /app/set/7"), b"set\n7\n", "the original has none of theirs")


async def check_fork_of_a_fork(bench: Bench) -> None:
    """A fork can be forked; deletions are inherited."""
    box = await bench.box()
    await box.exec("echo 1 > /app/a; echo 1 > /app/b")
    (child,) = await box.fork(1)
    bench.adopt(child)
    await child.exec("rm /app/a; echo 2 > /app/b")
    (grandchild,) = await child.fork(1)
    bench.adopt(grandchild)
    expect_output(await grandchild.exec("ls /app; cat /app/b"), b"b\n2\n", "it sees its parent's files")


async def check_alive(bench: Bench) -> None:
    """A living sandbox says so; a closed one says that it is not."""
    box = await bench.box()
    probe = await box.alive()
    expect(probe.alive and probe.main_exit_code is None, "alive", probe)
    await box.close()
    expect(not (await box.alive()).alive, "closed")


async def check_close(bench: Bench) -> None:
    """Closing is idempotent, ends commands under way with a lost channel, and later calls say that it is closed."""
    box = await bench.box()
    running = asyncio.ensure_future(box.exec("sleep 60"))
    await asyncio.sleep(0.2)
    await asyncio.gather(box.close(), box.close())
    await box.close()
    result = await running
    expect(result.channel_lost and result.exit_code is None, "the command under way lost its channel", result)
    after = await box.exec("echo no")
    expect(after.channel_lost and not after.ok, "a command after it, too", after)
    try:
        await box.read("/etc/passwd")
    except SandboxError as error:
        expect(error.code == "channel_lost", "channel_lost", error.code)
    else:
        expect(condition=False, what="reading raises")


async def check_unknown_image(bench: Bench) -> None:
    """An image that does not exist is a typed error that names it."""
    wanted = "no-such-image-anywhere:1"
    try:
        await bench.provider.ensure_image(None, wanted, build_s=30)
    except SandboxError as error:
        expect(error.code == "image_not_found" and wanted in error.message and error.hint, "image_not_found", error)
    else:
        expect(condition=False, what="an error is raised")


async def check_unknown_user(bench: Bench) -> None:
    """A user that the image does not have is a typed error, at the start or at the command."""
    try:
        await bench.box(user="nobody-of-that-name")
    except SandboxError as error:
        expect(error.code == "unknown_user", "unknown_user", error)
    else:
        expect(condition=False, what="an error is raised")
