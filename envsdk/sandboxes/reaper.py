"""Removes what dead owners left: containers, networks, snapshots, control groups, folders, processes.

An owner that ends well closes what it opened; one that was killed leaves things that carry its mark
(`envsdk.sandboxes.owner`). The reaper removes exactly those whose owner is dead, or whose lease is over where the owner
cannot be asked. It runs when a provider starts, and by hand: ``python -m envsdk.sandboxes.reaper``, which also removes
images that nobody used for long (`envsdk.sandboxes.pruning`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
import time
from pathlib import Path

from envsdk.errors import PrerequisiteError, SandboxError
from envsdk.home import images_dir
from envsdk.sandboxes import cgroups
from envsdk.sandboxes.disk import remove_tree
from envsdk.sandboxes.docker_engine import Engine
from envsdk.sandboxes.owner import (
    LEASE_LABEL,
    LEASE_S,
    OWNER_LABEL,
    Owner,
    may_reap,
    place_tag,
    start_ticks,
    this_place,
)

_WAIT_S = 5.0
_EMPTY_S = 60.0
_BOX = re.compile(r"b[0-9a-f]{12}")


async def reap_docker(engine: Engine) -> list[str]:
    """Containers, then networks and snapshot images, of dead owners; returns what was removed."""
    api = engine.api
    gone: list[str] = []
    for container in await engine.call(api.containers, all=True, filters={"label": ["envsdk"]}):
        if _is_orphan(container.get("Labels")):
            await engine.remove(container["Id"])
            gone.append(f"container {container['Id'][:12]}")
    for network in await engine.networks():
        if _is_orphan(network.get("Labels")):
            with contextlib.suppress(SandboxError):  # another reaper was faster
                await engine.call(api.remove_network, network["Id"])
                gone.append(f"network {network['Id'][:12]}")
    for image in await engine.call(api.images, filters={"label": ["envsdk.kind=snapshot"]}):
        if _is_orphan(image.get("Labels")):
            with contextlib.suppress(SandboxError):
                await engine.call(api.remove_image, image["Id"], force=True)
                gone.append(f"snapshot {image['Id'][7:19]}")
    return gone


def _is_orphan(labels: dict[str, str] | None) -> bool:
    labels = labels or {}
    return OWNER_LABEL in labels and may_reap(labels[OWNER_LABEL], labels.get(LEASE_LABEL, ""))


def reap_bubblewrap(root: Path | None = None) -> list[str]:
    """Processes, control groups, folders and snapshot layers of dead owners; returns what was removed."""
    root = root or images_dir() / "bubblewrap"
    gone: list[str] = []
    orphans: set[str] = set()
    for folder in _folders(root / "boxes"):
        owner = Owner.parse(folder.name)
        if owner is not None and _is_dead(place_tag(owner.place), owner.pid, owner.started, folder):
            orphans.update(box.name for box in _folders(folder))
    groups = {group.folders[0][1].name: group for group in cgroups.leftovers()}
    for name in orphans & groups.keys():
        _end_group(groups[name])
        gone.append(f"group {name}")
    empty = [name for name in groups.keys() - orphans if is_abandoned(groups[name], now=time.time())]
    gone += [f"group {name}" for name in empty if groups[name].remove()]
    for folder in _folders(root / "boxes"):
        owner = Owner.parse(folder.name)
        if owner is not None and _is_dead(place_tag(owner.place), owner.pid, owner.started, folder):
            remove_tree(folder)
            gone.append(f"folder {folder.name}")
    for layer in _folders(root / "l"):
        tag, pid, started = snapshot_owner(layer.name)
        if pid and _is_dead(tag, pid, started, layer):
            remove_tree(layer)
            gone.append(f"snapshot {layer.name}")
    return gone


def is_abandoned(group: cgroups.Group, *, now: float) -> bool:
    """A sandbox's group that nothing runs in, a minute after it was made: its folder was another data folder's."""
    if not _BOX.fullmatch(group.folders[0][1].name) or group.members():
        return False
    try:
        return now - max(folder.stat().st_mtime for _, folder in group.folders) > _EMPTY_S
    except FileNotFoundError:
        return False


def snapshot_owner(layer: str) -> tuple[str, int, int]:
    """``(place, pid, start)`` from a snapshot's layer, ``s<place>-<pid>-<start>-<random>``; zeros for others."""
    parts = layer.split("-")
    if not layer.startswith("s") or len(parts) != 4:
        return "", 0, 0
    return parts[0][1:], int(parts[1]), int(parts[2])


def _is_dead(tag: str, pid: int, started: int, folder: Path) -> bool:
    """Whether the owner is dead; one from elsewhere counts as dead when its folder is older than a lease."""
    if tag == place_tag(this_place()):
        return start_ticks(pid) != started
    return folder.stat().st_mtime < time.time() - LEASE_S


def _folders(parent: Path) -> list[Path]:
    try:
        return [path for path in parent.iterdir() if path.is_dir() and not path.is_symlink()]
    except FileNotFoundError:
        return []


def _end_group(group: cgroups.Group) -> None:
    until = time.monotonic() + _WAIT_S
    while not group.remove() and time.monotonic() < until:
        for pid in group.members():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


async def reap_all() -> list[str]:
    """Both back ends, as far as they are here."""
    gone = await asyncio.to_thread(reap_bubblewrap)
    try:
        engine = await asyncio.to_thread(Engine.connect)
    except PrerequisiteError:
        return gone
    try:
        return gone + await reap_docker(engine)
    finally:
        engine.close()


async def _by_hand() -> list[str]:
    from envsdk.sandboxes.pruning import prune

    return await reap_all() + [f"image {image.name}" for image in await prune()]


if __name__ == "__main__":
    for line in asyncio.run(_by_hand()):
        print(f"removed {line}", file=sys.stderr)
