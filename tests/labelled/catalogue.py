"""Every labelled task."""

from __future__ import annotations

from tests.labelled import (
    answers,
    comparisons,
    forms,
    harnesses,
    leaks,
    manifests,
    oddities,
    reports,
    rewards,
    skips,
    statuses,
    surroundings,
    trust,
)
from tests.labelled.mini import Labelled

CASES: tuple[Labelled, ...] = (
    *statuses.CASES,
    *rewards.CASES,
    *skips.CASES,
    *trust.CASES,
    *surroundings.CASES,
    *comparisons.CASES,
    *leaks.CASES,
    *manifests.CASES,
    *answers.CASES,
    *reports.CASES,
    *harnesses.CASES,
    *forms.CASES,
    *oddities.CASES,
)
