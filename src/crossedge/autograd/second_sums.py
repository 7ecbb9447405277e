"""The sums that variances need, with a gradient that keeps no tape.

A training step consists of little else. Removing row effects is a projection, so the gradient of
the sum of V^2 over pairs is V itself.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from crossedge.numerics.row_effects import without_row_effects


def second_sums_with_gradient(
    W: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the sum of W over pairs, the sum of V^2 over pairs and the sum of squared degrees."""
    total, squares, degree2, *_ = _SecondSums.apply(W)  # type: ignore[no-untyped-call]
    return total, squares, degree2


class _SecondSums(torch.autograd.Function):
    """The three sums, and V and the centred degrees, which the gradient needs."""

    @staticmethod
    def forward(W: torch.Tensor) -> tuple[torch.Tensor, ...]:
        V, degree = without_row_effects(W)
        flat = V.reshape(-1)
        return W.sum() / 2, (flat @ flat) / 2, degree @ degree, V, degree

    @staticmethod
    def setup_context(ctx: Any, _: Any, output: tuple[torch.Tensor, ...]) -> None:
        *_, V, degree = output
        ctx.mark_non_differentiable(V, degree)
        ctx.save_for_backward(V, degree)

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, total: torch.Tensor, squares: torch.Tensor, degree2: torch.Tensor, *_: Any
    ) -> torch.Tensor:
        V, degree = ctx.saved_tensors
        rows = total / 2 + 2 * degree2 * degree
        return torch.addcmul(rows[:, None], V, squares).fill_diagonal_(0.0)
