"""``envsdk outcomes``: apply today's outcome table to the facts of stored episodes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from envsdk.cli.envelope import success
from envsdk.cli.options import JsonFlag, emit
from envsdk.errors import UsageError

app = typer.Typer(no_args_is_help=True)


@app.callback()
def outcomes() -> None:
    """Work with the outcomes of stored episodes."""


@app.command()
def reclassify(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A JSONL file of episodes, or a folder that holds some.")],
    *,
    write: Annotated[
        bool, typer.Option("--write", help="Put the changed outcomes into new files FILE.reclassified.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show which outcomes the table would give today, and which of them differ. The stored files are never changed.

    Example: envsdk outcomes reclassify runs/2026-01-01
    """
    from envsdk.files.jsonl import write_rows
    from envsdk.outcome.reclassify import reclassify_row

    changed: list[dict[str, Any]] = []
    counts: Counter[str] = Counter()
    for path in episode_files(run):
        rows = [reclassify_row(row) for row in _rows(path)]
        counts.update(new["outcome"]["outcome_class"] for new, _ in rows)
        changed += [{"file": str(path), **change} for _, change in rows if change]
        if write:
            write_rows(path.with_name(f"{path.name}.reclassified"), (new for new, _ in rows))
    lines = [f"{one['episode_id']}: {one['before']} -> {one['after']}" for one in changed]
    lines.append(
        f"{len(changed)} of {sum(counts.values())} outcomes differ; "
        + ", ".join(f"{k} {v}" for k, v in sorted(counts.items()))
    )
    emit(
        success(episodes=sum(counts.values()), outcomes=dict(counts), changed=changed),
        as_json=as_json,
        text="\n".join(lines),
    )


def episode_files(run: Path) -> list[Path]:
    """The episodes' files of a run: the file itself, or every one under a folder.

    Raises:
        UsageError: there is none (``no_episodes``).
    """
    found = [run] if run.is_file() else sorted(run.rglob("*.jsonl")) if run.is_dir() else []
    with_episodes = [path for path in found if next(_rows(path), None) is not None]
    if not with_episodes:
        raise UsageError(f"no episodes in {run}", code="no_episodes", hint="give a JSONL file of envsdk run --out")
    return with_episodes


def _rows(path: Path) -> Any:
    from envsdk.files.jsonl import iter_rows

    return (row for row in iter_rows(path) if "facts" in row and "outcome" in row)
