"""Progress of a command that takes its time, on stderr: a bar on a terminal, and nothing of it in a pipe.

What a piped run shall show, the command prints itself, a plain line for each thing that is done; of thousands, a line
every two seconds (`walked`), and of one that takes long, where it stands (`waited`).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from envsdk.waiting import EVERY_S, told

T = TypeVar("T")
_LINE_S = 2.0


def stderr_console() -> Console:
    """Where a command talks to people: stdout is for results."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


@contextmanager
def counted(console: Console, what: str, total: int | None) -> Iterator[Callable[[str], None]]:
    """A bar of ``total`` steps, where that is known; call what it gives with a word on each step that is done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task(what, total=total)

        def done(word: str) -> None:
            progress.update(bar, advance=1, description=word)

        yield done


def walked(console: Console, what: str) -> Callable[[Iterable[T]], Iterator[T]]:
    """A way to go through many things one by one that says how far it has come."""

    def walk(things: Iterable[T], /) -> Iterator[T]:
        total = len(things) if isinstance(things, Sized) else None
        of = "" if total is None else f" of {total}"
        said_at = time.monotonic()
        with counted(console, what, total) as done:
            for number, thing in enumerate(things, start=1):
                yield thing
                done(what)
                if not console.is_terminal and time.monotonic() - said_at >= _LINE_S:
                    said_at = time.monotonic()
                    console.print(f"{what}: {number}{of}", markup=False)

    return walk


async def waited(console: Console, work: Awaitable[T], standing: Callable[[], str]) -> T:
    """The result of ``work``; in a pipe a plain line says until then where it stands.

    The first comes after two seconds, the next where ``standing`` says something else, and at least every `EVERY_S`.
    """
    if console.is_terminal:
        return await work
    last, said_at = "", time.monotonic()

    def say(line: str) -> None:
        nonlocal last, said_at
        if line != last or time.monotonic() - said_at >= EVERY_S:
            last, said_at = line, time.monotonic()
            console.print(line, markup=False)

    return await told(work, say, standing, every_s=_LINE_S)
