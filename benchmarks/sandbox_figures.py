"""The measurements behind ``benchmarks/sandboxes.py``, one function a figure."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from envsdk.home import BASE_IMAGE
from envsdk.sandboxes.base import Sandbox, SandboxProvider, SandboxSpec
from envsdk.sandboxes.bubblewrap import BubblewrapProvider
from envsdk.sandboxes.docker import DockerProvider
from envsdk.sandboxes.docker_engine import new_labels
from envsdk.sandboxes.docker_options import create_arguments

IMAGE = BASE_IMAGE
# Lives a second in a burst of 32 (start, five commands, stop), measured earlier on such a machine: the best peer's.
PEER_LIVES_S = 1.7
SETUP = "sleep 2; head -c 52428800 /dev/urandom > /app/setup.bin"


@dataclass(frozen=True)
class Row:
    """One line of the table; ``values`` are the raw numbers."""

    figure: str
    measured: str
    bar: str
    is_met: bool | None = None
    values: dict[str, float] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        return {True: "yes", False: "no", None: ""}[self.is_met]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


async def timed(work: Awaitable[Any]) -> float:
    """Milliseconds that it took."""
    began = time.perf_counter()
    await work
    return (time.perf_counter() - began) * 1e3


def quantile(values: list[float], q: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


def spread(values: list[float]) -> str:
    return f"p50 {quantile(values, 0.5):.2f} ms, p99 {quantile(values, 0.99):.2f} ms"


async def warm_acquire(provider: DockerProvider, image: str) -> list[Row]:
    """Acquire from a pool that was filled a second ago, 1, 8 and 32 at once; beside it, the first command of each."""
    spec = SandboxSpec(image=image)
    rows = []
    for width in (1, 8, 32):
        times: list[float] = []
        firsts: list[float] = []
        for _ in range({1: 24, 8: 5, 32: 3}[width]):
            await provider.prewarm(spec, width)
            await provider.settled()
            await asyncio.sleep(1.0)
            boxes: list[Sandbox] = []

            async def take(into: list[Sandbox] = boxes) -> None:
                into.append(await provider.acquire(spec))

            times += await asyncio.gather(*(timed(take()) for _ in range(width)))
            firsts += await asyncio.gather(*(timed(box.exec("true")) for box in boxes))
            await asyncio.gather(*(box.close() for box in boxes))
            await provider.settled()
        p50, p99 = quantile(times, 0.5), quantile(times, 0.99)
        rows.append(
            Row(
                f"acquire from a warm docker pool, {width} at once",
                f"{spread(times)}; first command p50 {quantile(firsts, 0.5):.1f} ms",
                "p50 <= 5 ms, p99 <= 50 ms",
                p50 <= 5 and p99 <= 50,
                {"width": width, "p50_ms": p50, "p99_ms": p99, "n": len(times)},
            )
        )
    return rows


async def _raw_start(provider: DockerProvider, image: str) -> None:
    """Create, start, first command by an engine exec: what the engine's API costs by itself, same options."""
    api, call = provider.engine.api, provider.engine.call
    arguments = create_arguments(api, SandboxSpec(image=image), "envsdk-raw", "")
    arguments |= {"entrypoint": ["sleep", "1000"], "user": "", "stdin_open": False}
    arguments["host_config"] = {**arguments["host_config"], "Binds": []}
    made = await call(api.create_container, image, **arguments)
    try:
        await call(api.start, made["Id"])
        await _raw_exec(provider, made["Id"])
    finally:
        provider.later(provider.engine.remove(made["Id"]))


async def _raw_exec(provider: DockerProvider, container: str) -> None:
    api, call = provider.engine.api, provider.engine.call
    run = await call(api.exec_create, container, ["sh", "-c", "echo hi"])
    assert await call(api.exec_start, run["Id"]) == b"hi\n"


async def _our_start(provider: Any, image: str) -> None:
    box = await provider.start(SandboxSpec(image=image), 60.0)
    assert (await box.exec("echo hi")).stdout == b"hi\n"
    await box.close()


