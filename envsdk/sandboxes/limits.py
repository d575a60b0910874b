"""What a sandbox gets where its spec does not say: bounded everywhere, never "unlimited"."""

from __future__ import annotations

from dataclasses import dataclass

from envsdk.sandboxes.base import Limits

OPEN_FILES = 4096
SHM_MIB = 64


@dataclass(frozen=True, slots=True)
class Bounds:
    """`Limits` with every field filled in."""

    cpus: float = 1.0
    memory_mib: int = 2048
    disk_mib: int = 4096
    pids: int = 256


def bounds(limits: Limits) -> Bounds:
    """The limits that apply: the spec's, and the defaults for what it leaves open."""
    given = {name: value for name, value in limits.model_dump().items() if value is not None}
    return Bounds(**given)
