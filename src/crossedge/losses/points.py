"""From points to distances and back, by differences of coordinates or by a product of matrices."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from crossedge.numerics.pairs.points import distances_of_columns, pull_to_points
from crossedge.numerics.pairs.products import centred, distances_of_products, split_spread
from crossedge.runtime.types import Floats

MANY_COLUMNS = 48  # from here on a product of matrices is faster than differences
BLOCK_ROWS = 128  # of a symmetric product: blocks above the diagonal are left out
USUAL_RANGE = 1e-100, 1e100  # of the largest coordinate: no square leaves the range of doubles
FAR_EXPONENT = 400  # other coordinates are scaled to 2^400, which leaves most room for small ones


@dataclass(frozen=True)
class DirectPoints:
    """Points whose distances are computed by differences of coordinates."""

    columns: Floats  # (d, n), times `scale`
    scale: float  # a power of two

    @cached_property
    def distances(self) -> Floats:
        """The (n, n) distances of the points, times `scale`."""
        return distances_of_columns(self.columns)

    def pull(self, spread: Floats, first: int) -> Floats:
        """Return the gradients in the scaled points from `first` on, one for each row of `spread`.

        These rows hold the gradient in the scaled distances over these distances.
        """
        return pull_to_points(self.columns, spread, first)


@dataclass(frozen=True)
class ProductPoints:
    """Points whose distances are computed by a product of matrices, in their own precision."""

    given: Any  # (n, d)
    scale: float  # a power of two
    points: Any  # (n, d): the same less their mean, times `scale`
    norms: Floats  # their squared norms

    @cached_property
    def distances(self) -> Floats:
        """The (n, n) distances of the points, times `scale`."""
        gram = symmetric_product(torch.from_numpy(self.points))
        return distances_of_products(gram.numpy(), self.norms, self.given, self.scale)

    def pull(self, spread: Floats, first: int) -> Any:
        """Return the gradients in the scaled points from `first` on, one for each row of `spread`.

        These rows hold the gradient in the scaled distances over these distances.
        """
        own = self.distances, self.points, self.norms, self.given, self.scale
        far, out = split_spread(spread, *own, first)
        product, far, points = (torch.from_numpy(one) for one in (out, far, self.points))
        torch.addmm(product, far, points, alpha=-1, out=product)
        return out


def symmetric_product(rows: torch.Tensor) -> torch.Tensor:
    """Return the products of all rows with each other, on and below the diagonal."""
    out = rows.new_empty(len(rows), len(rows))
    for first in range(0, len(rows), BLOCK_ROWS):
        last = min(first + BLOCK_ROWS, len(rows))
        out[first:last, :last] = rows[first:last] @ rows[:last].T
    return out


def scaled_points(pooled: Any) -> DirectPoints | ProductPoints:
    """Return (n, d) points in float32 or float64, or raise ValueError if they are not finite."""
    largest = max(float(pooled.max()), -float(pooled.min()))
    if not largest < math.inf:
        raise ValueError("x or y has NaN or infinite entries: the loss needs finite points")
    exponent = math.frexp(largest)[1]
    if pooled.shape[1] >= MANY_COLUMNS:
        # far doubles leave most room for small ones, too
        top = FAR_EXPONENT if pooled.dtype == np.float64 and largest > USUAL_RANGE[1] else 0
        scale = math.ldexp(1.0, min(max(top - exponent, -1000), 1000))
        return ProductPoints(pooled, scale, *centred(pooled, scale))
    columns, scale = np.ascontiguousarray(pooled.T, np.float64), 1.0
    if largest > 0 and not USUAL_RANGE[0] < largest < USUAL_RANGE[1]:
        scale = math.ldexp(1.0, min(FAR_EXPONENT - exponent, 1000))
        columns *= scale
    return DirectPoints(columns, scale)


@dataclass(frozen=True)
class GivenDistances:
    """Points of which only distances are known."""

    distances: Floats
    scale: float = 1.0


Points = DirectPoints | ProductPoints | GivenDistances
