"""One episode, readable: turns, tool output, tokens by weight version, how it ended, what the verifier saw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.requests import Request

from envsdk.episode.record import EpisodeRecord, TokenTrace
from envsdk.errors import UsageError
from registry.db import Episode, Outcome
from registry.local import LocalRegistry
from registry.outcomes import unpacked
from registry.web.render import add_page

MOST = 64


def routes(registry: LocalRegistry) -> APIRouter:
    """The episode viewer."""

    def view(request: Request) -> Mapping[str, Any]:
        wanted = request.path_params["episode_id"]
        with registry.database.reading() as session:
            stored = session.scalar(select(Episode.record).where(Episode.episode_id == wanted))
            outcome = session.scalar(select(Outcome).where(Outcome.episode_id == wanted))
            if stored is None:
                what = "was counted, but its record was not kept" if outcome is not None else "is not here"
                raise UsageError(f"episode {wanted!r} {what}", code="no_such_episode", hint="look at its task's page")
            group = _group(session, outcome) if outcome is not None else []
        return _episode(EpisodeRecord.model_validate_json(unpacked(stored))) | {"group": group}

    router = APIRouter()
    add_page(router, "/episodes/{episode_id}", "episode.html", view)
    return router


def _group(session: Session, outcome: Outcome) -> list[dict[str, Any]]:
    """The episodes that share a baseline with this one, itself included; empty where it has no group."""
    if not outcome.group_id:
        return []
    rows = session.scalars(
        select(Outcome)
        .where(
            Outcome.item_id == outcome.item_id,
            Outcome.lineage_id == outcome.lineage_id,
            Outcome.group_id == outcome.group_id,
        )
        .order_by(Outcome.id)
        .limit(MOST)
    )
    return [{"episode_id": row.episode_id, "outcome_class": row.outcome_class, "reward": row.reward} for row in rows]


def _episode(record: EpisodeRecord) -> dict[str, Any]:
    tokens = record.tokens
    strip = token_runs(tokens) if tokens else []
    by_version: Counter[int] = Counter()
    for version, length in strip:
        if version is not None:
            by_version[version] += length
    return {
        "title": f"Episode {record.episode_id}",
        "episode": record.model_dump(mode="json", exclude={"tokens"}),
        "n_tokens": len(tokens.ids) if tokens else 0,
        "n_generated": sum(tokens.loss_mask) if tokens else 0,
        "tokens_by_version": [
            {"weight_version": version, "tokens": by_version[version]} for version in sorted(by_version)
        ],
        "token_runs": strip,
        "turn_runs": turn_runs(strip, len(record.turns)),
    }


def token_runs(tokens: TokenTrace) -> list[tuple[int | None, int]]:
    """An episode's tokens in order as runs of (weight version, tokens); `None` where the model generated none."""
    runs: list[tuple[int | None, int]] = []
    at = 0
    for span in sorted(tokens.versions, key=lambda span: span.start):
        if span.start > at:
            runs.append((None, span.start - at))
        runs.append((span.version, span.end - span.start))
        at = span.end
    rest = len(tokens.ids) - at
    return [*runs, (None, rest)] if rest > 0 else runs


def turn_runs(runs: Sequence[tuple[int | None, int]], turns: int) -> list[list[tuple[int | None, int]]]:
    """The generated runs of each turn; empty where the episode's tokens cannot be told apart by turn.

    A turn's tokens stand together, and those of the next after something that the model did not generate.
    """
    found: list[list[tuple[int | None, int]]] = [[]]
    for version, length in runs:
        if version is not None:
            found[-1].append((version, length))
        elif found[-1]:
            found.append([])
    found = [turn for turn in found if turn]
    return found if len(found) == turns else []
