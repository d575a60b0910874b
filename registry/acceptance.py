"""What can be counted: a ledger's line that is a record, a record that the tables hold, an outcome of a known task.

What cannot is rejected with a stable code: ``invalid_record``, ``not_a_number``, ``graded_without_reward``,
``unknown_digest`` (no such task and verifier here).
"""

from __future__ import annotations

import json
import math
from collections.abc import Container
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from envsdk.episode.record import EpisodeRecord
from registry.db import Outcome

_COLUMNS = {name: Outcome.__table__.c[name].type.length for name in ("episode_id", "group_id", "cause")}  # type: ignore[attr-defined]
_NAME = 256
"""Characters of a model's or a lineage's name."""
_INTEGER = 2**31


@dataclass(frozen=True, slots=True)
class Rejected:
    """What was not taken: ``which`` is an episode id, a slug or a line; ``code`` is stable."""

    which: str
    code: str
    why: str


def read_line(line: bytes | str, *, which: str) -> EpisodeRecord | Rejected:
    """One ledger line as a record, or why it is none."""
    try:
        # The validator's own parser is fast and reads these words as numbers; only a line that holds one is read twice.
        plain = line if isinstance(line, bytes) else line.encode(errors="replace")
        if b"NaN" in plain or b"Infinity" in plain:
            json.loads(line, parse_constant=_no_constant)
        return EpisodeRecord.model_validate_json(line)
    except _NotANumberError as error:
        return Rejected(which, "not_a_number", f"holds {error}, which is no JSON number")
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        return Rejected(which, "invalid_record", f"{where}: {first['msg']}" if where else f"is no JSON: {first['msg']}")
    except (ValueError, RecursionError) as error:
        return Rejected(which, "invalid_record", f"is no JSON: {error}")


class _NotANumberError(ValueError):
    pass


def _no_constant(name: str) -> Any:
    raise _NotANumberError(name)


def fault_of(record: EpisodeRecord, known: Container[tuple[str, str]]) -> Rejected | None:
    """Why a record cannot be counted, `None` where it can; ``known`` are the registry's (task, verifier) digests."""
    outcome = record.outcome
    which = record.episode_id
    numbers = [outcome.reward, record.started_at, record.times.total_s, *outcome.rewards.values()]
    if not all(map(math.isfinite, filter(None, numbers))):
        return Rejected(which, "not_a_number", "a reward or a time is NaN or infinite")
    if outcome.graded and outcome.reward is None:
        return Rejected(which, "graded_without_reward", "the episode is graded but its reward is absent")
    if (record.task_digest, record.verifier_digest) not in known:
        pair = f"{record.task_digest[:12]} under verifier {record.verifier_digest[:12]}"
        return Rejected(which, "unknown_digest", f"task {pair} is not in this registry; push it first")
    return None


def misfit_of(record: EpisodeRecord) -> Rejected | None:
    """A record that no column could hold, and that must not take its batch along; `None` where all of it fits."""
    why = _too_large(record)
    return Rejected(record.episode_id[: _COLUMNS["episode_id"]], "invalid_record", why) if why else None


def _too_large(record: EpisodeRecord) -> str:
    policy = record.policy
    texts = (
        ("episode_id", record.episode_id, _COLUMNS["episode_id"]),
        ("group_id", record.group_id, _COLUMNS["group_id"]),
        ("outcome.cause", record.outcome.cause, _COLUMNS["cause"]),
        ("policy.model", policy.model, _NAME),
        ("policy.lineage", policy.lineage, _NAME),
    )
    for what, text, most in texts:
        if len(text) > most or "\0" in text:
            return f"{what} is longer than {most} characters or holds a NUL character"
    if abs(record.weight_version_oldest or 0) >= _INTEGER or sum(t.generated_tokens for t in record.turns) >= _INTEGER:
        return "a weight version or a count of tokens is out of range"
    return ""
