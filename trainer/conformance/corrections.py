"""Judge of ``corrections.json``: weights, rejections, lag rules and metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from inspect import Parameter, signature
from typing import Any

import torch

from envsdk.conformance.run import Case, SkipCaseError, known
from envsdk.episode.record import VersionSpan
from trainer.conformance import reading
from trainer.conformance.reading import Tolerance
from trainer.correction import lag
from trainer.correction.drift import Drift, drift
from trainer.correction.lag_metrics import lag_metrics
from trainer.correction.result import Correction, combine
from trainer.correction.rule import DRIFT_RULES
from trainer.correction.truncated import token_tis
from trainer.correction.versions import TokenLags, token_lags
from trainer.loss.aggregate import count_denominators
from trainer.loss.config import LossConfig
from trainer.loss.policy import policy_loss
from trainer.loss.term import LossInputs
from trainer.mismatch import mismatch_metrics

_LAG_RULES = {"lag_mask", "lag_drop_sample", "lag_drop_group", "lag_weight", "lag_mask_token_tis"}
_FIELDS = {"logp", "logp_trainer", "logp_engine", "mask", "params", "versions", "trainer_version", "group", "advantage"}
_EXACT = {"n_tok", "n_seq", "seq_keep", "oldest"}


def judge(case: Case) -> None:
    """Judge one case in both precisions."""
    body, kind = case.body, case.body["kind"]
    reading.known_fields(body, _FIELDS)
    if kind == "lag_error":
        reading.raises_value_error(case.id, lambda: _lags(body))
    elif kind == "lag_metrics":
        _judge_lag_metrics(body)
    elif kind == "mismatch_metrics":
        known("option", body["params"], {"cap", "lo", "hi"})
        reading.in_both_precisions(body, lambda dtype: _judge_mismatch(body, dtype))
    elif kind == "loss":
        reading.in_both_precisions(body, lambda dtype: _judge_loss(body, dtype))
    elif kind in DRIFT_RULES or kind in _LAG_RULES:
        known("option", body["params"], _options(kind))
        reading.in_both_precisions(body, lambda dtype: _judge_rule(body, dtype))
    else:
        raise SkipCaseError(f"unknown rule {kind!r}")


def _options(kind: str) -> set[str]:
    if kind == "lag_mask_token_tis":
        return {"max_lag", "cap"}
    rule = DRIFT_RULES.get(kind) or getattr(lag, kind)
    return {name for name, p in signature(rule).parameters.items() if p.kind is Parameter.KEYWORD_ONLY}


def _judge_rule(body: Mapping[str, Any], dtype: torch.dtype) -> None:
    tol = reading.tolerance(
        body, dtype, double=Tolerance(1e-9, 1e-12), single=Tolerance(1e-4, 1e-6), own_is_for_both=False
    )
    want = body["expect"]
    correction, oldest = _apply(body, dtype)
    known("expectation", want, {*_EXACT, "weight", "frac_masked", "frac_seq_masked", "frac_clipped"})
    got = {name: getattr(correction, name) for name in want if name not in {"weight", "oldest"}}
    reading.close_table("weight", correction.weight_BT, want["weight"], tol)
    for name, value in got.items():
        if name in _EXACT:
            reading.equal(name, value, want[name])
        else:
            reading.close(name, value, want[name], tol)
    if "oldest" in want:
        reading.equal("oldest", oldest, want["oldest"])


def _apply(body: Mapping[str, Any], dtype: torch.dtype) -> tuple[Correction, list[int | None]]:
    kind, params = body["kind"], body["params"]
    if kind in DRIFT_RULES:
        return DRIFT_RULES[kind](_drift(body, dtype), **params), []
    lags = _lags(body)
    match kind:
        case "lag_drop_group":
            result = lag.lag_drop_group(lags, body["group"], **params)
        case "lag_mask_token_tis":
            by_lag = lag.lag_mask(lags, max_lag=params["max_lag"])
            result = combine(by_lag, token_tis(_drift(body, dtype), cap=params["cap"]))
        case _:
            result = getattr(lag, kind)(lags, **params)
    return result, lags.oldest_B


def _judge_lag_metrics(body: Mapping[str, Any]) -> None:
    got = lag_metrics(_lags(body))
    known("expectation", body["expect"], {"metrics"})
    known("metric", body["expect"]["metrics"], {field.name for field in fields(got)})
    for name, want in body["expect"]["metrics"].items():
        value = getattr(got, name)
        if name in {"mean_oldest", "mean_token_lag"}:
            reading.close(name, value, want, Tolerance(1e-9, 1e-12))
        elif name == "histogram":
            reading.equal(name, {str(k): n for k, n in value.items()}, want)
        else:
            reading.equal(name, list(value) if name == "oldest" else value, want)


def _judge_mismatch(body: Mapping[str, Any], dtype: torch.dtype) -> None:
    tol = reading.tolerance(
        body, dtype, double=Tolerance(1e-9, 1e-12), single=Tolerance(1e-3, 1e-5), own_is_for_both=False
    )
    got = asdict(mismatch_metrics(_drift(body, dtype), **body["params"]))
    known("expectation", body["expect"], {"metrics"})
    known("metric", body["expect"]["metrics"], got)
    for name, want in body["expect"]["metrics"].items():
        if name in _EXACT:
            reading.equal(name, got[name], want)
        else:
            reading.close(name, got[name], reading.number(want), tol)


def _judge_loss(body: Mapping[str, Any], dtype: torch.dtype) -> None:
    params = dict(body["params"])
    rule = params.pop("rule")
    if rule not in DRIFT_RULES:
        raise SkipCaseError(f"unknown rule {rule!r}")
    known("option", params, {*_options(rule), "eps_low", "eps_high", "dual_clip", "agg"})
    config = LossConfig(
        **{name: params.pop(name) for name in list(params) if name in LossConfig.model_fields and name != "cap"}
    )
    logp_BT = reading.table(body["logp"], dtype).requires_grad_()
    anchor_BT = reading.table(body["logp_trainer"], dtype)
    inputs = LossInputs.of(
        logp_BT=logp_BT,
        logp_old_BT=anchor_BT,
        logp_mu_BT=reading.table(body["logp_engine"], dtype),
        mask_BT=reading.mask(body["mask"]),
        advantage=reading.table(body["advantage"], dtype),
    )
    correction = DRIFT_RULES[rule](_drift(body, dtype), **params)
    denominators = count_denominators(inputs.mask_BT)
    loss = policy_loss(inputs, config, denominators, weight_BT=correction.weight_BT).loss
    (grad_BT,) = torch.autograd.grad(loss, logp_BT)
    want = body["expect"]
    known("expectation", want, {"loss", "grad", "n_tok", "frac_masked"})
    single = dtype == torch.float32
    reading.close("loss", loss.item(), want["loss"], Tolerance(2e-5, 1e-6) if single else Tolerance(1e-9, 1e-12))
    reading.close_table("grad", grad_BT, want["grad"], Tolerance(2e-4, 1e-6) if single else Tolerance(1e-9, 1e-12))
    reading.equal("n_tok", denominators.n_tok, want["n_tok"])
    reading.close("frac_masked", correction.frac_masked, want["frac_masked"], Tolerance(1e-9, 1e-12))


def _drift(body: Mapping[str, Any], dtype: torch.dtype) -> Drift:
    trainer, engine = reading.table(body["logp_trainer"], dtype), reading.table(body["logp_engine"], dtype)
    return drift(trainer, engine, reading.mask(body["mask"]))


def _lags(body: Mapping[str, Any]) -> TokenLags:
    spans = [[VersionSpan(**span) for span in row] for row in body["versions"]]
    return token_lags(spans, reading.mask(body["mask"]), trainer_version=body["trainer_version"])
