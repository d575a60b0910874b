"""What Python left of a program that is no longer there: ``__pycache__/NAME.cpython-311.pyc`` of a file to be written.

Beside a source of that name, a stub or another program's module, the remains count where they were not made from it:
their head tells the source's size.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Mapping

from envsdk.checks.outputs import read_files
from envsdk.checks.scene import Scene
from envsdk.checks.stage import Stage

_SIZE = slice(12, 16)
_FLAGS = slice(4, 8)
_STEM = re.compile(r"(?P<stem>.+?)(?:\.cpython-\d+(?:\.opt-\d)?)?\.pyc")
_BY_TIME = b"\0\0\0\0"
MAX_FILES = 20


async def compiled_remains(stage: Stage, targets: Iterable[str], before: Mapping[str, bytes]) -> list[str]:
    """Paths of compiled forms of the targets that no source in the image accounts for. Raises `SandboxError`."""
    wanted = {posixpath.splitext(posixpath.basename(path))[0]: path for path in targets if path.endswith(".py")}
    if not wanted:
        return []
    names = " -o ".join(f"-name {shlex.quote(stem + '.*pyc')} -o -name {shlex.quote(stem + '.pyc')}" for stem in wanted)
    command = (
        f"find / -xdev \\( -path /proc -o -path /sys -o -path /usr/lib -o -path '/usr/local/lib/python*' \\) -prune "
        f"-o -type f -readable \\( {names} \\) -print 2>/dev/null | head -n {MAX_FILES}"
    )
    async with stage.box(Scene()) as box:
        listed = await box.exec(command, user=stage.task.spec.agent.user, cwd="/", timeout_s=60.0)
        found = await read_files(box, listed.stdout.decode("utf-8", "surrogateescape").splitlines())
        beside = await read_files(box, [_source(path) for path in found])
    return [
        path
        for path, data in found.items()
        if _is_of_another(data, beside.get(_source(path), before.get(wanted.get(_stem(path), ""))))
    ]


def _source(path: str) -> str:
    """Where the source of a compiled form lies, if it is still there."""
    folder = posixpath.dirname(path)
    folder = posixpath.dirname(folder) if posixpath.basename(folder) == "__pycache__" else folder
    return posixpath.join(folder, f"{_stem(path)}.py")


def _stem(path: str) -> str:
    match = _STEM.fullmatch(posixpath.basename(path))
    return match["stem"] if match else ""


def _is_of_another(compiled: bytes, source: bytes | None) -> bool:
    if source is None:
        return True
    return compiled[_FLAGS] == _BY_TIME and int.from_bytes(compiled[_SIZE], "little") != len(source)
