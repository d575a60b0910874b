"""Who started a sandbox: the mark that lets a reaper tell the living's from the dead's.

An owner is a process: where it runs (boot and process namespace), its id there and the kernel's start time of it, so
that a reused process id never passes for the dead owner. Labels carry it, with a lease: what belongs to a process that
cannot be asked from here may go when that is over.
"""

from __future__ import annotations

import functools
import hashlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

LABEL = "envsdk"
OWNER_LABEL = "envsdk.owner"
LEASE_LABEL = "envsdk.lease_until"
LEASE_S = 6 * 3600.0
_FIRST_PID_SPACE = 0xEFFFFFFC  # the kernel's own number for the namespace that is not inside a container
_BOOT_ID_LENGTH = 36


@dataclass(frozen=True, slots=True)
class Owner:
    """A process somewhere; ``started`` is in clock ticks after boot (``/proc/PID/stat`` field 22)."""

    place: str
    pid: int
    started: int

    def __str__(self) -> str:
        return f"{self.place}.{self.pid}.{self.started}"

    @classmethod
    def parse(cls, text: str) -> Owner | None:
        """The owner that `str` wrote, or `None` where the text is no owner's."""
        parts = text.rsplit(".", 2)
        if len(parts) != 3 or not parts[1].isdecimal() or not parts[2].isdecimal():
            return None
        return cls(parts[0], int(parts[1]), int(parts[2]))


@functools.cache
def this_place() -> str:
    """This boot of this machine and this process namespace: where process ids mean what they mean here.

    Machines, and containers of one machine, that share an engine or a data folder differ in it.
    """
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    space = Path("/proc/self/ns/pid").stat().st_ino
    return boot if space == _FIRST_PID_SPACE else f"{boot}-{space}"


def place_tag(place: str) -> str:
    """A place in eight letters, for names that must be short."""
    return place[:8] if len(place) == _BOOT_ID_LENGTH else hashlib.sha256(place.encode()).hexdigest()[:8]


def start_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks after boot; `None` where it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in {"Z", "X"} else int(fields[19])


def this_owner() -> Owner:
    """The calling process. Not cached: a forked worker is an owner of its own."""
    return Owner(this_place(), os.getpid(), start_ticks(os.getpid()) or 0)


def labels() -> dict[str, str]:
    """Labels for everything this process creates in an engine."""
    return {LABEL: "1", OWNER_LABEL: str(this_owner()), LEASE_LABEL: f"{time.time() + LEASE_S:.0f}"}


def may_reap(owner_text: str, lease_until: str, *, now: float | None = None) -> bool:
    """Whether what carries these labels may be removed.

    Its owner ran here and is dead, or ran elsewhere (another boot, machine or process namespace) and the lease is over.
    What a process here owns is kept while it lives, whatever the lease says.
    """
    owner = Owner.parse(owner_text)
    if owner is not None and owner.place == this_place():
        return start_ticks(owner.pid) != owner.started
    try:
        return float(lease_until) < (time.time() if now is None else now)
    except ValueError:
        return True
