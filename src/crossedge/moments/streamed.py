"""The sums of centred.py for weights in blocks of rows, without an n x n matrix."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from crossedge.moments.centred import SecondSums, ThirdSums, estimated_triangles
from crossedge.runtime.threads import in_threads
from crossedge.runtime.types import Floats
from crossedge.weights.streamed import BLOCK_ROWS, StreamedWeights


class StreamedSums:
    """Sums over the weights V without row effects; it multiplies as V does."""

    def __init__(self, weights: StreamedWeights) -> None:
        n, mean = weights.n, float(weights.degree.mean())
        self.weights, self.shape = weights, (n, n)
        self.degree: Floats = weights.degree - mean
        self.effect = self.degree / max(n - 2, 1) + mean / (2 * max(n - 1, 1))

    def second(self) -> SecondSums:
        """Return the sums that variances need."""
        squares = float(self._powers[0].sum()) / 2
        return SecondSums(
            np.float64(self.weights.total),
            np.float64(squares),
            np.float64(self.degree @ self.degree),
        )

    def third(self) -> ThirdSums:
        """Return the sums that third moments need; triangles are estimated."""
        squares, cubes = self._powers
        onward = (self @ self.degree[:, None])[:, 0]
        return ThirdSums(
            cubes=np.float64(cubes.sum() / 2),
            triangles=estimated_triangles(self),
            degree3=np.float64((self.degree**3).sum()),
            degree_squares=np.float64(self.degree @ squares),
            degree_degree=np.float64(self.degree @ onward),
        )

    def __matmul__(self, vectors: Floats) -> Floats:
        """Return the product of V with (n, columns) vectors, by one pass."""
        found: list[Floats] = in_threads(
            lambda first: self._rows(first) @ vectors, range(0, self.shape[0], BLOCK_ROWS)
        )
        return np.concatenate(found)

    @cached_property
    def _powers(self) -> tuple[Floats, Floats]:
        """The sums of V^2 and of V^3 over each row, by one pass."""

        def of_block(first: int) -> tuple[Floats, Floats]:
            V = self._rows(first)
            squared = V * V
            return squared.sum(1), np.einsum("ij,ij->i", squared, V)

        found = in_threads(of_block, range(0, self.shape[0], BLOCK_ROWS))
        squares, cubes = (np.concatenate(part) for part in zip(*found, strict=True))
        return squares, cubes

    def _rows(self, first: int) -> Floats:
        last = min(first + BLOCK_ROWS, self.shape[0])
        V = self.weights.rows(first, last) - self.effect[first:last, None] - self.effect
        V[np.arange(last - first), np.arange(first, last)] = 0.0
        return V
