"""Records of episodes that ended outside themselves: the scheduler cancelled them, or their machinery broke.

They carry what is known (whose policy, which task, which facts) and nothing else. The class comes from the outcome
table; only that a cancel of our own is not dispatched again is decided here, since the table's ``cancelled`` is one
from outside.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from envsdk.episode.record import EpisodeRecord, Outcome, PolicyId
from envsdk.outcome import classify
from trainer.group import Member


def cancelled(member: Member, *, policy: PolicyId) -> EpisodeRecord:
    """The scheduler gave the episode up, or the run was stopped: closed, never tried again."""
    return _record(_row(member), policy, {"phase": "agent", "ended_by": "cancel"}, again=False)


def given_up(record: EpisodeRecord) -> EpisodeRecord:
    """The record of an episode whose group was given up while it ended: kept as it is, never tried again."""
    return record.model_copy(update={"outcome": record.outcome.model_copy(update={"redispatch": False})})


def crashed(member: Member, error: BaseException, *, policy: PolicyId) -> EpisodeRecord:
    """Something raised that should have been a record: a failure of the machinery, tried again."""
    what = {"kind": type(error).__name__, "note": str(error)}
    return _record(_row(member), policy, {"phase": "agent", "ended_by": "exception", "exception": what}, again=True)


def abandoned(row: Mapping[str, Any], *, policy: PolicyId) -> EpisodeRecord:
    """A killed run left it open; ``row`` is its start in the ledger. Its place is dispatched anew, under a new id."""
    return _record(row, policy, {"phase": "agent", "ended_by": "cancel"}, again=False)


def _row(member: Member) -> dict[str, Any]:
    task = member.draw.task
    return {
        "episode_id": member.episode_id,
        "group_id": member.draw.group_id,
        "index": member.index,
        "attempt": member.attempt,
        "slug": task.slug,
        "task_digest": task.digests.task,
        "verifier_digest": task.digests.verifier,
        "family": task.spec.family,
    }


def _record(row: Mapping[str, Any], policy: PolicyId, facts: dict[str, Any], *, again: bool) -> EpisodeRecord:
    outcome: Outcome = classify(facts)
    return EpisodeRecord(
        episode_id=row["episode_id"],
        slug=row["slug"],
        task_digest=row["task_digest"],
        verifier_digest=row["verifier_digest"],
        family=row.get("family", ""),
        group_id=row["group_id"],
        index_in_group=row["index"],
        attempt=row["attempt"],
        policy=policy,
        outcome=outcome if again else outcome.model_copy(update={"redispatch": False}),
        facts=facts,
        started_at=time.time(),
    )
