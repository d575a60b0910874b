"""Checks of commands: text and bytes in and out, users, folders, environment, many at once."""

from __future__ import annotations

import asyncio

from envsdk.sandboxes.conformance.bench import Bench, expect, expect_output

_ODD = "caf\u00e9 \u4e2d\u6587 \U0001f600 \u2028 \u0085 tab\t quote' \" $HOME `x` \\ end"


async def check_shell_text(bench: Bench) -> None:
    """A string is a shell command; stdout and stderr are apart, and the exit code is the command's."""
    result = await (await bench.box()).exec("echo out; echo err >&2; exit 7")
    expect(result.stdout == b"out\n" and result.stderr == b"err\n", "stdout and stderr are kept apart", result)
    expect(result.exit_code == 7 and result.signal is None and not result.ok, "exit code 7", result)


async def check_argument_list(bench: Bench) -> None:
    """A list is run as it is: no shell looks at it."""
    result = await (await bench.box()).exec(["printf", "%s|", "a b", "$HOME", "*", "", _ODD])
    expect_output(result, f"a b|$HOME|*||{_ODD}|".encode(), "arguments arrive unchanged")


async def check_bytes_out(bench: Bench) -> None:
    """Output is bytes as written: not UTF-8, zeros, no newline at the end."""
    result = await (await bench.box()).exec(r"printf '\377\376\000\001x'; printf '\200' >&2")
    expect(result.stdout == b"\xff\xfe\x00\x01x" and result.stderr == b"\x80", "bytes are kept", result)


async def check_unicode_separators(bench: Bench) -> None:
    """U+2028 and U+0085 are characters like others."""
    result = await (await bench.box()).exec(["printf", "%s", "a\u2028b\u0085c\r\nd"])
    expect_output(result, "a\u2028b\u0085c\r\nd".encode(), "separators pass unchanged")


async def check_bytes_in(bench: Bench) -> None:
    """Standard input is the bytes given, then its end; without any it is empty."""
    box = await bench.box()
    data = bytes(range(256)) * 5000
    expect_output(await box.exec("cat", stdin=data, output_cap_bytes=len(data)), data, "stdin comes back")
    expect_output(await box.exec("wc -c"), b"0\n", "no stdin is an empty one")


async def check_long_script(bench: Bench) -> None:
    """A shell command of 1 MiB."""
    size = 1 << 20
    result = await (await bench.box()).exec(f"x={'a' * size}; echo ${{#x}}")
    expect_output(result, f"{size}\n".encode(), "a script of 1 MiB runs")


async def check_many_arguments(bench: Bench) -> None:
    """Arguments of 1 MiB together."""
    words = ["b" * 1000] * 1048
    result = await (await bench.box()).exec(
        ["sh", "-c", "echo $#; for w; do last=$w; done; echo ${#last}", "sh", *words]
    )
    expect_output(result, b"1048\n1000\n", "1 MiB of arguments arrive")


async def check_user(bench: Bench) -> None:
    """The spec's user runs commands; another can be named, with the groups that it has."""
    box = await bench.box()
    agent = await box.exec("id -u; id -g")
    expect(agent.ok and agent.stdout.split()[0] != b"0", "the agent is not root", agent)
    expect_output(await box.exec("id -u; id -g; id -G", user="root"), b"0\n0\n0\n", "root can be named")
    expect_output(await box.exec("id -u; id -g", user="1234:4321"), b"1234\n4321\n", "numbers can be named")


async def check_no_way_back_to_root(bench: Bench) -> None:
    """The agent holds no capability and can gain no privilege."""
    status = await (await bench.box()).exec("grep -E '^(CapEff|CapPrm|CapAmb|NoNewPrivs)' /proc/self/status")
    values = dict(line.split(":\t") for line in status.stdout.decode().splitlines())
    expect(values.pop("NoNewPrivs", "") == "1", "no new privileges", status)
    expect(values and all(int(value, 16) == 0 for value in values.values()), "no capability", status)


