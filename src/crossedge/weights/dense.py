"""Pair weights as a full matrix: the form of smoothed graphs and kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from crossedge.runtime.arrays import fixed
from crossedge.runtime.types import Array

# If the largest entry lies between these, sums of fourth powers are in the range of doubles.
LEAST_IN_RANGE, MOST_IN_RANGE = 1e-60, 1e60


@dataclass(frozen=True, eq=False)
class DenseWeights:
    """A symmetric matrix W = unit * matrix of pair weights with a zero diagonal."""

    matrix: Array  # (n, n), float64
    unit: float = 1.0

    @classmethod
    def in_range(cls, W: Array) -> DenseWeights:
        """Return W scaled such that sums of its fourth powers stay in the range of doubles.

        The unit is 1 unless entries are very large or very small, and always a power of two.
        """
        largest = max(-float(fixed(W).min()), float(fixed(W).max()))
        if largest == 0 or LEAST_IN_RANGE < largest < MOST_IN_RANGE:
            return cls(W)
        unit = math.ldexp(1.0, min(max(math.frexp(largest)[1], -1021), 1023))
        return cls(W / unit, unit)

    @property
    def n(self) -> int:
        """The number of pooled points."""
        return len(self.matrix)

    @cached_property
    def degree(self) -> Array:
        """The row sums, (n,)."""
        return self.matrix.sum(1)

    @cached_property
    def total(self) -> float:
        """The sum m of the weights over all pairs."""
        return float(self.degree.sum()) / 2

    @property
    def step(self) -> float:
        """0: sums of such weights are not multiples of a common step."""
        return 0.0

    @property
    def degree_step(self) -> float:
        """0: differences of degrees are not multiples of a common step."""
        return 0.0

    def dense(self) -> Array:
        """Return W / unit as an (n, n) matrix."""
        return self.matrix
