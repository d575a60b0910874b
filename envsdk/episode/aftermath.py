"""What can be observed right after an episode's acting ended: probes and counters that the model cannot write.

Nothing here judges; it fills facts for the outcome table. A fact that could not be observed is left out.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import time
from pathlib import Path
from typing import Any

from envsdk.errors import SandboxError
from envsdk.sandboxes.base import Counters, Sandbox, SandboxProvider, SandboxSpec

_PRESSURE = Path("/proc/pressure/cpu")
_PROBE_CAP_S = 60.0
PLAIN_ENDS = frozenset({"final_answer", "turn_limit", "token_limit", "inference_reply", "tool_call_errors"})
DEADLINES = frozenset({"step_deadline", "episode_deadline"})


async def look(box: Sandbox, ended_by: str, provider: SandboxProvider | None = None) -> dict[str, Any]:
    """Facts of the box, its limits and the host; an end of the model's own needs none."""
    if ended_by in PLAIN_ENDS:
        return {}
    facts: dict[str, Any] = {}
    probe = await box.alive()
    facts["sandbox"] = {
        "alive": probe.alive,
        **_observed(main_exit_code=probe.main_exit_code, oom_flag=probe.oom_flag),
    }
    engine = _observed(reachable=probe.engine_reachable, restarted=probe.engine_restarted)
    if engine:
        facts["engine"] = engine
    if ended_by in DEADLINES:
        facts["host"] = await host_load()
        return facts
    with contextlib.suppress(SandboxError):  # a box that is gone has no counters: they stay unobserved
        facts |= counted(await box.counters(), host_free_mib=storage_free(provider))
    return facts


def storage_free(provider: SandboxProvider | None) -> int | None:
    """MiB left on the disk that the sandboxes write to, where the back end can tell."""
    ask = getattr(provider, "storage_free_mib", None)
    return ask() if ask is not None else None


def full_disk(error: BaseException) -> dict[str, Any]:
    """The fact that the machine's disk is full, where that is what an error says."""
    is_full = isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}
    return {"disk": {"full": "host"}} if is_full or getattr(error, "code", "") == "host_disk_full" else {}


def counted(counters: Counters, *, host_free_mib: int | None = None) -> dict[str, Any]:
    """Counters as facts: only what the kernel counted."""
    facts: dict[str, Any] = {}
    if counters.oom_kills:
        facts["memory"] = {
            "cgroup": "task",
            "oom_kills": counters.oom_kills,
            **_observed(peak_mib=counters.memory_peak_mib, limit_mib=counters.memory_limit_mib),
        }
    if counters.pids_limit_hits:
        facts["pids"] = {
            "limit_hits": counters.pids_limit_hits,
            **_observed(peak=counters.pids_peak, limit=counters.pids_limit, host_free=_host_pids_free()),
        }
    if counters.disk_used_mib is not None and counters.disk_quota_mib is not None:
        facts["disk"] = {
            "task_used_mib": round(counters.disk_used_mib, 1),
            "task_quota_mib": counters.disk_quota_mib,
            **_observed(host_free_mib=host_free_mib),
        }
    return facts


async def host_load() -> dict[str, float]:
    """Seconds a trivial program takes on this host, its run queue, and how long runnable tasks waited for a CPU."""
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec("true")
    try:
        await asyncio.wait_for(process.wait(), _PROBE_CAP_S)
    except TimeoutError:
        process.kill()
        await process.wait()
    load = {"probe_s": round(time.monotonic() - began, 4), **_observed(run_queue=run_queue())}
    pressure = cpu_pressure()
    return load if pressure is None else {**load, "cpu_pressure": pressure}


def run_queue() -> float | None:
    """Runnable tasks for each processor now; `None` where the kernel does not tell."""
    try:
        runnable = int(Path("/proc/loadavg").read_text(encoding="ascii").split()[3].split("/")[0])
    except (OSError, ValueError, IndexError):
        return None
    return round(runnable / (os.cpu_count() or 1), 2)


def cpu_pressure(source: Path = _PRESSURE) -> float | None:
    """``some avg10`` of the kernel's pressure record as a share; `None` where the kernel keeps none."""
    try:
        first = source.read_text(encoding="ascii").splitlines()[0].split()
    except (OSError, IndexError):
        return None
    fields = dict(field.split("=", 1) for field in first if "=" in field)
    return round(float(fields["avg10"]) / 100, 4) if "avg10" in fields else None


async def recover(box: Sandbox, provider: SandboxProvider) -> Sandbox | None:
    """Start a dead box again from its file system; `None` where that cannot be done."""
    try:
        snapshot = await box.snapshot()
        [again] = await provider.start_from(snapshot, box.spec)
    except SandboxError:
        return None
    return again


async def pristine_answers(provider: SandboxProvider, spec: SandboxSpec) -> bool:
    """A fresh sandbox of the same image answers the probe that the episode's box did not."""
    try:
        fresh = await provider.acquire(spec)
    except SandboxError:
        return False
    try:
        return (await fresh.alive()).alive
    finally:
        await fresh.close()


def _observed(**facts: Any) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if value is not None}


def _host_pids_free() -> int | None:
    try:
        most = int(Path("/proc/sys/kernel/pid_max").read_text(encoding="ascii"))
        now = int(Path("/proc/loadavg").read_text(encoding="ascii").split()[3].split("/")[1])
    except (OSError, ValueError, IndexError):
        return None
    return max(0, most - now)
