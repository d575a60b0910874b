"""Fold events into standings, flags and the audit trail, in one pass and one transaction.

`fold` reads the standings of the items that the events touch, steps each event in order, and writes back what changed.
Folding in one batch, in many, or everything again (`registry.derive.rebuild`) gives the same rows.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from operator import itemgetter
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.bulk import insert_rows, is_one_of, update_rows, update_values
from registry.db import Item, Standing, StandingTag, StateChange
from registry.derive.events import Event, OutcomeEvent, PriorEvent, ReportEvent, RetireEvent
from registry.derive.flags import Flags, after_outcome, after_report
from registry.saturation import states
from registry.saturation.posterior import Beta, Counts, intervals, learnability
from registry.saturation.states import Track

_CHUNK = 5_000

Key = tuple[int, int]  # lineage id, item id


@dataclass(slots=True)
class _Work:
    flags: dict[int, Flags]
    tracks: dict[Key, Track]
    by_item: dict[int, list[int]]
    folded_to: dict[Key, int] = field(default_factory=dict)
    updated_at: dict[Key, float] = field(default_factory=dict)
    touched: set[Key] = field(default_factory=set)
    changes: list[dict[str, Any]] = field(default_factory=list)


def fold(session: Session, events: Sequence[Event]) -> None:
    """Apply ``events``, which must be in order and new to the standings they touch."""
    if not events:
        return
    items = sorted({event.item_id for event in events})
    work = _load(session, items)
    before = dict(work.flags)
    for mine in _by_item(events).values():
        _fold_item(work, mine)
    work.changes.sort(key=_position)
    _store_flags(session, {item: flags for item, flags in work.flags.items() if flags != before[item]})
    _store_standings(session, work)
    insert_rows(session, StateChange.__table__, work.changes)


def chunks(values: Sequence[Any], size: int = _CHUNK) -> Iterable[Sequence[Any]]:
    """``values`` in runs of at most ``size``."""
    for start in range(0, len(values), size):
        yield values[start : start + size]


def _load(session: Session, items: Sequence[int]) -> _Work:
    work = _Work(flags={}, tracks={}, by_item={})
    for some in chunks(items):
        for item, *flags in session.execute(select(*_FLAGS).where(is_one_of(session, _ITEM.id, some))):
            work.flags[item] = Flags(*flags)
        # By place: a batch reads thousands of these, and looking each value up by name costs more than the rest.
        for lineage, item, updated_at, folded_to, phase, alpha, beta, k, n, version, *counts in session.execute(
            select(*_TRACK).where(is_one_of(session, _STANDING.item_id, some))
        ):
            key = (lineage, item)
            work.tracks[key] = Track(Beta(alpha, beta), phase, Counts(k, n, version), *counts)
            work.updated_at[key] = updated_at
            work.folded_to[key] = folded_to
            work.by_item.setdefault(item, []).append(lineage)
    return work


# Tables, not mapped classes: the rows become no objects.
_ITEM, _STANDING = Item.__table__.c, Standing.__table__.c
_FLAGS = [_ITEM[name] for name in ("id", "verified", "broken", "flaky", "ungraded_run")]
_TRACK = [
    _STANDING[name]
    for name in (
        *("lineage_id", "item_id", "updated_at", "folded_to", "phase", "prior_alpha", "prior_beta"),
        *("decayed_k", "decayed_n", "weight_version", "k", "n", "ungraded", "e_value", "cusum"),
    )
]


def status_of(flags: Flags, track: Track) -> str:
    """What pages and queries show: ``draft`` until a complete report passed, then the track's phase."""
    return track.phase if flags.verified == "checked" else "draft"


_position = itemgetter("position")


def _by_item(events: Sequence[Event]) -> dict[int, list[Event]]:
    """Events of different items have nothing to do with each other; those of one keep their order."""
    found: defaultdict[int, list[Event]] = defaultdict(list)
    for event in events:
        found[event.item_id].append(event)
    return found


def _fold_item(work: _Work, events: Sequence[Event]) -> None:
    stream: list[OutcomeEvent] = []  # outcomes of one lineage, with nothing else between them
    for event in events:
        if isinstance(event, OutcomeEvent):
            if stream and stream[0].lineage_id != event.lineage_id:
                _apply_outcomes(work, stream)
                stream = []
            stream.append(event)
            continue
        _apply_outcomes(work, stream)
        stream = []
        _apply(work, event)
    _apply_outcomes(work, stream)


def _apply(work: _Work, event: ReportEvent | PriorEvent | RetireEvent) -> None:
    match event:
        case ReportEvent():
            _apply_report(work, event)
        case PriorEvent():
            key = (event.lineage_id, event.item_id)
            before = work.tracks[key]
            after, reason = states.settled(replace(before, prior=Beta(event.alpha, event.beta)))
            _move(work, event, key, before=before, after=after, reason=f"prior_{reason}" if reason else "")
        case RetireEvent():
            key = (event.lineage_id, event.item_id)
            before = work.tracks[key]
            _move(work, event, key, before=before, after=states.retired(before), reason="refresh")


