"""Distances between tensors of points, with a gradient that is 0 between equal points."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from crossedge.data.euclidean import MANY_COLUMNS, Product, euclidean_by_product

MOST_FOR_CDIST = 1 << 29  # differences of coordinates, which torch.cdist takes less than 1 s for
BLOCK_DIFFERENCES = 1 << 21  # differences of coordinates that are in memory at a time


def lp_distances(x: torch.Tensor, p: float, y: torch.Tensor | None = None) -> torch.Tensor:
    """Return the (n, n) distances of (n, d) points, given as x alone or as x and y.

    A product of matrices replaces differences where it is faster and does not lose digits.
    """
    if p == 2 and x.shape[1] >= MANY_COLUMNS:
        return euclidean_distances(x, x[:0] if y is None else y)
    return direct_distances(x if y is None else torch.cat([x, y]), p)


def direct_distances(points: torch.Tensor, p: float) -> torch.Tensor:
    """Return the (n, n) l_p distances of (n, d) points, by differences of coordinates."""
    if p in (1.0, 2.0, math.inf) and len(points) * points.numel() <= MOST_FOR_CDIST:
        return torch.cdist(points, points, p, compute_mode="donot_use_mm_for_euclid_dist")
    found: torch.Tensor = _Minkowski.apply(points, p)  # type: ignore[no-untyped-call]
    return found


class _Minkowski(torch.autograd.Function):
    """The l_p distance d = (sum_k |a_k - b_k|^p)^(1/p), in blocks of rows.

    Interrupts are handled between blocks. Let m be the largest difference, r_k = |a_k - b_k| / m
    and S = sum_k r_k^p, which is at least 1. Then d = m S^(1/p), and the derivative by a_k is
    sign(a_k - b_k) r_k^(p-1) S^(-(p-1)/p). No power leaves the range of floats, for any p. The
    derivative is 0 between equal points.
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
    """Return the signs of the differences, m, S and r, between these rows and all points."""
    differences = points[rows, None] - points
    signs, ratio = differences.sign(), differences.abs_()
    largest = ratio.amax(2)
    ratio = ratio / torch.where(largest > 0, largest, 1.0)[..., None]
    powers = torch.ones_like(largest) if p == math.inf else ratio.pow(p).sum(2)
    return signs, largest, torch.where(largest > 0, powers, 1.0), ratio


def _blocks(points: torch.Tensor) -> list[slice]:
    """Return blocks of rows whose differences to all points are in memory at a time."""
    size = max(BLOCK_DIFFERENCES // max(points.numel(), 1), 1)
    return [slice(first, first + size) for first in range(0, len(points), size)]


def euclidean_distances(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the symmetric (n, n) distances of all (n_x, d) and (n_y, d) points.

    The gradient between equal points is 0. If x or y needs no gradient, none is computed for it.
    """
    product = euclidean_by_product(torch.cat([x.detach(), y.detach()]))
    if product is None:
        return direct_distances(torch.cat([x, y]), 2.0)
    found: torch.Tensor = _ByProduct.apply(x, y, product)  # type: ignore[no-untyped-call]
    return found


class _ByProduct(torch.autograd.Function):
    """Euclidean distances by a product of matrices, with their gradient.

    Let G be the gradient in the distances d. The gradient in the point a_i is the sum over j of
    c_ij (a_i - a_j) with c = (G + G') / d. It is one more product of matrices, but for close pairs
    the differences a_i - a_j are used as they are.
    """

    @staticmethod
    def forward(_: torch.Tensor, __: torch.Tensor, product: Product) -> torch.Tensor:
        found: torch.Tensor = product.distances
        return found

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        x, _, product = inputs
        ctx.save_for_backward(output, *product[1:])
        ctx.n_x = len(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Return the gradients in x and y, None for one that is not needed."""
        distances, centred, rows, columns, differences = ctx.saved_tensors
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
        return out[: ctx.n_x] if to_x else None, out[ctx.n_x :] if to_y else None, None
