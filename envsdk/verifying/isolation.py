"""The strongest box this machine offers a Python verifier's process, and a word for it.

``bubblewrap``: own namespaces, no network, a file system of the interpreter, its packages and the tests alone.
``unshare``: no network, the machine's files. ``none``: limits and kill only. The word is kept as evidence; nothing
claims more than was there.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/localtime", "/etc/ssl")
_PROBE_S = 10.0


def wrap(command: list[str], readable: Path) -> tuple[list[str], str]:
    """``command`` inside the box, which can read ``readable``, and the box's name."""
    kind = isolation()
    if kind == "bubblewrap":
        return [*_bubblewrap(readable), "--", *command], kind
    if kind == "unshare":
        return ["unshare", "--net", "--", *command], kind
    return command, kind


@cache
def isolation() -> str:
    """Which box works here; tried once."""
    if shutil.which("bwrap") and _works([*_bubblewrap(Path("/usr")), "--", sys.executable, "-I", "-c", ""]):
        return "bubblewrap"
    if shutil.which("unshare") and _works(["unshare", "--net", "--", sys.executable, "-I", "-c", ""]):
        return "unshare"
    return "none"


def _works(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, timeout=_PROBE_S, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _bubblewrap(readable: Path) -> list[str]:
    box = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--proc", "/proc", "--dev", "/dev"]
    box += ["--tmpfs", "/tmp"]  # noqa: S108 - the folder inside the box
    for place in (*_SYSTEM, *_python_places(), str(readable)):
        box += ["--ro-bind-try", place, place]
    return [*box, "--chdir", "/", "--clearenv", "--setenv", "PATH", "/usr/bin:/bin", "--setenv", "LANG", "C.UTF-8"]


@cache
def _python_places() -> tuple[str, ...]:
    """The interpreter's prefixes and every folder it imports from; of a source checkout the packages only."""
    places = [sys.prefix, sys.base_prefix]
    for entry in map(Path, sys.path):
        if not entry.is_dir() or any(entry.is_relative_to(place) for place in places):
            continue
        if entry.name in {"site-packages", "dist-packages"}:
            places.append(str(entry))
        else:
            places += [str(package) for package in sorted(entry.iterdir()) if (package / "__init__.py").is_file()]
    ours = str(Path(__file__).resolve().parents[1])
    return tuple(dict.fromkeys((*places, ours)))
