"""The kinds of case that the registry can judge: calibration, screening, saturation (``numeric/calibration.json``)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from envsdk.conformance.run import Case, Judge, SkipCaseError
from registry.calibration.ability import ability
from registry.calibration.intervals import jeffreys, wilson
from registry.calibration.items import fold_items
from registry.calibration.pass_at_k import pass_at_k, pass_hat_k
from registry.calibration.rasch import Parameters, Responses, fit_rasch, log_posterior
from registry.saturation.cusum import cusum_path
from registry.saturation.eprocess import e_bh, e_path
from registry.saturation.posterior import (
    Beta,
    Counts,
    Regions,
    decayed,
    group_value,
    interval,
    learnability,
    rasch_prior,
    regions,
    updated,
)
from registry.saturation.screening import screen
from registry.saturation.states import provisional_path

Body = Mapping[str, Any]
Answer = dict[str, Any]


def _posterior(beta: Beta, level: float) -> Answer:
    low, high = interval(beta, level=level)
    moments = {"alpha": beta.alpha, "beta": beta.beta, "mean": beta.mean, "var": beta.var}
    return moments | {"lo": low, "hi": high} | _regions(regions(beta))


def _regions(found: Regions) -> Answer:
    return {"p_low": found.low, "p_mid": found.mid, "p_high": found.high}


def _prior(body: Body) -> Beta:
    return Beta(body["prior"]["alpha"], body["prior"]["beta"])


def _beta_posterior(body: Body) -> Answer:
    return _posterior(updated(_prior(body), passes=body["k"], trials=body["n"]), body["level"])


def _task_prior(body: Body) -> Answer:
    prior = rasch_prior(body["pi"], body["m"])
    return _posterior(updated(prior, passes=body["K"], trials=body["N"]), body["level"])


def _interval(body: Body) -> Answer:
    k, n, conf = body["k"], body["n"], body["conf"]
    return {"wilson": wilson(k, n, conf=conf), "jeffreys": jeffreys(k, n, conf=conf)}


def _rasch_logpost(body: Body) -> Answer:
    theta, b = (np.asarray(body[name], dtype=np.float64) for name in ("theta", "b"))
    found = log_posterior(Responses.of(body["K"], body["N"]), theta, b, body["log_m"])
    return {
        "log_lik": found.log_lik,
        "log_prior": found.log_prior,
        "log_post": found.log_post,
        "grad": found.grad.tolist(),
    }


def _rasch_fit(body: Body) -> Answer:
    fit = fit_rasch(Responses.of(body["K"], body["N"]), panel=body.get("panel"))
    return {
        "raw": _parameters(fit.raw),
        "theta": fit.theta.tolist(),
        "b": fit.b.tolist(),
        "m": fit.m,
        "shift": fit.shift,
        "se_raw": _parameters(fit.se_raw),
        "se": _parameters(fit.se),
        "log_post": fit.log_post,
    }


def _parameters(found: Parameters) -> Answer:
    return {"theta": found.theta.tolist(), "b": found.b.tolist(), "log_m": found.log_m}


def _ability(body: Body) -> Answer:
    found = ability(body["b"], body["K"], body["N"], log_m=body["log_m"])
    return {"theta": found.theta, "se": found.se}


def _pass_at_k(body: Body) -> Answer:
    at, hat = (function(body["n"], body["c"], body["k"]) for function in (pass_at_k, pass_hat_k))
    return {"pass_at_k": float(at), "pass_hat_k": float(hat), "exact": [at, hat]}


def _screening(body: Body) -> Answer:
    found = screen(_prior(body), body["outcomes"])
    looks = [{"n": look.n} | _regions(look.regions) for look in found.looks]
    return {"looks": looks, "n": found.n, "used": found.used, "verdict": found.verdict}


def _weight(body: Body) -> Answer:
    beta = Beta(body["alpha"], body["beta"])
    return {"e_pq": learnability(beta), "group_value": group_value(beta, body["G"])}


def _e_value(body: Body) -> Answer:
    path, confirm = e_path(body["outcomes"], p0=body["p0"], p1=body["p1"], threshold=body["threshold"])
    return {"path": path, "confirm": confirm}


def _e_bh(body: Body) -> Answer:
    return {"retired": e_bh(body["e"], alpha=body["alpha"])}


def _cusum(body: Body) -> Answer:
    path, alarm = cusum_path(body["outcomes"], r=body["r"], q=body["q"], h=body["h"])
    return {"path": path, "alarm": alarm}


def _decay(body: Body) -> Answer:
    prior = rasch_prior(body["pi"], body["m"])
    counts = Counts()
    after = []
    for event in body["events"]:
        counts = decayed(counts, version=event["version"], passes=event["pass"], fails=event["fail"], keep=body["lam"])
        beta = updated(prior, passes=counts.k, trials=counts.n)
        low, high = interval(beta, level=body["level"])
        after.append(
            {"version": event["version"], "K": counts.k, "N": counts.n, "alpha": beta.alpha, "beta": beta.beta}
            | {"mean": beta.mean, "lo": low, "hi": high}
        )
    return {"after": after}


def _items(body: Body) -> Answer:
    records = [(record["task"], record["verifier"], record["outcome"]) for record in body["records"]]
    return {
        "items": {
            f"{task}|{verifier}": {
                "n": item.n,
                "k": item.k,
                "ungraded": item.ungraded,
                "e": item.e_value,
                "run_ungraded": item.run_ungraded,
                "broken": item.broken,
            }
            for (task, verifier), item in fold_items(records).items()
        }
    }


def _provisional(body: Body) -> Answer:
    return {
        "after": [
            {"n": step.n, "mean": step.mean, "p_high": step.p_high, "saturated": step.saturated}
            for step in provisional_path(_prior(body), body["outcomes"])
        ]
    }


_KINDS: dict[str, tuple[Callable[[Body], Answer], float, float]] = {
    # kind: function, relative and absolute tolerance (of the header)
    "beta_posterior": (_beta_posterior, 0.0, 1e-9),
    "task_prior": (_task_prior, 0.0, 1e-9),
    "interval": (_interval, 1e-9, 1e-9),
    "rasch_logpost": (_rasch_logpost, 0.0, 1e-9),
    "rasch_fit": (_rasch_fit, 0.0, 1e-4),
    "ability": (_ability, 0.0, 1e-4),
    "pass_at_k": (_pass_at_k, 1e-9, 1e-12),
    "screening": (_screening, 0.0, 1e-9),
    "weight": (_weight, 1e-9, 1e-12),
    "e_value": (_e_value, 1e-9, 1e-12),
    "e_bh": (_e_bh, 0.0, 0.0),
    "cusum": (_cusum, 1e-9, 1e-12),
    "decay": (_decay, 0.0, 1e-9),
    "items": (_items, 1e-9, 1e-12),
    "provisional": (_provisional, 0.0, 1e-9),
}
_KNOWN = frozenset(
    (
        *("id", "kind", "what", "expect", "expect_error", "prior", "outcomes", "level", "conf"),
        *("n", "k", "c", "N", "K", "pi", "m", "theta", "b", "log_m", "panel", "alpha", "beta", "G"),
        *("p0", "p1", "threshold", "e", "r", "q", "h", "events", "lam", "records"),
    )
)


def judge(case: Case) -> None:
    """Judge one calibration case.

    Raises:
        AssertionError: the answer differs.
        SkipCaseError: the case's kind or one of its options is unknown.
    """
    body = case.body
    kind = str(body.get("kind"))
    if kind not in _KINDS:
        raise SkipCaseError(f"unknown calibration kind {kind!r}")
    unknown = sorted(set(body) - _KNOWN)
    if unknown:
        raise SkipCaseError(f"unknown option {unknown[0]!r} of {kind}")
    answer, relative, absolute = _KINDS[kind]
    wanted_error = body.get("expect_error")
    try:
        found = answer(body if kind == "items" else _decoded(body))
    except Exception as error:
        if wanted_error is not None and type(error).__name__ == wanted_error:
            return
        raise
    assert wanted_error is None, f"{wanted_error} was to be raised"
    _compare(found, _decoded(body["expect"]), kind, relative=relative, absolute=absolute)


_NO_JSON = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def _decoded(value: Any) -> Any:
    """``value`` with the strings that stand for numbers that JSON has no word for."""
    if isinstance(value, Mapping):
        return {key: _decoded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_decoded(one) for one in value]
    return _NO_JSON.get(value, value) if isinstance(value, str) else value


_TOLERANCES = {"se": (1e-3, 0.0), "se_raw": (1e-3, 0.0), "m": (1e-4, 0.0), "grad": (0.0, 1e-8)}
"""Relative and absolute tolerance of keys that have their own, whatever the kind."""


def _compare(found: Any, wanted: Any, where: str, *, relative: float, absolute: float) -> None:
    if isinstance(wanted, Mapping):
        for key, value in wanted.items():
            rel, tol = _TOLERANCES.get(key, (relative, absolute))
            assert key in found, f"{where}.{key} is missing"
            _compare(found[key], value, f"{where}.{key}", relative=rel, absolute=tol)
    elif isinstance(wanted, Sequence) and not isinstance(wanted, str):
        assert len(found) == len(wanted), f"{where}: {len(found)} entries, not {len(wanted)}"
        for place, (one, other) in enumerate(zip(found, wanted, strict=True)):
            _compare(one, other, f"{where}[{place}]", relative=relative, absolute=absolute)
    elif isinstance(found, Fraction):
        # As numbers: a fraction of many attempts has more digits than Python writes out.
        assert found == Fraction(wanted), f"{where}: {float(found)!r}, not {wanted!r}"
    elif isinstance(wanted, bool | str) or wanted is None or isinstance(found, bool | str) or found is None:
        assert found == wanted, f"{where}: {found!r}, not {wanted!r}"
    else:
        assert _near(found, wanted, relative, absolute), f"{where}: {found!r}, not {wanted!r}"


def _near(found: Any, wanted: Any, relative: float, absolute: float) -> bool:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (found, wanted))
    same_nan = numbers and math.isnan(found) and math.isnan(wanted)
    return same_nan or (numbers and math.isclose(found, wanted, rel_tol=relative, abs_tol=absolute))


KINDS: dict[str, Judge] = {"calibration": judge}
