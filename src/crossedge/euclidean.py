"""Euclidean distances in many dimensions, by one product of matrices.

|a - b|^2 = |a|^2 + |b|^2 - 2 a'b cancels where a and b are near. Pairs nearer than a tenth of their
distance from the centre of all points are therefore taken by differences, like the gradient between
them; the others lose at most two digits of the square, hence of the distance.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch.autograd.function import once_differentiable

LONG = 1 << 29  # differences that take less than a second
NUMBERS = 1 << 21  # differences of coordinates that are held at a time
CLOSE = 0.01  # of |a|^2 + |b|^2: below this, by differences
MANY = 8  # close pairs a point, on average, beyond which differences for all pairs are no dearer


class Close(NamedTuple):
    """Pairs of near points."""

    rows: torch.Tensor
    columns: torch.Tensor
    differences: torch.Tensor


def direct_distances(points: torch.Tensor, p: float) -> torch.Tensor:
    """l_p distances by differences, (n, d) -> (n, n)."""
    if p in (1.0, 2.0, math.inf) and len(points) * points.numel() <= LONG:
        return torch.cdist(points, points, p, compute_mode="donot_use_mm_for_euclid_dist")
    found: torch.Tensor = _Minkowski.apply(points, p)  # type: ignore[no-untyped-call]
    return found


class _Minkowski(torch.autograd.Function):
    """d = (sum_k |a_k - b_k|^p)^(1/p), in blocks of rows, between which interrupts are heard.

    With m the largest difference, r_k = |a_k - b_k| / m and S = sum_k r_k^p, which is at least 1,
    d = m S^(1/p), and the derivative by a_k is sign(a_k - b_k) r_k^(p-1) S^(-(p-1)/p): no power
    leaves the range, whatever p. It is 0 between equal points.
    """

    @staticmethod
    def forward(points: torch.Tensor, p: float) -> torch.Tensor:
        parts = []
        for rows in _blocks(points):
            _, largest, powers, _ = _relative(points, rows, p)
            parts.append(largest * powers.pow_(1 / p))
        return torch.cat(parts)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:  # noqa: ARG004
        ctx.p = inputs[1]
        ctx.save_for_backward(inputs[0])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        (points,) = ctx.saved_tensors
        pull, p, parts = gradient + gradient.T, ctx.p, []
        for rows in _blocks(points):
            signs, _, powers, ratio = _relative(points, rows, p)
            if p == math.inf:
                slope = (ratio == 1).to(ratio)
                scale = 1 / slope.sum(2).clamp_(min=1.0)
            else:
                slope, scale = ratio.pow_(p - 1), powers.pow_(-(p - 1) / p)
            parts.append(((pull[rows] * scale)[..., None] * slope.mul_(signs)).sum(1))
        return torch.cat(parts), None


def _relative(
    points: torch.Tensor, rows: slice, p: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Signs of the differences, m, S and r, for these rows and all points."""
    differences = points[rows, None] - points
    signs, ratio = differences.sign(), differences.abs_()
    largest = ratio.amax(2)
    ratio = ratio / torch.where(largest > 0, largest, 1.0)[..., None]
    powers = torch.ones_like(largest) if p == math.inf else ratio.pow(p).sum(2)
    return signs, largest, torch.where(largest > 0, powers, 1.0), ratio


def _blocks(points: torch.Tensor) -> list[slice]:
    """Rows whose differences to all points are held at a time."""
    size = max(NUMBERS // max(points.numel(), 1), 1)
    return [slice(first, first + size) for first in range(0, len(points), size)]


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
        _: torch.Tensor,
        __: torch.Tensor,
        ___: torch.Tensor,
        squared: torch.Tensor,
        close: Close,
    ) -> torch.Tensor:
        squared = squared.fill_diagonal_(0.0).triu_()  # products need not be symmetric to the bit
        squared[close.rows, close.columns] = close.differences.square().sum(1)
        return (squared + squared.T).sqrt_()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        x, _, centred, _, close = inputs
        ctx.save_for_backward(centred, output, *close)
        ctx.n_x = len(x)

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
        change = torch.addmm(pull.sum(1, keepdim=True) * centred[own], pull, centred, alpha=-1)
        before, after = (
            centred.new_zeros(part, centred.shape[1])
            for part in (own.start or 0, len(centred) - (own.start or 0) - len(change))
        )
        out = torch.cat([before, change, after])
        if len(rows):
            change = near[:, None] * differences
            out.index_add_(0, rows, change).index_add_(0, columns, change, alpha=-1)
        return out[: ctx.n_x] if to_x else None, out[ctx.n_x :] if to_y else None, None, None, None
