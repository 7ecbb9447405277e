"""Distances between tensors of points, with a gradient that is 0 between equal points."""

from __future__ import annotations

import math
from typing import Any

import torch

from crossedge.autograd.once import only_once

MOST_FOR_CDIST = 1 << 29  # differences of coordinates, which torch.cdist takes less than 1 s for
BLOCK_DIFFERENCES = 1 << 21  # differences of coordinates that are in memory at a time


def lp_distances(points: torch.Tensor, p: float) -> torch.Tensor:
    """Return the (n, n) l_p distances of (n, d) points; only p = 2 has second derivatives."""
    function: Any = _Minkowski
    if len(points) * points.numel() <= MOST_FOR_CDIST:
        function = _Euclidean if p == 2 else _Direct if p in (1.0, math.inf) else function
    found: torch.Tensor = function.apply(points, p)
    return found


class _Euclidean(torch.autograd.Function):
    """Distances d, with the gradient sum_j c_ij (a_i - a_j) in the point a_i, c = (G + G') / d.

    G is the gradient in the distances; c is 0 between equal points. Where a second derivative may
    follow, the gradient is made of operations that can be differentiated any number of times.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(points: torch.Tensor, p: float) -> torch.Tensor:
        return torch.cdist(points, points, p, compute_mode="donot_use_mm_for_euclid_dist")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        ctx.save_for_backward(inputs[0], output)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        points, distances = ctx.saved_tensors
        if not torch.is_grad_enabled():  # by differences, which is more accurate for close points
            both = (gradient + gradient.mT).contiguous()
            return torch.ops.aten._cdist_backward(both, points, points, 2.0, distances), None
        apart = distances > 0
        safe = torch.where(apart, distances, 1.0)
        pull = torch.where(apart, (gradient + gradient.mT) / safe, 0.0)
        centred = points - points.detach().mean(0)
        return pull.sum(1, keepdim=True) * centred - pull @ centred, None


class _Direct(torch.autograd.Function):
    """The l_1 or l_infinity distance by the kernels of torch."""

    @staticmethod
    def forward(points: torch.Tensor, p: float) -> torch.Tensor:
        return torch.cdist(points, points, p)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        points, ctx.p = inputs
        ctx.save_for_backward(points, output)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        points, distances = ctx.saved_tensors
        with torch.no_grad():
            both = (gradient + gradient.mT).contiguous()
            found = torch.ops.aten._cdist_backward(both, points, points, ctx.p, distances)
        return only_once(found, "the l_p distance", gradient, points), None


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
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        (points,) = ctx.saved_tensors
        with torch.no_grad():
            found = _Minkowski.pull(points, gradient + gradient.T, ctx.p)
        return only_once(found, "the l_p distance", gradient, points), None

    @staticmethod
    def pull(points: torch.Tensor, pull: torch.Tensor, p: float) -> torch.Tensor:
        """Return the gradient in the points, from that in the distance of each pair."""
        parts = []
        for rows in _blocks(points):
            signs, _, powers, ratio = _relative(points, rows, p)
            if p == math.inf:
                slope = (ratio == 1).to(ratio)
                scale = 1 / slope.sum(2).clamp_(min=1.0)
            else:
                slope, scale = ratio.pow_(p - 1), powers.pow_(-(p - 1) / p)
            parts.append(((pull[rows] * scale)[..., None] * slope.mul_(signs)).sum(1))
        return torch.cat(parts)


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
