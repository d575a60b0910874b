"""One episode, readable: turns, tool output, tokens by weight version, how it ended, what the verifier saw."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from sqlalchemy import select
from starlette.requests import Request

from envsdk.errors import UsageError
from registry.db import Episode, Outcome
from registry.local import LocalRegistry
from registry.outcomes import unpacked
from registry.web.render import add_page


def routes(registry: LocalRegistry) -> APIRouter:
    """The episode viewer."""

    def view(request: Request) -> Mapping[str, Any]:
        wanted = request.path_params["episode_id"]
        with registry.database.reading() as session:
            stored = session.scalar(select(Episode.record).where(Episode.episode_id == wanted))
            known = session.scalar(select(Outcome.id).where(Outcome.episode_id == wanted))
        if stored is None:
            what = "was counted, but its record was not kept" if known is not None else "is not here"
            raise UsageError(f"episode {wanted!r} {what}", code="no_such_episode", hint="look at its task's page")
        return _episode(json.loads(unpacked(stored)))

    router = APIRouter()
    add_page(router, "/episodes/{episode_id}", "episode.html", view)
    return router


def _episode(record: dict[str, Any]) -> dict[str, Any]:
    tokens = record.get("tokens") or {}
    by_version: Counter[int] = Counter()
    for span in tokens.get("versions", ()):
        by_version[span["version"]] += span["end"] - span["start"]
    shown = {key: value for key, value in record.items() if key != "tokens"}
    return {
        "title": f"Episode {record['episode_id'][:12]}",
        "episode": shown,
        "n_tokens": len(tokens.get("ids", ())),
        "n_generated": sum(tokens.get("loss_mask", ())),
        "tokens_by_version": [
            {"weight_version": version, "tokens": by_version[version]} for version in sorted(by_version)
        ],
    }
