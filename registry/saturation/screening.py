"""How many episodes a task needs by itself: four at a time until one class is certain, at most 32.

On cells drawn from public agent benchmarks this takes 15 episodes on average and is nearly as often right as a fixed
32. Tasks that are measured together do better: `saturation.lookahead` shares their episodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from registry.saturation.posterior import Beta, Regions, regions, updated

STEP = 4
AT_MOST = 32
CERTAIN = 0.95

Verdict = Literal["too_hard", "learnable", "saturated", "uncertain"]


@dataclass(frozen=True, slots=True)
class Look:
    """The posterior's three classes after ``n`` graded outcomes."""

    n: int
    regions: Regions


@dataclass(frozen=True, slots=True)
class Screening:
    """What screening one task came to. ``n``: graded outcomes used; ``used``: entries of the stream consumed."""

    looks: tuple[Look, ...]
    n: int
    used: int
    verdict: Verdict


def certain_class(found: Regions) -> Verdict:
    """The class that holds 95 % of the posterior, or ``uncertain``."""
    if found.low >= CERTAIN:
        return "too_hard"
    if found.high >= CERTAIN:
        return "saturated"
    return "learnable" if found.mid >= CERTAIN else "uncertain"


def likeliest_class(found: Regions) -> tuple[Verdict, float]:
    """The class that holds most of the posterior, and how much of it."""
    classes: tuple[tuple[Verdict, float], ...] = (
        ("too_hard", found.low),
        ("learnable", found.mid),
        ("saturated", found.high),
    )
    return max(classes, key=lambda one: one[1])


def screen(prior: Beta, outcomes: Iterable[bool | None]) -> Screening:
    """Screen a task on a stream of outcomes (`None`: ungraded, skipped).

    A stream that ends early leaves ``uncertain``.
    """
    looks: list[Look] = []
    n = k = used = 0
    for outcome in outcomes:
        used += 1
        if outcome is None:
            continue
        n, k = n + 1, k + bool(outcome)
        if n % STEP:
            continue
        look = Look(n, regions(updated(prior, passes=k, trials=n)))
        looks.append(look)
        verdict = certain_class(look.regions)
        if verdict != "uncertain" or n >= AT_MOST:
            return Screening(tuple(looks), n, used, verdict)
    return Screening(tuple(looks), n, used, "uncertain")
