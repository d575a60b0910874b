"""How tasks went of late: pass rates by weight version over each task's newest outcomes, for the lines in a list."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from registry.bulk import is_one_of
from registry.client import Pair
from registry.db import Item

NEWEST = 256
"""Outcomes looked at for each task; reading all of them would cost what the list must not."""
_NEWEST = (
    "SELECT item_id, weight_version, sum(CASE WHEN passed THEN 1 ELSE 0 END) AS passes, count(passed) AS trials "
    "FROM (SELECT item_id, weight_version, passed FROM outcome "
    "WHERE item_id = :item_{place} AND lineage_id = :lineage ORDER BY id DESC LIMIT :newest) AS newest_{place} "
    "GROUP BY item_id, weight_version"
)


def recent_rates(session: Session, pairs: Sequence[Pair], lineage: int) -> dict[Pair, list[float]]:
    """Pass rates by weight version, oldest first, of tasks that ``lineage`` met under more than one version."""
    if not pairs:
        return {}
    wanted = set(pairs)
    # By the first digest alone: SQLite reads every item where pairs are compared with a list of pairs.
    found = session.execute(
        select(Item.id, Item.task_digest, Item.verifier_digest).where(
            is_one_of(session, Item.task_digest, sorted({task for task, _ in wanted}))
        )
    )
    pair_of = {row.id: pair for row in found if (pair := (row.task_digest, row.verifier_digest)) in wanted}
    if not pair_of:
        return {}
    # As text: the same statement built of fifty selects costs more than running it.
    parts = (_NEWEST.format(place=place) for place in range(len(pair_of)))
    given = {f"item_{place}": item for place, item in enumerate(pair_of)}
    newest = text(" UNION ALL ".join(parts)).bindparams(lineage=lineage, newest=NEWEST, **given)
    rates: dict[Pair, dict[int, float]] = defaultdict(dict)
    for item, version, passes, trials in session.execute(newest):
        if trials:
            rates[pair_of[item]][version] = passes / trials
    return {
        pair: [versions[version] for version in sorted(versions)]
        for pair, versions in rates.items()
        if len(versions) > 1
    }
