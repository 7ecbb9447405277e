"""Weights of smoothed graphs with a gradient.

The marginals are the gradient of log Z, eq. (2) of the paper, so their Jacobian is symmetric. The
gradient in the distances is therefore a forward derivative (a tangent of the same recursion) in the
direction of the gradient in W.
"""

from __future__ import annotations

from typing import Any

import torch

from crossedge.numerics.smoothed import Recipe, Solved, pull_back, solve


class _Kept:
    """A recipe and, until the backward pass, the models of the forward pass."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.solved: Solved | None = None


def smoothed_with_gradient(distances: torch.Tensor, recipe: Recipe) -> torch.Tensor:
    """Return W, differentiable once in the distances."""
    weights: torch.Tensor = _Smoothed.apply(distances, _Kept(recipe))  # type: ignore[no-untyped-call]
    return weights


class _Smoothed(torch.autograd.Function):
    """W as a function of the distances."""

    @staticmethod
    def forward(distances: torch.Tensor, kept: _Kept) -> torch.Tensor:
        weights, kept.solved = solve(distances, kept.recipe)
        found: torch.Tensor = weights
        return found

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        distances, ctx.kept = inputs
        ctx.save_for_backward(distances, output)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        distances, _ = ctx.saved_tensors  # raises if a tensor was modified in place
        return _PullBack.apply(gradient, distances, ctx.kept), None  # type: ignore[no-untyped-call]


class _PullBack(torch.autograd.Function):
    """The gradient in the distances as a function of the gradient in W.

    It is a function of its own because transforms such as `torch.func.grad` pass plain tensors to
    `forward` only. It raises an error when its derivative is asked for.
    """

    @staticmethod
    def forward(gradient: torch.Tensor, distances: torch.Tensor, kept: _Kept) -> torch.Tensor:
        # use the models once only, so that a loss that is kept does not keep them in memory
        solved, kept.solved = kept.solved, None
        if solved is None:
            _, solved = solve(distances, kept.recipe)
        found: torch.Tensor = pull_back(gradient, solved, kept.recipe)
        return found

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Save nothing: there are no second derivatives."""

    @staticmethod
    def backward(_: Any, __: torch.Tensor) -> None:
        raise RuntimeError("smoothed weights have no second derivatives: differentiate them once")
