"""Progress of a command that takes its time, on stderr: a bar on a terminal, and nothing of it in a pipe.

What a piped run shall show, the command prints itself, a plain line for each thing that is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


def stderr_console() -> Console:
    """Where a command talks to people: stdout is for results."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


@contextmanager
def counted(console: Console, what: str, total: int) -> Iterator[Callable[[str], None]]:
    """A bar of ``total`` steps; call what it gives with a word on each step that is done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task(what, total=total)

        def done(word: str) -> None:
            progress.update(bar, advance=1, description=word)

        yield done
