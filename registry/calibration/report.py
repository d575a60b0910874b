"""What a fit says of a table: items with difficulty and interval, abilities, over-dispersion and flags."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from registry.calibration.items import rest_score_correlations
from registry.calibration.rasch import RaschFit, fit_rasch
from registry.calibration.responses import ResponseTable

LEAST_MODELS = 3
"""With fewer models, or no task that two of them tried, difficulty and ability cannot be told apart."""
_Z90 = float(special.ndtri(0.95))


@dataclass(frozen=True, slots=True)
class FittedItem:
    """One task.

    ``low`` and ``high`` bound the 90 % interval; ``rest_score_corr`` is `None` where it cannot be told.
    """

    task: str
    difficulty: float
    se: float
    low: float
    high: float
    trials: int
    passes: int
    rest_score_corr: float | None


@dataclass(frozen=True, slots=True)
class FittedModel:
    """One policy's ability on the scale where the mean of all is 0."""

    model: str
    ability: float
    se: float


@dataclass(frozen=True, slots=True)
class Flag:
    """Something to look at: ``negative_rest_score`` (able models fail it, weak ones pass), ``no_overlap``."""

    task: str
    flag: str
    why: str


@dataclass(frozen=True, slots=True)
class FitReport:
    """A fit in the reader's words. ``overdispersion`` is m: small means that trials of one cell mostly agree."""

    items: tuple[FittedItem, ...]
    abilities: tuple[FittedModel, ...]
    overdispersion: float
    flags: tuple[Flag, ...]


def report_fit(table: ResponseTable) -> FitReport:
    """Fit a table and report."""
    fit = fit_rasch(table.responses)
    correlations = rest_score_correlations(table.responses)
    return FitReport(
        items=tuple(_item(table, fit, correlations, place) for place in range(len(table.tasks))),
        abilities=tuple(
            FittedModel(name, float(fit.theta[place]), float(fit.se.theta[place]))
            for place, name in enumerate(table.models)
        ),
        overdispersion=fit.m,
        flags=_flags(table, correlations),
    )


def _item(table: ResponseTable, fit: RaschFit, correlations: np.ndarray, place: int) -> FittedItem:
    b, se = float(fit.b[place]), float(fit.se.b[place])
    correlation = float(correlations[place])
    return FittedItem(
        task=table.tasks[place],
        difficulty=b,
        se=se,
        low=b - _Z90 * se,
        high=b + _Z90 * se,
        trials=int(table.responses.trials[:, place].sum()),
        passes=int(table.responses.passes[:, place].sum()),
        rest_score_corr=None if np.isnan(correlation) else correlation,
    )


def _flags(table: ResponseTable, correlations: np.ndarray) -> tuple[Flag, ...]:
    flags = []
    tried = table.responses.trials > 0
    if len(table.models) < LEAST_MODELS or not (tried.sum(axis=0) > 1).any():
        flags.append(Flag("", "no_overlap", f"{len(table.models)} models cannot tell ability and difficulty apart"))
    for place, task in enumerate(table.tasks):
        if correlations[place] < 0:
            why = f"rest-score correlation {correlations[place]:.2f}: able models fail it and weak ones pass"
            flags.append(Flag(task, "negative_rest_score", why))
    return tuple(flags)
