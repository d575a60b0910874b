"""``envsdk images``: what sandboxes built here, and removing what nobody used for long."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Annotated

import typer

from envsdk.cli.envelope import success
from envsdk.cli.options import JsonFlag, emit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from envsdk.sandboxes.pruning import BuiltImage

app = typer.Typer(no_args_is_help=True)


@app.callback()
def images() -> None:
    """List and prune the images that were built or set up here."""


@app.command("list")
def list_images(*, as_json: JsonFlag = False) -> None:
    """Built images and kept set-ups of both back ends, longest unused first.

    Example: envsdk images list
    """
    from envsdk.sandboxes.pruning import list_built

    found = sorted(asyncio.run(list_built()), key=lambda image: image.used_at)
    emit(success(images=_rows(found)), as_json=as_json, text=_lines(found, "in all"))


@app.command()
def prune(
    *,
    older_than_days: Annotated[float, typer.Option(min=0.25, help="Remove what was not used for so many days.")] = 30.0,
    budget_gib: Annotated[
        float | None, typer.Option(min=0.0, help="Then remove the longest unused until the rest fits.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Remove images that nobody used for long. What was used in the last six hours stays, whatever the budget.

    Example: envsdk images prune --older-than-days 7 --budget-gib 20
    """
    from envsdk.sandboxes.pruning import prune as remove

    budget_mib = None if budget_gib is None else budget_gib * 1024
    gone = asyncio.run(remove(max_age_s=older_than_days * 86_400, budget_mib=budget_mib, is_trial=dry_run))
    text = _lines(gone, "would be removed" if dry_run else "removed")
    emit(success(removed=_rows(gone), dry_run=dry_run), as_json=as_json, text=text)


def _rows(images: Sequence[BuiltImage]) -> list[dict[str, str | float]]:
    return [
        {
            "sandbox": image.back_end,
            "name": image.name,
            "size_mib": round(image.size_mib, 1),
            "unused_days": round((time.time() - image.used_at) / 86_400, 2),
        }
        for image in images
    ]


def _lines(images: Sequence[BuiltImage], what: str) -> str:
    rows = [
        f"{row['sandbox']:<11}{row['size_mib']:>9} MiB  unused {row['unused_days']} days  {row['name']}"
        for row in _rows(images)
    ]
    total = sum(image.size_mib for image in images)
    return "\n".join([*rows, f"{len(images)} images, {total:.0f} MiB {what}"])
