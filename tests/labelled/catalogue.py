"""Every labelled task."""

from __future__ import annotations

from tests.labelled import (
    answers,
    audited_programs,
    audits,
    comparisons,
    containers,
    disguises,
    filters,
    forms,
    harnesses,
    leaks,
    manifests,
    masks,
    moved_inputs,
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
    *moved_inputs.CASES,
    *audits.CASES,
    *containers.CASES,
    *audited_programs.CASES,
    *disguises.CASES,
    *filters.CASES,
    *masks.CASES,
)
