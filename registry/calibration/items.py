"""Evidence belongs to a pair of digests: fold plain records into one item per (task digest, verifier digest).

Also what a table of responses says about its items: a task that able models fail and weak ones pass measures something
else than the others (negative rest-score correlation).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from registry.calibration.rasch import Floats, Responses
from registry.derive.flags import BROKEN_AFTER
from registry.saturation.eprocess import e_step

Graded = Literal["pass", "fail", "ungraded"]


@dataclass(frozen=True, slots=True)
class ItemTally:
    """Counts of one item. ``e_value`` runs over all graded outcomes; ``run_ungraded`` counts those in a row."""

    n: int = 0
    k: int = 0
    ungraded: int = 0
    e_value: float = 1.0
    run_ungraded: int = 0
    broken: bool = False


def fold_items(records: Iterable[tuple[str, str, Graded]]) -> dict[tuple[str, str], ItemTally]:
    """Tallies of records (task digest, verifier digest, outcome) in order: an edit of either starts a new item."""
    items: dict[tuple[str, str], ItemTally] = {}
    for task, verifier, outcome in records:
        items[task, verifier] = _after(items.get((task, verifier), ItemTally()), outcome)
    return items


def _after(item: ItemTally, outcome: Graded) -> ItemTally:
    if outcome == "ungraded":
        run = item.run_ungraded + 1
        return replace(item, ungraded=item.ungraded + 1, run_ungraded=run, broken=item.broken or run >= BROKEN_AFTER)
    passed = outcome == "pass"
    return replace(item, n=item.n + 1, k=item.k + passed, e_value=e_step(item.e_value, passed), run_ungraded=0)


def rest_score_correlations(responses: Responses) -> Floats:
    """[J] correlation of each task's pass rates with the models' rates on all other tasks.

    NaN where fewer than three models tried the task or one side does not vary: "cannot tell" is no flag.
    """
    tried = responses.trials > 0
    rates = np.divide(responses.passes, responses.trials, out=np.zeros_like(responses.passes), where=tried)
    totals, counts = rates.sum(axis=1), tried.sum(axis=1)
    out = np.full(rates.shape[1], np.nan)
    for task in range(rates.shape[1]):
        mine = tried[:, task] & (counts > 1)
        if mine.sum() < 3:
            continue
        x = rates[mine, task]
        y = (totals[mine] - x) / (counts[mine] - 1)
        if np.ptp(x) > 0 and np.ptp(y) > 0:
            out[task] = np.corrcoef(x, y)[0, 1]
    return out
