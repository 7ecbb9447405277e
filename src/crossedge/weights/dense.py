"""Pair weights as a full matrix: what smoothed graphs are to the rest of the pipeline."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch


@dataclass(frozen=True, eq=False)
class DenseWeights:
    """A symmetric matrix W of pair weights with a zero diagonal."""

    matrix: torch.Tensor  # (n, n), float64

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
