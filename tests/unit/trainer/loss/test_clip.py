"""The clipped surrogate: which bound bites where, and what it does to value and gradient."""

from __future__ import annotations

import pytest
import torch

from trainer.loss.clip import clipped_surrogate


def one(
    ratio: float, advantage: float, *, dual_clip: float | None = None
) -> tuple[float, float, tuple[bool, bool, bool]]:
    r = torch.tensor([[ratio]], dtype=torch.float64, requires_grad=True)
    a = torch.tensor([[advantage]], dtype=torch.float64)
    clipped = clipped_surrogate(r, a, eps_low=0.2, eps_high=0.28, dual_clip=dual_clip)
    (gradient,) = torch.autograd.grad(clipped.loss_BT.sum(), r)
    flags = (bool(clipped.low_BT), bool(clipped.high_BT), bool(clipped.dual_BT))
    return clipped.loss_BT.item(), gradient.item(), flags


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "gradient", "flags"),
    [
        (1.0, 2.0, -2.0, -2.0, (False, False, False)),
        (1.27, 2.0, -2.54, -2.0, (False, False, False)),
        (1.5, 2.0, -2.56, 0.0, (False, True, False)),
        (0.5, 2.0, -1.0, -2.0, (False, False, False)),
        (0.5, -2.0, 1.6, 0.0, (True, False, False)),
        (1.5, -2.0, 3.0, 2.0, (False, False, False)),
        (9.0, 0.0, 0.0, 0.0, (False, False, False)),
    ],
)
def test_only_moves_in_the_favoured_direction_are_clipped(
    ratio: float, advantage: float, loss: float, gradient: float, flags: tuple[bool, bool, bool]
) -> None:
    got = one(ratio, advantage)
    assert got[:2] == pytest.approx((loss, gradient))
    assert got[2] == flags


def test_the_dual_clip_caps_the_loss_of_a_bad_token_whose_ratio_exploded() -> None:
    assert one(50.0, -1.0, dual_clip=3.0) == (3.0, 0.0, (False, False, True))


def test_the_dual_clip_leaves_good_tokens_alone() -> None:
    assert one(50.0, 1.0, dual_clip=3.0) == one(50.0, 1.0)


def test_a_ratio_exactly_at_a_bound_keeps_its_gradient() -> None:
    r = torch.tensor([[1.0]], requires_grad=True)
    a = torch.tensor([[1.0]])
    loss = clipped_surrogate(r, a, eps_low=0.0, eps_high=0.0, dual_clip=None).loss_BT.sum()
    assert torch.autograd.grad(loss, r)[0].item() == -1.0
