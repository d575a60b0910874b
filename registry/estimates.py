"""Read estimates back: the posterior of a pass rate with its interval, n, policy and date."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.bulk import is_one_of
from registry.client import Pair
from registry.db import Item, Lineage, Standing
from registry.derive.fold import chunks
from registry.derive.lineages import FRESH
from registry.query.sql import find_lineage


@dataclass(frozen=True, slots=True)
class Posterior:
    """Beta(alpha, beta) over a task's pass rate, for one lineage.

    Of it, ``prior_alpha`` and ``prior_beta`` are the prior's; the rest was counted.
    ``low`` and ``high`` bound the equal-tailed 90 % interval; ``n`` graded outcomes stand behind it (0: the prior
    alone).
    """

    alpha: float
    beta: float
    mean: float
    low: float
    high: float
    n: int
    ungraded: int
    status: str
    weight_version: int | None
    updated_at: float
    prior_alpha: float
    prior_beta: float


def posteriors_of(session: Session, pairs: Iterable[Pair], *, lineage: str = "") -> dict[Pair, Posterior]:
    """The posterior of each pair that is here. A lineage never measured has the prior everywhere: n is 0.

    Args:
        session: of an open registry.
        pairs: (task digest, verifier digest).
        lineage: a whole lineage name; empty for the reference.
    """
    wanted = set(pairs)
    exact = session.scalar(select(Lineage.id).where(Lineage.name == lineage)) if lineage else None
    lineage_id = exact if exact is not None else find_lineage(session, None)
    measured = exact is not None or not lineage
    found: dict[Pair, Posterior] = {}
    for some in chunks(sorted({task for task, _ in wanted})):
        found.update(item for item in _read(session, some, lineage_id, measured=measured) if item[0] in wanted)
    return found


def _read(
    session: Session, digests: Sequence[str], lineage_id: int, *, measured: bool
) -> Iterable[tuple[Pair, Posterior]]:
    rows = session.execute(
        select(Item.task_digest, Item.verifier_digest, Item.verified, Standing)
        .join(Standing, Standing.item_id == Item.id)
        .where(Standing.lineage_id == lineage_id, is_one_of(session, Item.task_digest, digests))
    )
    for task, verifier, verified, standing in rows:
        yield (task, verifier), (posterior_of(standing) if measured else fresh_posterior(verified, standing.updated_at))


def posterior_of(standing: Standing) -> Posterior:
    """A standing as a posterior."""
    return Posterior(
        alpha=standing.prior_alpha + standing.decayed_k,
        beta=standing.prior_beta + standing.decayed_n - standing.decayed_k,
        mean=standing.mean,
        low=standing.low,
        high=standing.high,
        n=standing.n,
        ungraded=standing.ungraded,
        status=standing.status,
        weight_version=standing.weight_version,
        updated_at=standing.updated_at,
        prior_alpha=standing.prior_alpha,
        prior_beta=standing.prior_beta,
    )


def fresh_posterior(verified: str, at: float) -> Posterior:
    """The posterior of an item that a lineage never met."""
    return Posterior(
        alpha=FRESH["prior_alpha"],
        beta=FRESH["prior_beta"],
        mean=FRESH["mean"],
        low=FRESH["low"],
        high=FRESH["high"],
        n=0,
        ungraded=0,
        status="checked" if verified == "checked" else "draft",
        weight_version=None,
        updated_at=at,
        prior_alpha=FRESH["prior_alpha"],
        prior_beta=FRESH["prior_beta"],
    )
