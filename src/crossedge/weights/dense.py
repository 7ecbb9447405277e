"""Pair weights as a full matrix: what smoothed graphs are to the rest of the pipeline."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch

LEAST, MOST = 1e-60, 1e60  # of the largest entry


@dataclass(frozen=True, eq=False)
class DenseWeights:
    """A symmetric matrix W = unit * matrix of pair weights with a zero diagonal."""

    matrix: torch.Tensor  # (n, n), float64
    unit: float = 1.0

    @classmethod
    def in_range(cls, W: torch.Tensor) -> DenseWeights:
        """Return weights whose sums, and sums of fourth powers, do not leave the range of doubles.

        They are W itself unless its entries are very large or very small. A unit is a power of two.
        """
        low, high = torch.aminmax(W.detach())
        largest = max(-float(low), float(high))
        if largest == 0 or LEAST < largest < MOST:
            return cls(W)
        unit = math.ldexp(1.0, min(max(math.frexp(largest)[1], -1021), 1023))
        return cls(W / unit, unit)

    @property
    def n(self) -> int:
        return len(self.matrix)

    @cached_property
    def degree(self) -> torch.Tensor:
        """(n,): the row sums."""
        return self.matrix.sum(1)

    @cached_property
    def total(self) -> float:
        """m, the sum of W over all pairs."""
        return float(self.degree.sum()) / 2

    @property
    def step(self) -> float:
        """Sums of such weights have no common step."""
        return 0.0

    @property
    def degree_step(self) -> float:
        return 0.0

    def dense(self) -> torch.Tensor:
        """W as an (n, n) tensor."""
        return self.matrix
