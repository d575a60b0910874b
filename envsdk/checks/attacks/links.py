"""A submission that is a link to the file it is compared with, or to the stream that holds it."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterator

from envsdk.checks.attacks.ground import Attack, Ground
from envsdk.checks.scene import Scene

MAX_FILES = 8


def attacks(ground: Ground) -> Iterator[Attack]:
    """Every target as a link to the verifier's file that is named most like it, then all to each file, and to stdin."""
    expected = [f"/{path}" for path in ground.tests if path != "tests/test.sh"]
    if not ground.targets:
        return
    if expected and len(ground.targets) > 1:
        yield _linked("the files of the verifier", {target: _nearest(target, expected) for target in ground.targets})
    for source in [*expected[:MAX_FILES], "/dev/stdin"]:
        yield _linked(source, dict.fromkeys(ground.targets, source))


def _linked(what: str, links: dict[str, str]) -> Attack:
    pairs = [(shlex.quote(target), shlex.quote(source)) for target, source in links.items()]
    script = "; ".join(
        f"mkdir -p $(dirname {target}); rm -rf {target}; ln -s {source} {target}" for target, source in pairs
    )
    return Attack(f"the submission as a link to {what}", Scene(script=script))


def _nearest(target: str, sources: list[str]) -> str:
    name = target.rsplit("/", 1)[-1]
    return max(sources, key=lambda source: difflib.SequenceMatcher(None, name, source.rsplit("/", 1)[-1]).ratio())
