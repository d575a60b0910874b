"""What the kernel counted for a sandbox, read from its control group's files, either version."""

from __future__ import annotations

from collections.abc import Callable

from envsdk.sandboxes.base import Counters

_MIB = 1 << 20
FILES = {
    1: {
        "oom": ("memory", "memory.oom_control"),
        "memory_peak": ("memory", "memory.max_usage_in_bytes"),
        "memory_limit": ("memory", "memory.limit_in_bytes"),
        "pids_events": ("pids", "pids.events"),
        "pids_limit": ("pids", "pids.max"),
        "pids_peak": ("pids", "pids.peak"),
    },
    2: {
        "oom": ("memory", "memory.events"),
        "memory_peak": ("memory", "memory.peak"),
        "memory_limit": ("memory", "memory.max"),
        "pids_events": ("pids", "pids.events"),
        "pids_limit": ("pids", "pids.max"),
        "pids_peak": ("pids", "pids.peak"),
    },
}


def inside_paths(version: int) -> list[str]:
    """Where a container sees the files of its own group, in the order of `FILES`."""
    root = "/sys/fs/cgroup"
    if version == 1:
        return [f"{root}/{controller}/{name}" for controller, name in FILES[1].values()]
    return [f"{root}/{name}" for _, name in FILES[2].values()]


def counters_from(read: Callable[[str, str], bytes | None], version: int) -> Counters:
    """Counters by a reader of ``(controller, file)``; a file that is not there leaves its counter `None`."""
    texts = {key: read(controller, name) for key, (controller, name) in FILES[version].items()}
    peak, limit = _plain(texts["memory_peak"]), _plain(texts["memory_limit"])
    return Counters(
        oom_kills=_keyed(texts["oom"], "oom_kill"),
        memory_peak_mib=None if peak is None else peak / _MIB,
        memory_limit_mib=None if limit is None else limit / _MIB,
        pids_limit_hits=_keyed(texts["pids_events"], "max"),
        pids_peak=_plain(texts["pids_peak"]),
        pids_limit=_plain(texts["pids_limit"]),
    )


def _keyed(text: bytes | None, key: str) -> int | None:
    for line in (text or b"").decode("ascii", "replace").splitlines():
        name, _, value = line.partition(" ")
        if name == key and value.strip().isdecimal():
            return int(value)
    return None


def _plain(text: bytes | None) -> int | None:
    value = (text or b"").strip().decode("ascii", "replace")
    return int(value) if value.isdecimal() else None
