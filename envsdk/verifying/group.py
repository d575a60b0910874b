"""The control group that a Python verifier's process runs in, where this process may make one.

It bounds what the limits of single processes cannot: how many there are, and what they hold together. Whatever a
verifier starts is in it and ends with it, in whatever session it hides. Where there is no group, as for an ordinary
user without delegation, the limits of `envsdk.verifying.zygote` are all there is.
"""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import shlex
import signal
import time
from collections.abc import Sequence

from envsdk.sandboxes import cgroups
from envsdk.sandboxes.cgroups import Group
from envsdk.sandboxes.limits import Bounds
from envsdk.sandboxes.owner import place_tag, start_ticks, this_owner

MAX_PROCESSES = 512
_NAME = "verifier"
_WAIT_S = 5.0


def open_group() -> Group | None:
    """A new group for one verifier's process and all that it starts; `None` where none can be made."""
    if not cgroups.available():
        return None
    _remove_abandoned()
    owner = this_owner()
    name = f"{_NAME}-{place_tag(owner.place)}-{owner.pid}-{owner.started}-{secrets.token_hex(4)}"
    memory_mib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 21  # half of the machine's
    return cgroups.create(name, Bounds(cpus=float(os.cpu_count() or 1), memory_mib=memory_mib, pids=MAX_PROCESSES))


def joined(command: Sequence[str], group: Group | None) -> list[str]:
    """``command``, which puts itself into the group before anything else of it runs."""
    if group is None:
        return list(command)
    joins = " && ".join(f"echo 0 > {shlex.quote(str(path))}" for path in group.entries())
    return ["/bin/sh", "-c", f'{joins} && exec "$@"', "sh", *command]


def end_group(group: Group) -> None:
    """Kill everything in the group and remove it."""
    until = time.monotonic() + _WAIT_S
    while not group.remove() and time.monotonic() < until:
        for pid in group.members():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)


@functools.cache
def _remove_abandoned() -> None:
    """Groups of processes that were killed before they could end theirs; looked for once."""
    for group in cgroups.leftovers():
        kind, *owner = group.folders[0][1].name.split("-")
        if kind != _NAME or len(owner) != 4 or owner[0] != place_tag(this_owner().place):
            continue
        if start_ticks(int(owner[1])) != int(owner[2]):
            end_group(group)
