"""What can be counted: a record that the tables hold, an outcome of a known task.

What cannot is rejected with a stable code: ``invalid_record``, ``not_a_number``, ``graded_without_reward``,
``unknown_digest`` (no such task and verifier here). Each is looked at once an episode, in bulk ingest too, hence the
words are made only where something is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from envsdk.episode.record import EpisodeRecord
from registry.db import Outcome

_COLUMNS = {name: Outcome.__table__.c[name].type.length for name in ("episode_id", "group_id", "cause")}  # type: ignore[attr-defined]
_ID, _GROUP, _CAUSE = _COLUMNS["episode_id"], _COLUMNS["group_id"], _COLUMNS["cause"]
_NAME = 256
"""Characters of a model's or a lineage's name."""
_INTEGER = 2**31


@dataclass(frozen=True, slots=True)
class Rejected:
    """What was not taken: ``which`` is an episode id, a slug or a line; ``code`` is stable."""

    which: str
    code: str
    why: str


def fault_of(record: EpisodeRecord) -> Rejected | None:
    """Why a record cannot be counted wherever it is sent, `None` where it can.

    Such a one must not take its batch along.
    """
    if why := _too_large(record):
        return Rejected(record.episode_id[:_ID], "invalid_record", why)
    outcome = record.outcome
    if not _finite(record):
        return Rejected(record.episode_id, "not_a_number", "a reward or a time is NaN or infinite")
    if outcome.graded and outcome.reward is None:
        return Rejected(record.episode_id, "graded_without_reward", "the episode is graded but its reward is absent")
    return None


def unknown_digest(episode_id: str, task_digest: str, verifier_digest: str) -> Rejected:
    """The refusal of an outcome whose task and verifier are not here."""
    pair = f"{task_digest[:12]} under verifier {verifier_digest[:12]}"
    return Rejected(episode_id, "unknown_digest", f"task {pair} is not in this registry; push it first")


def _finite(record: EpisodeRecord) -> bool:
    outcome = record.outcome
    return (
        isfinite(record.started_at)
        and isfinite(outcome.reward or 0.0)
        and isfinite(record.times.total_s or 0.0)
        and (not outcome.rewards or all(map(isfinite, outcome.rewards.values())))
    )


def _too_large(record: EpisodeRecord) -> str:
    policy = record.policy
    for what, text, most in (
        ("episode_id", record.episode_id, _ID),
        ("group_id", record.group_id, _GROUP),
        ("outcome.cause", record.outcome.cause, _CAUSE),
        ("policy.model", policy.model, _NAME),
        ("policy.lineage", policy.lineage, _NAME),
    ):
        if len(text) > most or "\0" in text:
            return f"{what} is longer than {most} characters or holds a NUL character"
    if abs(record.weight_version_oldest or 0) >= _INTEGER or (tokens_of(record) or 0) >= _INTEGER:
        return "a weight version or a count of tokens is out of range"
    return ""


def tokens_of(record: EpisodeRecord) -> int | None:
    """Tokens that the policy generated, `None` where nothing was asked of it."""
    return sum([turn.generated_tokens for turn in record.turns]) if record.turns else None
