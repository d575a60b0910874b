"""Records of episodes that ended outside themselves: the scheduler cancelled them, or their machinery broke.

They carry what is known (whose policy, which task, which facts) and nothing else. Class, cause and what follows come
from the outcome table, which tells a cancel of our own from one from outside by who cancelled.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from envsdk.episode.record import EpisodeRecord, PolicyId
from envsdk.outcome import classify
from trainer.group import Member


def cancelled(member: Member, *, policy: PolicyId) -> EpisodeRecord:
    """The scheduler gave the episode up, or the run was stopped: closed, never tried again."""
    return _record(_row(member), policy, _cancel("scheduler"))


def given_up(record: EpisodeRecord) -> EpisodeRecord:
    """The record of an episode whose group was given up while it ran; one that had ended by itself stays as it is."""
    if record.facts.get("ended_by") != "cancel":
        return record
    facts = {**record.facts, "cancelled_by": "scheduler"}
    return record.model_copy(update={"facts": facts, "outcome": classify(facts)})


def crashed(member: Member, error: BaseException, *, policy: PolicyId) -> EpisodeRecord:
    """Something raised that should have been a record: a failure of the machinery, tried again."""
    what = {"kind": type(error).__name__, "note": str(error)}
    return _record(_row(member), policy, {"phase": "agent", "ended_by": "exception", "exception": what})


def abandoned(row: Mapping[str, Any], *, policy: PolicyId) -> EpisodeRecord:
    """A killed run left it open; ``row`` is its start in the ledger. Its place is dispatched anew, under a new id."""
    return _record(row, policy, _cancel("restart"))


def _cancel(by: str) -> dict[str, Any]:
    return {"phase": "agent", "ended_by": "cancel", "cancelled_by": by}


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


def _record(row: Mapping[str, Any], policy: PolicyId, facts: dict[str, Any]) -> EpisodeRecord:
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
        outcome=classify(facts),
        facts=facts,
        started_at=time.time(),
    )
