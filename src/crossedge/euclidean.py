"""Euclidean distances in many dimensions, by one product of matrices.

|a - b|^2 = |a|^2 + |b|^2 - 2 a'b cancels where a and b are near. Pairs nearer than a tenth of their
distance from the centre of all points are therefore taken by differences, like the gradient between
them; the others lose at most two digits of the square, hence of the distance.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch.autograd.function import once_differentiable

CLOSE = 0.01  # of |a|^2 + |b|^2: below this, by differences
MANY = 8  # close pairs a point, on average, beyond which differences for all pairs are no dearer


class Close(NamedTuple):
    """Pairs of near points."""

    rows: torch.Tensor
    columns: torch.Tensor
    differences: torch.Tensor


def direct_distances(points: torch.Tensor, p: float) -> torch.Tensor:
    """By differences, for any l_p and (..., n, d)."""
    return torch.cdist(points, points, p, compute_mode="donot_use_mm_for_euclid_dist")


def euclidean_distances(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """(n_x, d) and (n_y, d) points -> (n, n) for all of them, symmetric.

    The gradient between equal points is 0, and a part that needs none costs nothing.
    """
    pooled = torch.cat([x.detach(), y.detach()])
    centred = pooled - pooled.mean(0)
    squared = _squares(centred)
    rows, columns = _close_pairs(centred, squared)
    if len(rows) > MANY * len(centred):
        return direct_distances(torch.cat([x, y]), 2.0)
    close = Close(rows, columns, pooled[rows] - pooled[columns])
    found: torch.Tensor = _ByProduct.apply(x, y, centred, squared, close)  # type: ignore[no-untyped-call]
    return found


def _squares(centred: torch.Tensor) -> torch.Tensor:
    """Of the distances, with an infinite diagonal."""
    squares = centred.square().sum(1)
    sums = squares[:, None] + squares
    return sums.addmm_(centred, centred.T, alpha=-2).fill_diagonal_(torch.inf)


def _close_pairs(centred: torch.Tensor, squared: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows and columns of pairs, above the diagonal, whose squares lost more than two digits."""
    limit = CLOSE * centred.square().sum(1)
    if not len(limit) or float(squared.min()) > 2 * float(limit.max()):
        none = torch.empty(0, dtype=torch.long, device=centred.device)
        return none, none
    rows, columns = (squared <= limit[:, None] + limit).triu_(1).nonzero(as_tuple=True)
    return rows, columns


class _ByProduct(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        _: torch.Tensor,
        centred: torch.Tensor,
        squared: torch.Tensor,
        close: Close,
    ) -> torch.Tensor:
        squared = squared.fill_diagonal_(0.0).triu_()  # products need not be symmetric to the bit
        squared[close.rows, close.columns] = close.differences.square().sum(1)
        distances = squared.add_(squared.T.clone()).sqrt_()
        ctx.save_for_backward(centred, distances, *close)
        ctx.n_x = len(x)
        return distances

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Sum_j c_ij (a_i - a_j) with c = (G + G') / distance."""
        centred, distances, rows, columns, differences = ctx.saved_tensors
        to_x, to_y, *_ = ctx.needs_input_grad
        own = slice(0 if to_x else ctx.n_x, None if to_y else ctx.n_x)
        pull = (gradient + gradient.T).div_(distances).fill_diagonal_(0.0)
        near = torch.where(distances[rows, columns] > 0, pull[rows, columns], 0.0)
        pull[rows, columns] = pull[columns, rows] = 0.0
        pull = pull[own]
        out = torch.zeros_like(centred)
        torch.addmm(pull.sum(1, keepdim=True) * centred[own], pull, centred, alpha=-1, out=out[own])
        if len(rows):
            change = near[:, None] * differences
            out.index_add_(0, rows, change).index_add_(0, columns, change, alpha=-1)
        return out[: ctx.n_x] if to_x else None, out[ctx.n_x :] if to_y else None, None, None, None
