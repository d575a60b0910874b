"""What a fit says of a table: items with difficulty and interval, abilities, over-dispersion and flags."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from envsdk.errors import UsageError
from registry.calibration.drift import DRIFT_SE, alone, angles
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
    """Something to look at.

    ``negative_rest_score``: able models fail it, weak ones pass; ``drifted``: it moved alone between two models;
    ``no_overlap``: the table cannot tell ability and difficulty apart.
    """

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


def report_fit(table: ResponseTable, *, between: tuple[str, str] | None = None) -> FitReport:
    """Fit a table and report.

    Args:
        table: the responses.
        between: an earlier and a later model, between which tasks may have drifted.

    Raises:
        UsageError: the table holds no trial (``no_trials``), or not a model of ``between`` (``unknown_policy``).
    """
    if not table.responses.trials.any():
        raise UsageError("the table holds no trial", code="no_trials", hint="give rows with trials of 1 or more")
    fit = fit_rasch(table.responses)
    correlations = rest_score_correlations(table.responses)
    return FitReport(
        items=tuple(_item(table, fit, correlations, place) for place in range(len(table.tasks))),
        abilities=tuple(
            FittedModel(name, float(fit.theta[place]), float(fit.se.theta[place]))
            for place, name in enumerate(table.models)
        ),
        overdispersion=fit.m,
        flags=_flags(table, correlations) + (() if between is None else _drifted(table, fit, between)),
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


def _drifted(table: ResponseTable, fit: RaschFit, between: tuple[str, str]) -> tuple[Flag, ...]:
    missing = [name for name in between if name not in table.models]
    if missing:
        raise UsageError(
            f"there is no model {missing[0]!r} in the table",
            code="unknown_policy",
            hint=f"it has: {', '.join(table.models[:10])}",
        )
    rows = [table.models.index(name) for name in between]
    passes, trials = table.responses.passes[rows], table.responses.trials[rows]
    both = np.flatnonzero((trials > 0).all(axis=0))
    (before, after), variances = angles(passes[:, both], trials[:, both])
    se = np.sqrt(variances.sum(axis=0))
    moved = alone(before, after, se, fit.b[both])
    return tuple(
        Flag(
            table.tasks[task],
            "drifted",
            f"{passes[0, task]:g}/{trials[0, task]:g} to {passes[1, task]:g}/{trials[1, task]:g}: "
            f"{moved[place]:+.1f} standard errors against tasks of its difficulty",
        )
        for place, task in enumerate(both)
        if abs(moved[place]) > DRIFT_SE
    )
