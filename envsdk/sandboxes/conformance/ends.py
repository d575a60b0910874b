"""Checks of how commands end: signals, deadlines, process trees, background children, killers."""

from __future__ import annotations

import asyncio

from envsdk.sandboxes.base import Sandbox
from envsdk.sandboxes.conformance.bench import Bench, expect, expect_output


async def _processes(box: Sandbox, pattern: str) -> int:
    """Processes whose command line holds the pattern, the search itself left out."""
    script = (
        "n=0; for d in /proc/[0-9]*; do "
        f'if tr "\\000" " " < $d/cmdline 2>/dev/null | grep -q "{pattern}" && [ ${{d#/proc/}} != $$ ]; '
        "then case $(cat $d/stat 2>/dev/null) in *') Z '*) ;; *) n=$((n+1));; esac; fi; done; echo $n"
    )
    result = await box.exec(script, user="root", timeout_s=30)
    return int(result.stdout)


async def _until(box: Sandbox, pattern: str, count: int) -> None:
    """Wait, at most about ten seconds, for so many processes."""
    for _ in range(100):
        if await _processes(box, pattern) == count:
            return
        await asyncio.sleep(0.1)


async def check_signals(bench: Bench) -> None:
    """A command that a signal ended has the signal's number and no exit code; one that exits 137 exits 137."""
    box = await bench.box()
    for number in (9, 11, 15):
        result = await box.exec(f"kill -{number} $$")
        expect((result.exit_code, result.signal) == (None, number), f"signal {number}", result)
        expect(not result.timed_out and not result.channel_lost, "which is no deadline and no broken link", result)
    plain = await box.exec("exit 137")
    expect((plain.exit_code, plain.signal) == (137, None), "exit 137 is an exit code", plain)


async def check_not_found(bench: Bench) -> None:
    """Programs that are not there, or no programs, fail as in a shell."""
    box = await bench.box()
    missing = await box.exec(["no-such-program"])
    expect(missing.exit_code == 127, "127 for a program that is not there", missing)
    await box.write("/app/plain", b"text")
    refused = await box.exec(["/app/plain"])
    expect(refused.exit_code == 126, "126 for a file that cannot be run", refused)


async def check_deadline(bench: Bench) -> None:
    """A command over its time is ended: said so, with the output up to then, and its time measured."""
    box = await bench.box()
    result = await box.exec("echo before; sleep 600; echo after", timeout_s=2.0)
    expect(result.timed_out and result.exit_code is None and not result.ok, "timed out", result)
    expect(result.stdout == b"before\n", "what it wrote is kept", result)
    expect(1.9 < result.seconds < 300, "in its time", result)
    expect_output(await box.exec("echo on"), b"on\n", "the sandbox goes on")


async def check_deadline_kills_the_tree(bench: Bench) -> None:
    """Children, grandchildren, those in sessions of their own and those that ignore signals end with their command."""
    box = await bench.box()
    script = (
        "trap '' TERM HUP INT; sleep 4321 & setsid sleep 4322 & (setsid sh -c 'sleep 4323 & sleep 4324' &) ; "
        "(trap '' TERM; setsid nohup sleep 4325 >/dev/null 2>&1 &); env -i sleep 4326 & sleep 4327"
    )
    result = await box.exec(script, timeout_s=2.0)
    expect(result.timed_out, "timed out", result)
    left = await _processes(box, "sleep 432[1-7]")
    expect(left == 0, "nothing of it runs any more", left)


async def check_deadline_spares_others(bench: Bench) -> None:
    """A deadline ends its own command's processes only."""
    box = await bench.box()
    await box.exec("setsid sleep 5432 >/dev/null 2>&1 &")
    other = asyncio.ensure_future(box.exec("sleep 2.5; echo fine"))
    await box.exec("sleep 5433", timeout_s=0.5)
    expect(await _processes(box, "sleep 5432") == 1, "an earlier command's child lives")
    expect_output(await other, b"fine\n", "a command beside it, too")


async def check_background_children(bench: Bench) -> None:
    """A command ends with its main process; a child that holds its output open neither delays it nor dies of it."""
    box = await bench.box()
    child = "until [ -e /app/go ]; do sleep 0.1; done; echo late; echo alive > /app/late"
    result = await box.exec(f"({child}) & echo done", timeout_s=60)
    expect(result.ok and result.stdout == b"done\n", "it ends while its child waits", result)
    late = await box.exec("touch /app/go; until [ -s /app/late ]; do sleep 0.1; done; cat /app/late", timeout_s=60)
    expect_output(late, b"alive\n", "the child went on")


async def check_group_signal(bench: Bench) -> None:
    """``kill 0`` reaches the command's own group and nobody else's."""
    box = await bench.box()
    other = asyncio.ensure_future(box.exec("sleep 1; echo fine"))
    await asyncio.sleep(0.1)
    result = await box.exec("kill -9 0")
    expect(result.signal == 9, "it ended itself", result)
    expect_output(await other, b"fine\n", "not its neighbour")


async def check_agent_kills_everything(bench: Bench) -> None:
    """The agent may kill all it can reach; the sandbox answers all the same, and root's commands are not reached."""
    box = await bench.box()
    result = await box.exec("kill -9 -1; echo survived")
    expect(not result.channel_lost, "the link holds", result)
    expect_output(await box.exec("echo on"), b"on\n", "the sandbox answers")
    root = await box.exec("kill -9 1; kill -STOP 1; kill -9 -1; echo survived", user="root")
    expect(not root.channel_lost, "root does not end the helper either", root)
    expect((await box.alive()).alive, "it is alive")


async def check_kill_agent_processes(bench: Bench) -> None:
    """What the agent left running is killed and counted; commands under way end by signal 9."""
    box = await bench.box()
    await box.exec("setsid sleep 6543 >/dev/null 2>&1 & sleep 6544 >/dev/null 2>&1 &")
    running = asyncio.ensure_future(box.exec("exec sleep 6545"))
    await _until(box, "sleep 654[345]", 3)
    killed = await box.kill_agent_processes()
    expect(killed == 3, "three were killed", killed)
    expect((await running).signal == 9, "the command under way ended by it")
    expect(await _processes(box, "sleep 654[345]") == 0, "none is left")
    expect(await box.kill_agent_processes() == 0, "and then there is nothing to kill")


async def check_cancelled_command(bench: Bench) -> None:
    """Cancelling the caller kills the command's tree."""
    box = await bench.box()
    task = asyncio.ensure_future(box.exec("setsid sleep 7654 & sleep 7655"))
    await _until(box, "^sleep 765[45]", 2)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await _until(box, "sleep 765[45]", 0)
    expect(await _processes(box, "sleep 765[45]") == 0, "the tree is gone")