async def cold_start(provider: DockerProvider, image: str) -> list[Row]:
    ours, raw = [], []
    for _ in range(12):
        ours.append(await timed(_our_start(provider, image)))
        await provider.settled()
        raw.append(await timed(_raw_start(provider, image)))
        await provider.settled()
    ratio = statistics.median(a / b for a, b in zip(ours, raw, strict=True))
    return [
        Row(
            "cold docker start to first command, against the raw API",
            f"{quantile(ours, 0.5):.0f} ms against {quantile(raw, 0.5):.0f} ms: {ratio:.2f}x",
            "<= 1.15x",
            ratio <= 1.15,
            {"ours_ms": quantile(ours, 0.5), "raw_ms": quantile(raw, 0.5), "ratio": ratio, "n": len(ours)},
        )
    ]


async def disabled_network(provider: DockerProvider, image: str) -> list[Row]:
    """Eight raw containers at once: networking disabled, against network mode ``none``, in turn."""
    api, call = provider.engine.api, provider.engine.call
    times: dict[bool, list[float]] = {True: [], False: []}

    async def one(is_disabled: bool) -> None:
        host = api.create_host_config(network_mode="none", log_config={"Type": "none"})
        options = {"network_disabled": is_disabled, "host_config": host, "labels": new_labels(kind="sandbox")}
        made = await call(api.create_container, image, entrypoint=["sleep", "1000"], **options)
        await call(api.start, made["Id"])
        provider.later(provider.engine.remove(made["Id"]))

    for _ in range(4):
        for is_disabled, into in times.items():
            into.append(await timed(asyncio.gather(*(one(is_disabled) for _ in range(8)))))
            await provider.settled()
    ours, raw = quantile(times[True], 0.5), quantile(times[False], 0.5)
    return [
        Row(
            "eight containers at once, networking disabled against network mode none",
            f"{ours:.0f} ms against {raw:.0f} ms: {ours / raw:.2f}x",
            "stated",
            None,
            {"disabled_ms": ours, "none_ms": raw},
        )
    ]


async def _alone(box: Sandbox, n: int) -> list[float]:
    return [await timed(box.exec("echo hi")) for _ in range(n)]


async def _per_second(boxes: list[Sandbox], n: int) -> float:
    async def some(box: Sandbox) -> None:
        for _ in range(n):
            assert (await box.exec("echo hi")).stdout == b"hi\n"

    began = time.perf_counter()
    await asyncio.gather(*(some(box) for box in boxes))
    return len(boxes) * n / (time.perf_counter() - began)


async def commands(provider: DockerProvider, image: str) -> list[Row]:
    boxes = [await provider.start(SandboxSpec(image=image), 60.0) for _ in range(32)]
    await _alone(boxes[0], 100)
    alone, raw = [], []
    for _ in range(10):
        alone += await _alone(boxes[0], 100)
        raw += [await timed(_raw_exec(provider, boxes[0].id)) for _ in range(4)]
    rate = max([await _per_second(list(boxes), 100) for _ in range(3)])
    ratio = quantile(alone, 0.5) / quantile(raw, 0.5)
    await asyncio.gather(*(box.close() for box in boxes))
    return [
        Row(
            "command on the kept channel, alone",
            spread(alone),
            "p50 <= 1.5 ms",
            quantile(alone, 0.5) <= 1.5,
            {"p50_ms": quantile(alone, 0.5), "p99_ms": quantile(alone, 0.99), "n": len(alone)},
        ),
        Row("commands a second, 32 sandboxes", f"{rate:.0f}/s", ">= 1,000/s", rate >= 1000, {"per_s": rate}),
        Row(
            "command against one engine exec each",
            f"{quantile(alone, 0.5):.2f} ms against {quantile(raw, 0.5):.1f} ms: 1/{1 / ratio:.0f}",
            "<= 1/40",
            ratio <= 1 / 40,
            {"raw_ms": quantile(raw, 0.5), "ratio": ratio},
        ),
    ]