async def check_folder(bench: Bench) -> None:
    """Commands start in the spec's working folder, which exists and belongs to the agent where it had to be made."""
    box = await bench.box(workdir="/srv/made/for/this")
    expect_output(
        await box.exec("pwd; touch new && echo yes"), b"/srv/made/for/this\nyes\n", "the folder is the agent's"
    )
    expect_output(await box.exec("pwd", cwd="/usr"), b"/usr\n", "another can be named")
    gone = await box.exec("pwd", cwd="/no/such/folder")
    expect(not gone.ok and gone.exit_code not in {0, None}, "a folder that is not there fails the command", gone)


async def check_environment(bench: Bench) -> None:
    """The spec's variables, the command's over them, a PATH and a HOME; nothing of the host's."""
    box = await bench.box(env=(("COLOR", "red"), ("SIZE", "a b\n'c'")))
    result = await box.exec('printf "%s|%s|%s" "$COLOR" "$SIZE" "$MORE"', env={"COLOR": _ODD, "MORE": ""})
    expect_output(result, f"{_ODD}|a b\n'c'|".encode(), "variables arrive unchanged")
    names = await box.exec("env | grep -o '^[A-Z_]*=' | sort | tr -d '\\n'")
    expect(b"PATH=" in names.stdout and b"HOME=" in names.stdout, "PATH and HOME are set", names)
    for foreign in (b"PYTHONPATH=", b"VIRTUAL_ENV=", b"SSH_", b"DOCKER_HOST="):
        expect(foreign not in names.stdout, "the host's variables stay out", names)


async def check_many_at_once(bench: Bench) -> None:
    """A hundred commands of one sandbox side by side, each with its own output."""
    box = await bench.box()
    results = await asyncio.gather(*(box.exec(f"echo {n}; echo e{n} >&2; exit {n}") for n in range(100)))
    for n, result in enumerate(results):
        expect(
            (result.exit_code, result.stdout, result.stderr) == (n, f"{n}\n".encode(), f"e{n}\n".encode()),
            f"command {n} has its own end",
            result,
        )


async def check_side_by_side(bench: Bench) -> None:
    """A slow command does not hold up a quick one."""
    box = await bench.box()
    slow = asyncio.ensure_future(box.exec("until [ -e /app/go ]; do sleep 0.1; done; echo slow", timeout_s=60))
    expect_output(await box.exec("echo quick", timeout_s=30), b"quick\n", "the quick one ends")
    await box.exec("touch /app/go")
    expect_output(await slow, b"slow\n", "the slow one ends, too")


async def check_output_cap(bench: Bench) -> None:
    """Output over the cap is counted, not kept, and does not stop the command."""
    box = await bench.box()
    result = await box.exec("head -c 3000000 /dev/zero; echo tail >&2; exit 4", output_cap_bytes=1000)
    expect(result.exit_code == 4, "the command goes on to its end", result)
    expect(len(result.stdout) + len(result.stderr) == 1000, "kept to the cap", result)
    expect(result.truncated and result.total_bytes == 3000005, "and all of it counted", result)
    whole = await box.exec("echo abc", output_cap_bytes=4)
    expect(whole.stdout == b"abc\n" and not whole.truncated, "exactly the cap is not cut", whole)


async def check_imitated_frames(bench: Bench) -> None:
    """Output that imitates the channel is output."""
    box = await bench.box()
    fake = b"\x00" * 16 + b"X" + (1).to_bytes(4, "little") + (30).to_bytes(4, "little") + b"\x00" * 30
    await box.write("/tmp/fake", fake * 50)  # noqa: S108 - inside the sandbox
    results = await asyncio.gather(*(box.exec("cat /tmp/fake; exit 9") for _ in range(10)))
    for result in results:
        expect(result.exit_code == 9 and result.stdout == fake * 50, "frames in output change nothing", result)
    for device in ("/proc/1/fd/1", "/dev/console"):
        await box.exec(f"cat /tmp/fake > {device}; printf '\\001\\000\\000\\000\\000\\000\\000\\001x' > {device}")
    expect_output(await box.exec("echo fine"), b"fine\n", "nor where it is written to the helper's own output")
