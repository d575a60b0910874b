"""Programs planted in a folder of the verifier's PATH."""

from __future__ import annotations

from collections.abc import Iterator

from envsdk.checks.attacks.ground import Attack, Ground
from envsdk.checks.scene import Scene

_LANGUAGES = (
    "python3",
    "python",
    "pytest",
    "node",
    "npm",
    "npx",
    "ruby",
    "perl",
    "java",
    "cargo",
    "go",
    "make",
    "ctest",
)
_COMPARERS = ("jq", "grep", "egrep", "fgrep", "cmp", "diff", "test", "sha256sum", "md5sum", "sqlite3", "curl")
PAYLOADS = {
    "exit 0": "exit 0",
    "print 1": "echo 1",
    "write the reward": "echo 1 > /logs/verifier/reward.txt",
}


def attacks(ground: Ground) -> Iterator[Attack]:
    """Every program that the verifier may ask for a verdict, replaced by one that says yes."""
    used = [name for name in (*_LANGUAGES, *_COMPARERS) if ground.mentions(name)]
    if not used or not ground.path_folders:
        return
    for what, line in PAYLOADS.items():
        programs = [f"{folder}/{name}" for folder in ground.path_folders for name in used]
        files = {path: f"#!/bin/sh\n{line}\n".encode() for path in programs}
        scene = Scene(files={**ground.base, **files}, script=f"chmod 755 {' '.join(programs)}")
        yield Attack(f"programs on PATH that {what}: {', '.join(used)}", scene)
