"""``envsdk draw``: task directories of a family, by level and seeds."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from envsdk.cli.envelope import success
from envsdk.cli.options import JsonFlag, emit
from envsdk.errors import UsageError

if TYPE_CHECKING:
    from envsdk.authoring.draw import Scalar
    from envsdk.authoring.families import Family

_SEEDS_AT_ONCE = 100_000


def draw(
    family: Annotated[
        str, typer.Argument(metavar="FAMILY", help="An installed family's name, or the .py file that declares it.")
    ],
    dest: Annotated[Path, typer.Argument(metavar="DEST", help="Folder for the task directories.")],
    *,
    level: Annotated[list[str] | None, typer.Option(metavar="KNOB=VALUE", help="A level; else the easiest.")] = None,
    seeds: Annotated[
        str, typer.Option(metavar="A..B", help="Seeds, both ends included; each gives one task.")
    ] = "0..7",
    tag: Annotated[list[str] | None, typer.Option(help="A tag for every task, beside the family's own.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Draw tasks of a family into DEST. Equal draws of several seeds are written once.

    Examples: envsdk draw upper-word tasks --level words=1 --seeds 0..63; envsdk draw mine.py::add-numbers tasks
    """
    from envsdk.authoring import get_family
    from envsdk.authoring.families import Family

    found = get_family(family)
    tagged = Family(dataclasses.replace(found.declaration, tags=(*found.declaration.tags, *(tag or ()))))
    chosen = dict(_setting(text, found) for text in level or ())
    tasks = tagged.draw_many(seeds=_range(seeds), dest=dest, level=chosen)
    rows = [
        {
            "slug": task.slug,
            "path": str(task.root),
            "task_digest": task.digests.task,
            "verifier_digest": task.digests.verifier,
        }
        for task in tasks
    ]
    emit(success(tasks=rows), as_json=as_json, text="\n".join(row["path"] for row in rows))


def _range(text: str) -> range:
    # Of ASCII digits, and no more of them than a seed of 64 bits has.
    ends = re.fullmatch(r"([0-9]{1,19})(?:\.\.([0-9]{1,19}))?", text)
    if ends is None or int(ends[2] or ends[1]) < int(ends[1]):
        raise UsageError(f"{text!r} is no range of seeds", code="bad_seeds", hint="write 0..63, or one number")
    found = range(int(ends[1]), int(ends[2] or ends[1]) + 1)
    if len(found) > _SEEDS_AT_ONCE:
        raise UsageError(
            f"{text} are {len(found):,} seeds; at most {_SEEDS_AT_ONCE:,} are drawn at once",
            code="bad_seeds",
            hint="draw them in parts, into folders of their own",
        )
    return found


def _setting(text: str, family: Family) -> tuple[str, Scalar]:
    knob, sign, value = text.partition("=")
    if not sign:
        raise UsageError(f"{text!r} sets no level", code="bad_level", hint="write KNOB=VALUE")
    # Typed by the family: the value that is spelled so. An unknown one is passed on as text, for its own error.
    options = family.levels.get(knob, ())
    return knob, next((option for option in options if str(option).lower() == value.lower()), value)
