"""Judge of ``policy_losses.json``: value, gradient and counts; splits over ranks; padding layouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import torch
from torch import Tensor

from envsdk.conformance.run import Case, SkipCaseError, known
from trainer.conformance import reading
from trainer.conformance.reading import Tolerance
from trainer.loss.aggregate import Denominators, count_denominators
from trainer.loss.config import Aggregation, LossConfig, LossName
from trainer.loss.policy import PolicyLoss, policy_loss
from trainer.loss.term import LossInputs

_KINDS = {"plain", "masked_extreme", "empty_sequence", "empty_batch", "split", "padding", "trainable_outlier"}
_TENSORS = {"logp", "logp_old", "logp_mu", "mask", "advantage"}
_FIELDS = set(LossConfig.model_fields) | {"L"}


def judge(case: Case) -> None:
    """Judge one case in both precisions."""
    body, params = case.body, case.body["params"]
    known("kind", [body["kind"]], _KINDS)
    reading.known_fields(body, _TENSORS | {"name", "params", "denominators", "splits", "layouts"})
    known("option", params, _FIELDS)
    if params["loss"] not in get_args(LossName) or params["agg"] not in get_args(Aggregation):
        raise SkipCaseError(f"unknown loss {params['loss']!r} or aggregation {params['agg']!r}")
    config = LossConfig(**{key: value for key, value in params.items() if key != "L"}, length=params.get("L"))
    reading.in_both_precisions(body, lambda dtype: _judge(body, config, dtype))


def _judge(body: Mapping[str, Any], config: LossConfig, dtype: torch.dtype) -> None:
    loss_tol, grad_tol = _tolerances(body, dtype)
    given, want = body["denominators"], body["expect"]
    known("expectation", want, {"loss", "grad", "counts"})
    denominators = Denominators(given["n_tok"], given["n_seq"], given["L"])
    mask_BT = reading.mask(body["mask"])
    reading.equal("denominators", count_denominators(mask_BT, length=given["L"]), denominators)
    result, grad_BT = _run(body, body, config, denominators, dtype)
    reading.close("loss", result.loss.item(), want["loss"], loss_tol)
    reading.close_table("grad", grad_BT, want["grad"], grad_tol)
    assert bool((grad_BT[~mask_BT] == 0.0).all()), "the gradient of a masked token is not exactly 0"
    counts = result.term.counts
    known("count", want["counts"], counts)
    reading.equal("counts", {name: counts[name] for name in want["counts"]}, want["counts"])
    for split in body.get("splits", []):
        _judge_split(body, split, config, denominators, dtype)
    for layout in body.get("layouts", []):
        _judge_layout(body, layout, config, denominators, dtype)


def _judge_split(
    body: Mapping[str, Any],
    split: Mapping[str, Any],
    config: LossConfig,
    denominators: Denominators,
    dtype: torch.dtype,
) -> None:
    loss_tol, grad_tol = _tolerances(body, dtype)
    total, grad_BT = 0.0, torch.zeros((len(body["mask"]), len(body["mask"][0])), dtype=dtype)
    for rank, parts in zip(split["ranks"], split["part_loss"], strict=True):
        for rows, part in zip(rank, parts, strict=True):
            result, grad_rows = _run(body, _rows(body, rows), config, denominators, dtype)
            reading.close(f"{split['name']}: loss of rows {rows}", result.loss.item(), part, loss_tol)
            total += result.loss.item()
            grad_BT[rows] += grad_rows
    reading.close(f"{split['name']}: loss", total, body["expect"]["loss"], loss_tol)
    reading.close_table(f"{split['name']}: grad", grad_BT, body["expect"]["grad"], grad_tol)


def _judge_layout(
    body: Mapping[str, Any],
    layout: Mapping[str, Any],
    config: LossConfig,
    denominators: Denominators,
    dtype: torch.dtype,
) -> None:
    loss_tol, grad_tol = _tolerances(body, dtype)
    result, grad_BT = _run(body, layout, config, denominators, dtype)
    expected_BT = torch.zeros_like(grad_BT, dtype=torch.float64)
    for row, places in enumerate(layout["grad_at"]):
        for column, place in enumerate(places):
            expected_BT[place[0], place[1]] = body["expect"]["grad"][row][column]
    reading.close(f"{layout['name']}: loss", result.loss.item(), body["expect"]["loss"], loss_tol)
    reading.close_table(f"{layout['name']}: grad", grad_BT, expected_BT.tolist(), grad_tol)


def _rows(body: Mapping[str, Any], rows: Sequence[int]) -> dict[str, Any]:
    return {key: [body[key][row] for row in rows] for key in _TENSORS}


def _run(
    body: Mapping[str, Any],
    tensors: Mapping[str, Any],
    config: LossConfig,
    denominators: Denominators,
    dtype: torch.dtype,
) -> tuple[PolicyLoss, Tensor]:
    logp_BT = reading.table(tensors["logp"], dtype).requires_grad_()
    inputs = LossInputs.of(
        logp_BT=logp_BT,
        logp_old_BT=reading.table(tensors["logp_old"], dtype),
        logp_mu_BT=reading.table(tensors["logp_mu"], dtype),
        mask_BT=reading.mask(tensors["mask"]),
        advantage=reading.table(tensors.get("advantage", body["advantage"]), dtype),
    )
    result = policy_loss(inputs, config, denominators)
    (grad_BT,) = torch.autograd.grad(result.loss, logp_BT)
    reading.finite("gradient", grad_BT)
    return result, grad_BT


def _tolerances(body: Mapping[str, Any], dtype: torch.dtype) -> tuple[Tolerance, Tolerance]:
    double = Tolerance(1e-9, 1e-12)
    loss = reading.tolerance(body, dtype, double=double, single=Tolerance(2e-5, 1e-6), own_is_for_both=True)
    grad = reading.tolerance(body, dtype, double=double, single=Tolerance(2e-4, 1e-6), own_is_for_both=True)
    return loss, grad
