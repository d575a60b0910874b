"""Judge of ``kl.json``: estimators with their gradients, and exact expectations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from envsdk.conformance.run import Case, SkipCaseError, known
from trainer.conformance import reading
from trainer.conformance.reading import Tolerance
from trainer.kl import KL_KINDS, KlClamps, KlKind, exact_kl, kl_loss, kl_per_token
from trainer.loss.aggregate import count_denominators


def judge(case: Case) -> None:
    """Judge one case in both precisions."""
    body = case.body
    reading.known_fields(body, {"params", "logp", "logp_ref", "logp_old", "mask", "probs", "probs_ref"})
    if body["kind"] == "exact":
        reading.in_both_precisions(body, lambda dtype: _judge_exact(body, dtype))
        return
    if body["kind"] not in KL_KINDS:
        raise SkipCaseError(f"unknown estimator {body['kind']!r}")
    known("option", body["params"], {"coef", "clamp_in", "clamp_out"})
    reading.in_both_precisions(body, lambda dtype: _judge_estimator(body, dtype))


def _judge_estimator(body: Mapping[str, Any], dtype: torch.dtype) -> None:
    tol = _tolerance(body, dtype)
    params, want = body["params"], body["expect"]
    known("expectation", want, {"value", "loss", "grad", "n_tok"})
    logp_BT = reading.table(body["logp"], dtype).requires_grad_()
    mask_BT = reading.mask(body["mask"])
    value_BT = kl_per_token(
        body["kind"],
        logp_BT,
        reading.table(body["logp_ref"], dtype),
        mask_BT,
        clamps=KlClamps(before=params.get("clamp_in"), after=params.get("clamp_out")),
        logp_old_BT=reading.table(body["logp_old"], dtype) if "logp_old" in body else None,
    )
    denominators = count_denominators(mask_BT)
    loss = kl_loss(value_BT, mask_BT, coef=params["coef"], how="token_mean", denominators=denominators)
    (grad_BT,) = torch.autograd.grad(loss, logp_BT)
    reading.close_table("value", value_BT.detach(), want["value"], tol)
    reading.close("loss", loss.item(), want["loss"], tol)
    reading.close_table("grad", grad_BT, want["grad"], tol)
    reading.equal("n_tok", denominators.n_tok, want["n_tok"])
    assert bool((grad_BT[~mask_BT] == 0.0).all()), "the gradient of a masked token is not exactly 0"


def _judge_exact(body: Mapping[str, Any], dtype: torch.dtype) -> None:
    tol = _tolerance(body, dtype)
    want = body["expect"]
    per_kind = {f(kind) for kind in ("k1", "k2", "k3") for f in ("mean_{}".format, "{}_logit_grad".format)}
    known("expectation", want, {"kl", "logit_grad", *per_kind})
    probs_V, probs_ref_V = reading.table(body["probs"], dtype), reading.table(body["probs_ref"], dtype)
    logits_V = probs_V.log().requires_grad_()
    kl = exact_kl(torch.softmax(logits_V, dim=-1), probs_ref_V)
    (logit_grad_V,) = torch.autograd.grad(kl, logits_V)
    reading.close("kl", kl.item(), want["kl"], tol)
    reading.close_table("logit_grad", logit_grad_V, want["logit_grad"], tol)
    for kind in ("k1", "k2", "k3"):
        mean, grad_V = _expectation(kind, probs_V, probs_ref_V)
        reading.close(f"mean_{kind}", mean, want[f"mean_{kind}"], tol)
        if f"{kind}_logit_grad" in want:
            reading.close_table(f"{kind}_logit_grad", grad_V, want[f"{kind}_logit_grad"], tol)


def _expectation(kind: KlKind, probs_V: Tensor, probs_ref_V: Tensor) -> tuple[float, Tensor]:
    """Mean of the estimator under p, and the expectation of its gradient with respect to the logits."""
    logits_V = probs_V.log().requires_grad_()
    logp_1V = torch.log_softmax(logits_V, dim=-1).unsqueeze(0)
    every = torch.ones_like(logp_1V, dtype=torch.bool)
    values_1V = kl_per_token(kind, logp_1V, probs_ref_V.log().unsqueeze(0), every, clamps=KlClamps(None, None))
    mean = (probs_V * values_1V[0]).sum()
    (grad_V,) = torch.autograd.grad(mean, logits_V)
    return mean.item(), grad_V


def _tolerance(body: Mapping[str, Any], dtype: torch.dtype) -> Tolerance:
    return reading.tolerance(
        body, dtype, double=Tolerance(1e-9, 1e-12), single=Tolerance(1e-4, 1e-6), own_is_for_both=True
    )
