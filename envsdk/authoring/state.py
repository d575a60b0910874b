"""The read handle that a state verifier is given on the end state of an episode.

Paths are absolute, as in the sandbox. Whatever the agent left is evidence, never instructions: links are followed
inside the state only, nothing is executed, and sizes are bounded.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Protocol, runtime_checkable

MAX_READ_BYTES = 16 << 20
MAX_MATCHES = 100_000


@runtime_checkable
class State(Protocol):
    """What a state verifier may ask. A missing file is `FileNotFoundError`, a too large one `ValueError`."""

    def read(self, path: str) -> bytes: ...
    def exists(self, path: str) -> bool: ...
    def mode(self, path: str) -> int: ...
    def glob(self, pattern: str) -> list[str]: ...
    def list(self, path: str) -> list[str]: ...


class FolderState:
    """A state that lies in a folder: a path of the sandbox is that path under ``root``.

    A link, absolute or not, is followed as it would be in the sandbox, so that none leads out of ``root``.
    """

    def __init__(self, root: Path) -> None:
        self._root = Path(os.path.realpath(root))

    def read(self, path: str) -> bytes:
        place = self._resolve(path)
        if not place.is_file():
            raise FileNotFoundError(path)
        if place.stat().st_size > MAX_READ_BYTES:
            raise ValueError(f"{path} is larger than {MAX_READ_BYTES} bytes")
        return place.read_bytes()

    def exists(self, path: str) -> bool:
        try:
            return self._resolve(path).exists()
        except FileNotFoundError:
            return False

    def mode(self, path: str) -> int:
        """Permission bits, such as ``0o755``."""
        place = self._resolve(path)
        if not place.exists():
            raise FileNotFoundError(path)
        return stat.S_IMODE(place.stat().st_mode)

    def glob(self, pattern: str) -> list[str]:
        """Paths of files and folders that match, sorted; links to folders are not entered.

        ``*``, ``?`` and ``[..]`` match within a name, ``**`` any number of folders, and names with a leading dot like
        any other. More than `MAX_MATCHES` things looked at is a `ValueError`.
        """
        plain = "/".join(part for part in pattern.split("/") if part not in {"", "."})
        fixed = re.split(r"[*?\[]", plain, maxsplit=1)[0]
        if fixed == plain:
            return [f"/{plain}"] if self.exists(plain) else []
        fixed = fixed.rpartition("/")[0]
        matches = re.compile(_regex(plain)).fullmatch
        start = self._resolve(fixed)
        found, seen = [], 0
        for folder, names, files in os.walk(start):
            relative = Path(folder).relative_to(start).as_posix()
            for name in (*names, *files):
                seen += 1
                path = "/".join(part for part in (fixed, "" if relative == "." else relative, name) if part)
                if matches(path) and self.exists(path):
                    found.append(f"/{path}")
            if seen > MAX_MATCHES:
                raise ValueError(f"{pattern} looks at more than {MAX_MATCHES} files")
        return sorted(found)

    def list(self, path: str) -> list[str]:
        """Names in a folder, sorted."""
        place = self._resolve(path)
        if not place.is_dir():
            raise FileNotFoundError(path)
        return sorted(os.listdir(place))  # noqa: PTH208 - names, not paths

    def _resolve(self, path: str) -> Path:
        """The real place of ``path``: link targets are taken from ``root``, so that none leads out of it."""
        here: list[str] = []
        pending = path.split("/")[::-1]
        steps = 0
        while pending:
            part = pending.pop()
            if part in {"", "."}:
                continue
            if part == "..":
                here = here[:-1]
                continue
            place = self._root.joinpath(*here, part)
            if place.is_symlink():
                steps += 1
                if steps > 40:  # the kernel's own bound
                    raise FileNotFoundError(path)
                target = str(place.readlink())
                here = [] if target.startswith("/") else here
                pending += target.split("/")[::-1]
                continue
            here.append(part)
        return self._root.joinpath(*here)


def _regex(pattern: str) -> str:
    """A glob pattern without its first slash as a regular expression over whole paths."""
    parts = []
    for sign in re.findall(r"\*\*/|\*\*|\*|\?|\[!?\]?[^\]]*\]|.", pattern, re.DOTALL):
        if sign == "**/":
            parts.append("(?:[^/]+/)*")
        elif sign in {"**", "*"}:
            parts.append(".*" if sign == "**" else "[^/]*")
        elif sign == "?":
            parts.append("[^/]")
        elif sign.startswith("[") and len(sign) > 1:
            inside = sign[1:-1].replace("\\", "\\\\").replace("[", "\\[")
            parts.append(f"(?!/)[{'^' + inside[1:] if inside.startswith('!') else inside}]")
        else:
            parts.append(re.escape(sign))
    return "(?s:" + "".join(parts) + ")"
