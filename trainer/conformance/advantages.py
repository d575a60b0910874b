"""Judge of ``advantages.json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from envsdk.conformance.run import Case, SkipCaseError, known
from trainer.advantage import ESTIMATORS, Advantages, group_advantages
from trainer.conformance import reading
from trainer.conformance.reading import Tolerance

_META = {"permutation", "exclusion", "error"}


def judge(case: Case) -> None:
    """Judge one case in both precisions."""
    body = case.body
    reading.known_fields(body, {"estimator", "reward", "group", "prompt", "valid", "eps", "ddof", "variants"})
    estimator = body["estimator"] if body["kind"] in _META else body["kind"]
    if estimator not in ESTIMATORS:
        raise SkipCaseError(f"unknown estimator {estimator!r}")
    if "expect_error" in body:
        rewards = [reading.number(r) for r in body["reward"]]
        reading.raises_value_error(case.id, lambda: _run(body, rewards, torch.float64))
        return
    reading.in_both_precisions(body, lambda dtype: _judge(body, dtype))


def _judge(body: Mapping[str, Any], dtype: torch.dtype) -> None:
    rewards = [reading.number(r) for r in body["reward"]]
    result = _run(body, rewards, dtype)
    tol = reading.tolerance(
        body, dtype, double=Tolerance(1e-9, 1e-12), single=Tolerance(1e-4, 1e-6), own_is_for_both=False
    )
    want = body["expect"]
    known("expectation", want, {"advantage", "groups"})
    reading.close_table("advantage", torch.tensor(result.values, dtype=dtype), want["advantage"], tol)
    reading.equal("groups", sorted(map(str, result.groups)), sorted(want["groups"]))
    for name, expected in want["groups"].items():
        stats = result.groups[name]
        known("expectation", expected, {"n_valid", "mean", "std", "no_signal", "reason"})
        reading.equal(f"{name}.n_valid", stats.n_valid, expected["n_valid"])
        reading.close(f"{name}.mean", stats.mean, expected["mean"], tol)
        reading.close(f"{name}.std", stats.std, expected["std"], tol)
        reading.equal(f"{name}.no_signal", stats.no_signal, expected["no_signal"])
        reading.equal(f"{name}.reason", stats.reason, expected["reason"])
        if expected["no_signal"]:
            own = [a for a, g in zip(result.values, body["group"], strict=True) if g == name]
            assert all(a == 0.0 for a in own), f"{name}: advantages {own} of a group without signal"
    for variant in body.get("variants", []):
        _judge_variant(body, result, variant, dtype, tol)


def _judge_variant(
    body: Mapping[str, Any],
    result: Advantages,
    variant: Sequence[Any],
    dtype: torch.dtype,
    tol: Tolerance,
) -> None:
    if body["kind"] == "exclusion":
        reading.equal(
            "advantage of the variant", _run(body, [reading.number(r) for r in variant], dtype).values, result.values
        )
        return
    moved = {key: [body[key][p] for p in variant] for key in ("group", "valid", "reward")}
    again = _run({**body, **moved}, [reading.number(r) for r in moved["reward"]], dtype)
    expected = [result.values[p] for p in variant]
    reading.close_table("advantage of the permutation", torch.tensor(again.values, dtype=dtype), expected, tol)


def _run(body: Mapping[str, Any], rewards: Sequence[float | None], dtype: torch.dtype) -> Advantages:
    held = [None if r is None else float(torch.tensor(r, dtype=dtype)) for r in rewards]
    options = {name: body[name] for name in ("eps", "ddof") if name in body}
    estimator = body["estimator"] if body["kind"] in _META else body["kind"]
    return group_advantages(held, body["group"], body["valid"], estimator=estimator, **options)
