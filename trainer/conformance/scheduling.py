"""Judge of ``scheduling.json``: asynchronous traces and single batches under fixed weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, get_args

from envsdk.conformance.run import Case, SkipCaseError, known
from trainer.admission import Admission
from trainer.conformance import reading
from trainer.conformance.reading import Tolerance
from trainer.pool_policy import TakePolicy
from trainer.simulation.asynchronous import AsyncSetup, Step, simulate_async
from trainer.simulation.static import StaticMode, simulate_static
from trainer.simulation.trace import Share, TraceGroup

_FIELDS = {
    *("ties", "group_size", "groups_per_batch", "staleness_bound", "slots", "train_time", "policy", "max_lag"),
    *("steps", "groups", "mode"),
}
_DISPATCH = {"group", "time", "version", "running", "accepted", "limit"}
_STEP_S = ("request", "take", "wait", "since_previous_take", "from_first_dispatch", "batch_ready", "t2tb")
_STEP = {
    *("step", "version", "last_to_complete", "groups", "lag", "carried_complete", "carried_running", "max_lag"),
    *(*_STEP_S, "queued"),
}
_TIME = Tolerance(0.0, 1e-6)
_RATE = Tolerance(1e-9, 1e-12)


def judge(case: Case) -> None:
    """Judge one case."""
    body = case.body
    reading.known_fields(body, _FIELDS)
    match body["kind"]:
        case "async" | "async_max_lag":
            if body["policy"] not in get_args(TakePolicy):
                raise SkipCaseError(f"unknown policy {body['policy']!r}")
            _judge_async(body)
        case "static":
            if body["mode"] not in get_args(StaticMode):
                raise SkipCaseError(f"unknown mode {body['mode']!r}")
            _judge_static(body)
        case kind:
            raise SkipCaseError(f"unknown kind {kind!r}")


def _judge_async(body: Mapping[str, Any]) -> None:
    setup = AsyncSetup(
        admission=Admission(body["staleness_bound"], body["groups_per_batch"]),
        steps=body["steps"],
        train_s=body["train_time"],
        slots=body["slots"],
        policy=body["policy"],
        max_lag=body.get("max_lag"),
    )
    got, want = simulate_async(_groups(body), setup), body["expect"]
    known("expectation", want, {"dispatch", "ready", "steps", "dropped", "composition"})
    _known_each(want["dispatch"], _DISPATCH)
    _known_each(want["ready"], {"group", "time", "oldest_version"})
    _known_each(want["steps"], _STEP)
    _known_each(want.get("dropped", []), {"group", "time", "lag"})
    reading.equal("dispatched", [d.group for d in got.dispatch], [d["group"] for d in want["dispatch"]])
    for dispatch, expected in zip(got.dispatch, want["dispatch"], strict=True):
        for name in ("version", "running", "accepted", "limit"):
            reading.equal(f"dispatch of {dispatch.group}: {name}", getattr(dispatch, name), expected[name])
        reading.close(f"dispatch of {dispatch.group}", dispatch.time_s, expected["time"], _TIME)
    reading.equal("ready", [r.group for r in got.ready], [r["group"] for r in want["ready"]])
    for ready, expected in zip(got.ready, want["ready"], strict=True):
        reading.close(f"completion of {ready.group}", ready.time_s, expected["time"], _TIME)
        reading.equal(f"oldest version of {ready.group}", ready.oldest_version, expected["oldest_version"])
    reading.equal("steps", len(got.steps), len(want["steps"]))
    for step, expected in zip(got.steps, want["steps"], strict=True):
        _judge_step(step, expected)
    reading.equal(
        "dropped", [(d.group, d.lag) for d in got.dropped], [(d["group"], d["lag"]) for d in want.get("dropped", [])]
    )
    for drop, expected in zip(got.dropped, want.get("dropped", []), strict=True):
        reading.close(f"drop of {drop.group}", drop.time_s, expected["time"], _TIME)
    _judge_composition(got.kept_share, got.launched_share, want["composition"])


def _judge_step(step: Step, want: Mapping[str, Any]) -> None:
    where = f"step {step.step}"
    for name in ("step", "version", "last_to_complete"):
        reading.equal(f"{where}: {name}", getattr(step, name), want[name])
    for name in ("groups", "lag", "carried_complete", "carried_running"):
        reading.equal(f"{where}: {name}", list(getattr(step, name)), want[name])
    reading.equal(f"{where}: max_lag", max(step.lag), want["max_lag"])
    for name in _STEP_S:
        if name in want:
            reading.close(f"{where}: {name}", getattr(step, f"{name}_s"), want[name], _TIME)
    for got, expected in zip(step.queued_s, want["queued"], strict=True):
        reading.close(f"{where}: queued", got, expected, _TIME)


def _judge_static(body: Mapping[str, Any]) -> None:
    want = body["expect"]
    known("expectation", want, {"ready", "kept", "carried", "not_started", "time_to_batch", "composition"})
    _known_each(want["ready"], {"group", "time"})
    got = simulate_static(
        _groups(body), groups_per_batch=body["groups_per_batch"], slots=body["slots"], mode=body["mode"]
    )
    reading.equal("ready", [group for group, _ in got.ready], [r["group"] for r in want["ready"]])
    for (group, time_s), expected in zip(got.ready, want["ready"], strict=True):
        reading.close(f"completion of {group}", time_s, expected["time"], _TIME)
    for name in ("kept", "carried", "not_started"):
        reading.equal(name, list(getattr(got, name)), want[name])
    reading.close("time_to_batch", got.time_to_batch_s, want["time_to_batch"], _TIME)
    _judge_composition(got.kept_share, got.launched_share, want["composition"])


def _judge_composition(kept: Share, launched: Share, want: Mapping[str, Any]) -> None:
    known("expectation", want, {"kept", "launched"})
    _known_each(want.values(), {"trajectories", "mean_duration", "pass_rate"})
    for name, share in (("kept", kept), ("launched", launched)):
        reading.equal(f"{name}: trajectories", share.trajectories, want[name]["trajectories"])
        reading.close(f"{name}: mean_duration", share.mean_duration_s, want[name]["mean_duration"], _RATE)
        reading.close(f"{name}: pass_rate", share.pass_rate, want[name]["pass_rate"], _RATE)


def _known_each(entries: Iterable[Mapping[str, Any]], understood: set[str]) -> None:
    for entry in entries:
        known("expectation", entry, understood)


def _groups(body: Mapping[str, Any]) -> list[TraceGroup]:
    return [
        TraceGroup(g["id"], tuple(map(float, g["durations"])), tuple(map(bool, g["passed"])), g.get("expected"))
        for g in body["groups"]
    ]
