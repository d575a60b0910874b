"""Judge of ``routing.json``: placements, and prefix-cache hits beside those of round robin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from envsdk.conformance.run import Case, SkipCaseError, known
from trainer.conformance import reading
from trainer.conformance.reading import Tolerance
from trainer.prefix_cache import FamilyPrefix, PrefixCaches
from trainer.router import Router


@dataclass
class _Replay:
    router: Router
    caches: PrefixCaches
    blind: PrefixCaches
    replicas: int
    turns: list[dict[str, Any]] = field(default_factory=list)
    open: dict[str, list[tuple[int, int, Mapping[str, Any]]]] = field(default_factory=dict)
    blind_hits: int = 0


def judge(case: Case) -> None:
    """Judge one case."""
    body = case.body
    known("kind", [body["kind"]], {"basic", "hits", "margin", "mixed", "release", "weights"})
    reading.known_fields(body, {"replicas", "margin", "block", "events"})
    ties = iter([event["tie_u"] for event in body["events"] if event["event"] == "turn_start"])
    upcoming = [0.0]
    replay = _Replay(
        router=Router(body["replicas"], margin=body["margin"], uniform=lambda: upcoming[0]),
        caches=PrefixCaches(body["replicas"], block=body["block"]),
        blind=PrefixCaches(body["replicas"], block=body["block"]),
        replicas=body["replicas"],
    )
    for event in body["events"]:
        match event["event"]:
            case "turn_start":
                upcoming[0] = next(ties)
                _start(replay, event)
            case "turn_end":
                _end(replay, event)
            case "release":
                replay.router.release(event["session"])
            case "weights" if event["mode"] == "reset":
                replay.caches.reset()
                replay.blind.reset()
            case _:
                raise SkipCaseError(f"unknown event {event}")
    _compare(replay, body["expect"])


def _start(replay: _Replay, event: Mapping[str, Any]) -> None:
    session, prompt = event["session"], event["prompt_tokens"]
    placed = replay.router.start_turn(session)
    found = replay.caches.start_turn(placed.replica, session, prompt, _prefix(event))
    blind = len(replay.turns) % replay.replicas
    replay.blind_hits += replay.blind.start_turn(blind, session, prompt, _prefix(event))
    replay.open.setdefault(session, []).append((placed.replica, blind, event))
    replay.turns.append(
        {
            "session": session,
            "replica": placed.replica,
            "repinned": placed.repinned,
            "tied": list(placed.tied),
            "hit_tokens": found,
            "prefill_tokens": prompt - found,
        }
    )


def _end(replay: _Replay, event: Mapping[str, Any]) -> None:
    session = event["session"]
    replica, blind, start = replay.open[session].pop(0)
    reading.equal("replica of the ending turn", replay.router.end_turn(session), replica)
    context = start["prompt_tokens"] + event["generated_tokens"]
    replay.caches.end_turn(replica, session, context)
    replay.blind.end_turn(blind, session, context)


def _prefix(event: Mapping[str, Any]) -> FamilyPrefix | None:
    return FamilyPrefix(event["family"], event["family_tokens"]) if event.get("family") is not None else None


def _compare(replay: _Replay, want: Mapping[str, Any]) -> None:
    reading.equal("number of turns", len(replay.turns), len(want["turns"]))
    for number, (got, expected) in enumerate(zip(replay.turns, want["turns"], strict=True)):
        known("expectation of a turn", expected, got)
        reading.equal(f"turn {number}", {name: got[name] for name in expected}, expected)
    reading.equal("active", list(replay.router.active), want["final"]["active"])
    reading.equal("inflight", list(replay.router.inflight), want["final"]["inflight"])
    prompt = sum(turn["hit_tokens"] + turn["prefill_tokens"] for turn in replay.turns)
    hits = sum(turn["hit_tokens"] for turn in replay.turns)
    totals = {
        "prompt_tokens": prompt,
        "hit_tokens": hits,
        "repins": sum(turn["repinned"] for turn in replay.turns),
        "turns_per_replica": [sum(turn["replica"] == r for turn in replay.turns) for r in range(replay.replicas)],
        "round_robin": replay.blind_hits,
    }
    known("expectation", want, {"turns", "final", "totals"})
    known("total", want["totals"], {*totals, "hit_rate"})
    known("expectation", want["final"], {"active", "inflight"})
    for name, value in totals.items():
        reading.equal(name, value, want["totals"][name])
    reading.close("hit_rate", hits / prompt if prompt else 0.0, want["totals"]["hit_rate"], Tolerance(1e-9, 0.0))