async def _one_life(provider: SandboxProvider, spec: SandboxSpec, judge: SandboxSpec) -> None:
    """An episode's sandboxes: acquire, five commands, verify in a fresh one, close both."""
    box = await provider.acquire(spec)
    for number in range(5):
        assert (await box.exec(f"echo {number} >> /app/log")).ok
    fresh = await provider.acquire(judge)
    await fresh.write("/app/log", await box.read("/app/log"))
    await box.close()
    assert (await fresh.exec("wc -l < /app/log")).stdout.strip() == b"5"
    await fresh.close()


async def _lives(provider: SandboxProvider, image: str, n: int) -> float:
    spec, judge = SandboxSpec(image=image), SandboxSpec(image=image, user="root")
    began = time.perf_counter()
    await asyncio.gather(*(_one_life(provider, spec, judge) for _ in range(n)))
    return n / (time.perf_counter() - began)


async def life(provider: DockerProvider, image: str) -> list[Row]:
    spec, judge = SandboxSpec(image=image), SandboxSpec(image=image, user="root")
    cold_began = time.perf_counter()
    cold = await _lives(provider, image, 32)
    await provider.settled()
    cold_settled = 32 / (time.perf_counter() - cold_began)
    began = time.perf_counter()
    await asyncio.gather(provider.prewarm(spec, 32), provider.prewarm(judge, 32))
    refill = 64 / (time.perf_counter() - began)
    warm = await _lives(provider, image, 32)
    await provider.settled()
    return [
        Row(
            "whole lives a second, 32 at once, from filled pools, against the best peer's",
            f"{warm:.1f}/s: {warm / PEER_LIVES_S:.1f}x; refill {refill:.1f} sandboxes/s",
            f">= 10x of {PEER_LIVES_S}/s",
            warm >= 10 * PEER_LIVES_S,
            {"lives_per_s": warm, "ratio": warm / PEER_LIVES_S, "refill_per_s": refill},
        ),
        Row(
            "the same from empty pools (two cold starts a life)",
            f"{cold:.1f}/s: {cold / PEER_LIVES_S:.1f}x ({cold_settled:.1f}/s with every removal done)",
            f">= 1.2x of {PEER_LIVES_S}/s",
            cold >= 1.2 * PEER_LIVES_S,
            {"lives_per_s": cold, "settled_per_s": cold_settled},
        ),
    ]


async def fork_prepared(provider: DockerProvider, image: str) -> list[Row]:
    spec = SandboxSpec(image=image)

    async def by_fork() -> None:
        box = await provider.start(spec, 60.0)
        assert (await box.exec(SETUP, timeout_s=60)).ok
        forks = await box.fork(8)
        await asyncio.gather(*(each.exec("test -s /app/setup.bin") for each in forks))
        await asyncio.gather(box.close(), *(each.close() for each in forks))

    async def one_after_another() -> None:
        for _ in range(8):
            box = await provider.start(spec, 60.0)
            assert (await box.exec(SETUP, timeout_s=60)).ok
            await box.close()

    forked = await timed(by_fork())
    await provider.settled()
    serial = await timed(one_after_another())
    await provider.settled()
    return [
        Row(
            "8 siblings with a 2 s, 50 MB set-up: set up once and fork, against 8 set-ups in turn",
            f"{forked / 1e3:.1f} s against {serial / 1e3:.1f} s: 1/{serial / forked:.1f}",
            "<= 1/5",
            forked <= serial / 5,
            {"fork_ms": forked, "serial_ms": serial, "ratio": forked / serial},
        )
    ]


def _memory_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[1])


async def idle_docker(provider: DockerProvider, image: str) -> list[Row]:
    box = await provider.start(SandboxSpec(image=image), 60.0)
    described = await provider.engine.call(provider.engine.api.inspect_container, box.id)
    helper = int(described["State"]["Pid"])
    shim = _parent(helper)
    ours, engines = _memory_mib(helper), _memory_mib(shim)
    await box.close()
    return [
        Row(
            "an idle warm docker sandbox",
            f"ours: 1 process, {ours:.2f} MiB; the engine's shim: {engines:.1f} MiB",
            "stated",
            None,
            {"helper_mib": ours, "shim_mib": engines},
        )
    ]


