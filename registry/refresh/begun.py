"""Replacements that an interrupted refresh drew and began to measure, so that the next one goes on with them.

They are known by the name of the run under which they were measured, which says of which revision. A task that somebody
else pushed, a held-out one say, is never taken for a replacement.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import select

from envsdk.spec.model import Task
from registry.db import Item, Outcome, Run, SetItem, Standing
from registry.local import LocalRegistry
from registry.refresh.proposal import Plan, Planned

_OUT_OF_BAND = ("too_hard", "saturating", "saturated", "retired")


def run_name(plan: Plan) -> str:
    """The run under which a refresh measures its replacements."""
    return f"refresh-{plan.set_name}-{plan.revision}"


def begun(registry: LocalRegistry, plan: Plan, folder: Path) -> list[tuple[Planned, Task]]:
    """Checked draws of this plan that are in no set and may still be in the band, each with the place it is for."""
    with registry.database.reading() as session:
        rows = session.execute(
            select(Item.family, Item.spec, Item.task_digest, Item.verifier_digest)
            .join(Standing, (Standing.item_id == Item.id) & (Standing.lineage_id == plan.lineage_id))
            .where(
                Item.id.in_(
                    select(Outcome.item_id).join(Run, Run.id == Outcome.run_id).where(Run.name == run_name(plan))
                ),
                Item.id.not_in(select(SetItem.item_id)),
                Item.verified == "checked",
                Item.broken.is_(False),
                Standing.status.not_in(_OUT_OF_BAND),
            )
            .order_by(Item.id)
        ).all()
    places = list(plan.draw)
    taken: list[tuple[Planned, Task]] = []
    for row in rows:
        mine = [place for place in places if (place.family, place.level) == (row.family, row.spec.get("level"))]
        if mine:
            places.remove(mine[0])
            dest = folder / f"begun-{row.task_digest[:16]}-{row.verifier_digest[:8]}"
            taken.append((mine[0], registry.fetch(row.task_digest, row.verifier_digest, dest)))
    return taken


def without(places: Sequence[Planned], taken: Sequence[Planned]) -> list[Planned]:
    """``places`` less one for each of ``taken``."""
    left = list(places)
    for place in taken:
        left.remove(place)
    return left