def _apply_outcomes(work: _Work, events: Sequence[OutcomeEvent]) -> None:
    if not events:
        return
    item, lineage = events[0].item_id, events[0].lineage_id
    before = flags = work.flags[item]
    for event in events:
        flags, why = after_outcome(flags, event)
        if why:
            _flag_change(work, event, "broken", why)
    if flags is not before:
        work.flags[item] = flags
    if lineage is None:
        return
    key = (lineage, item)
    work.tracks[key], moves = states.advance(
        work.tracks[key], [(event.passed, event.weight_version) for event in events]
    )
    last = events[-1]
    work.folded_to[key], work.updated_at[key] = last.position, last.at
    work.touched.add(key)
    for move in moves:
        _note_move(work, events[move.place], key, before=move.before, after=move.after, reason=move.reason)


def _apply_report(work: _Work, event: ReportEvent) -> None:
    before = work.flags[event.item_id]
    after, reasons = after_report(before, event)
    work.flags[event.item_id] = after
    for why in reasons:
        _flag_change(work, event, "broken" if why == "oracle_failed" else "flaky", why)
    was, now = ("checked" if flags.verified == "checked" else "draft" for flags in (before, after))
    if was != now:
        # One line for the item: it says the same for every lineage, those that come later included.
        _change(work, event, None, before=was, after=now, reason=f"report_{event.verified}")
        work.touched.update((lineage, event.item_id) for lineage in work.by_item.get(event.item_id, ()))


def _move(work: _Work, event: Event, key: Key, *, before: Track, after: Track, reason: str) -> None:
    work.tracks[key] = after
    work.touched.add(key)
    work.updated_at[key] = event.at
    _note_move(work, event, key, before=before, after=after, reason=reason)


def _note_move(work: _Work, event: Event, key: Key, *, before: Track, after: Track, reason: str) -> None:
    flags = work.flags[event.item_id]
    was, now = status_of(flags, before), status_of(flags, after)
    if was == now:
        return
    posterior = after.posterior if reason != "cusum" else before.posterior
    evidence = {
        "mean": posterior.mean,
        "n": before.n if reason == "cusum" else after.n,
        "k": before.k if reason == "cusum" else after.k,
        "e_value": after.e_value,
        "cusum": before.cusum if reason == "cusum" else after.cusum,
        "weight_version": after.counts.version,
    }
    _change(work, event, key[0], before=was, after=now, reason=reason, **evidence)


def _flag_change(work: _Work, event: Event, flag: str, why: str) -> None:
    before, after = (flag, "") if why == "repeat_passed" else ("", flag)
    _change(work, event, None, before=before, after=after, reason=why)


def _change(
    work: _Work, event: Event, lineage: int | None, *, before: str, after: str, reason: str, **evidence: Any
) -> None:
    work.changes.append(
        {
            "item_id": event.item_id,
            "lineage_id": lineage,
            "before": before,
            "after": after,
            "reason": reason,
            "position": event.position,
            "evidence": json.dumps(evidence),
            "at": event.at,
        }
    )


def _store_flags(session: Session, changed: dict[int, Flags]) -> None:
    rows = [{"id": item, **asdict(flags)} for item, flags in changed.items()]
    update_rows(session, Item.__table__, rows, where=("id",))


def _store_standings(session: Session, work: _Work) -> None:
    keys = sorted(work.touched)
    if not keys:
        return
    tracks = [work.tracks[key] for key in keys]
    posteriors = [track.posterior for track in tracks]
    lows, highs = intervals([p.alpha for p in posteriors], [p.beta for p in posteriors])
    rows, index = [], []
    for key, track, posterior, low, high in zip(keys, tracks, posteriors, lows.tolist(), highs.tolist(), strict=True):
        status = status_of(work.flags[key[1]], track)
        values = standing_values(status, track, low, high, posterior)
        rows.append((*values.values(), work.updated_at[key], work.folded_to[key], *key))
        index.append((status, values["learnability"], values["mean"], *key))
    columns = (*values, "updated_at", "folded_to", *_KEY)
    update_values(session, Standing.__table__, columns, rows, where=len(_KEY))
    update_values(session, StandingTag.__table__, (*_INDEXED, *_KEY), index, where=len(_KEY))


_KEY = ("lineage_id", "item_id")
_INDEXED = ("status", "learnability", "mean")


def standing_values(status: str, track: Track, low: float, high: float, posterior: Beta) -> dict[str, Any]:
    """The columns of a standing that follow from its track."""
    return {
        "status": status,
        "phase": track.phase,
        "mean": posterior.mean,
        "low": low,
        "high": high,
        "learnability": learnability(posterior),
        "n": track.n,
        "k": track.k,
        "ungraded": track.ungraded,
        "prior_alpha": track.prior.alpha,
        "prior_beta": track.prior.beta,
        "decayed_n": track.counts.n,
        "decayed_k": track.counts.k,
        "weight_version": track.counts.version,
        "e_value": track.e_value,
        "cusum": track.cusum,
    }