async def _bare_start(provider: BubblewrapProvider, image: str) -> None:
    """Bubblewrap alone on the same tree, read-only, no limits, no filter, no overlay: the floor of the tool itself."""
    known = provider.store.image(image)
    assert known is not None
    tree = provider.store.layer(known.layers[0])
    process = await asyncio.create_subprocess_exec(
        *("bwrap", "--ro-bind", str(tree), "/", "--proc", "/proc", "--dev", "/dev", "--unshare-all", "--"),
        *("/bin/sh", "-c", "echo hi"),
        stdout=asyncio.subprocess.PIPE,
    )
    assert (await process.communicate())[0] == b"hi\n"


async def bubblewrap_start(provider: BubblewrapProvider, image: str) -> list[Row]:
    ours, bare = [], []
    for _ in range(40):
        ours.append(await timed(_our_start(provider, image)))
        await provider.settled()
        bare.append(await timed(_bare_start(provider, image)))
    return [
        Row(
            "bubblewrap start to first command, limits and filter on",
            f"{spread(ours)}; bubblewrap alone, read-only: p50 {quantile(bare, 0.5):.2f} ms",
            "p50 <= 15 ms",
            quantile(ours, 0.5) <= 15,
            {"p50_ms": quantile(ours, 0.5), "p99_ms": quantile(ours, 0.99), "bare_p50_ms": quantile(bare, 0.5)},
        )
    ]


async def bubblewrap_fork(provider: BubblewrapProvider, image: str) -> list[Row]:
    times = []
    for _ in range(10):
        box = await provider.start(SandboxSpec(image=image), 60.0)
        assert (await box.exec("head -c 104857600 /dev/zero > /app/big")).ok
        began = time.perf_counter()
        (child,) = await box.fork(1)
        times.append((time.perf_counter() - began) * 1e3)
        assert (await child.exec("wc -c < /app/big")).stdout == b"104857600\n"
        await asyncio.gather(box.close(), child.close())
        await provider.settled()
    return [
        Row(
            "bubblewrap fork of a prepared sandbox with 100 MB written",
            spread(times),
            "p50 <= 15 ms",
            quantile(times, 0.5) <= 15,
            {"p50_ms": quantile(times, 0.5), "p99_ms": quantile(times, 0.99), "n": len(times)},
        )
    ]


async def bubblewrap_commands(provider: BubblewrapProvider, image: str) -> list[Row]:
    boxes = [await provider.start(SandboxSpec(image=image), 60.0) for _ in range(32)]
    await _alone(boxes[0], 100)
    alone = await _alone(boxes[0], 1000)
    rate = max([await _per_second(list(boxes), 100) for _ in range(3)])
    await asyncio.gather(*(box.close() for box in boxes))
    return [
        Row(
            "bubblewrap command, alone; commands a second at 32",
            f"{spread(alone)}; {rate:.0f}/s",
            "p50 <= 1.5 ms; >= 1,000/s",
            quantile(alone, 0.5) <= 1.5 and rate >= 1000,
            {"p50_ms": quantile(alone, 0.5), "per_s": rate},
        )
    ]


async def bubblewrap_life(provider: BubblewrapProvider, image: str) -> list[Row]:
    rate = await _lives(provider, image, 32)
    await provider.settled()
    return [
        Row(
            "bubblewrap whole lives a second, 32 at once, from empty pools",
            f"{rate:.1f}/s: {rate / PEER_LIVES_S:.1f}x of the best peer's {PEER_LIVES_S}/s",
            ">= 1.2x",
            rate >= 1.2 * PEER_LIVES_S,
            {"lives_per_s": rate, "ratio": rate / PEER_LIVES_S},
        )
    ]
