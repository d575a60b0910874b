"""Files of an end state by content, permission bits and number, through the handle that a state verifier is given."""

from __future__ import annotations

from typing import Protocol

from envsdk.graders.verdict import Verdict, judged


class Readable(Protocol):
    """What is asked of a state: `envsdk.authoring.state.State` has it."""

    def read(self, path: str) -> bytes: ...
    def mode(self, path: str) -> int: ...
    def glob(self, pattern: str) -> list[str]: ...


def file(
    state: Readable, path: str, *, content: str | bytes | None = None, mode: int | None = None, count: int | None = None
) -> Verdict:
    """Right where every file that ``path`` names is as it must be.

    Args:
        state: the handle of the end state.
        path: absolute; ``*``, ``?`` and ``[..]`` match within a name, ``**`` any number of folders. Nothing that
            matches is ``no_answer``, or ``correct`` where ``count`` is 0.
        content: the exact bytes of each file; a text is UTF-8.
        mode: permission bits of each, such as ``0o755``.
        count: how many there must be; at least one by default.

    Raises:
        ValueError: a file is too large to read (`envsdk.authoring.state.MAX_READ_BYTES`).
    """
    found = state.glob(path)
    if count is not None and len(found) != count:
        return "incorrect" if found else "no_answer"
    if not found:
        return "correct" if count == 0 else "no_answer"
    wanted = content.encode() if isinstance(content, str) else content
    return judged(all(_is_so(state, place, wanted, mode) for place in found))


def _is_so(state: Readable, place: str, content: bytes | None, mode: int | None) -> bool:
    if mode is not None and state.mode(place) != mode:
        return False
    if content is None:
        return True
    try:
        return state.read(place) == content
    except FileNotFoundError:  # a folder
        return False
