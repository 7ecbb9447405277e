"""The sums of centred.py for products of features, without an n x n matrix.

Off the diagonal, V is M = F F' - e 1' - 1 e' for features F and row effects e: a product A C A' of
few columns. Sums over pairs are traces of powers of M, less what the diagonal of M adds to them.
"""

from __future__ import annotations

import numpy as np

from crossedge.moments.centred import SecondSums, ThirdSums
from crossedge.runtime.types import Floats
from crossedge.weights import LowRankWeights


class LowRankSums:
    """Sums over the weights without row effects."""

    def __init__(self, weights: LowRankWeights) -> None:
        n, rank = weights.features.shape
        self.total = weights.total
        mean = float(weights.degree.mean())
        self.degree: Floats = weights.degree - mean
        effect = self.degree / max(n - 2, 1) + mean / (2 * max(n - 1, 1))  # leaves no row sums
        self.A = np.column_stack([weights.features, effect, np.ones(n)])
        C = np.eye(rank + 2)
        C[rank:, rank:] = [[0.0, -1.0], [-1.0, 0.0]]
        self.AC = self.A @ C
        self.gram = self.A.T @ self.AC  # tr M^k = tr gram^k
        self.diagonal: Floats = weights.squares - 2 * effect

    def second(self) -> SecondSums:
        """Return the sums that variances need."""
        whole = float((self.gram * self.gram.T).sum())
        squares = (whole - float(self.diagonal @ self.diagonal)) / 2
        return SecondSums(
            np.float64(self.total), np.float64(squares), np.float64(self.degree @ self.degree)
        )

    def third(self) -> ThirdSums:
        """Return the sums that third moments need, but for cubes.

        Cubes would need all pairs. The kernel is smooth, so its triangles outnumber them n times.
        """
        degree, own = self.degree, self.diagonal
        squared: Floats = np.einsum("ij,ij->i", self.AC @ self.gram, self.A)  # diagonal of M^2
        onward = self.AC @ (self.A.T @ degree)
        return ThirdSums(
            cubes=np.float64(0.0),
            triangles=np.float64(
                np.trace(self.gram @ self.gram @ self.gram)
                - 3 * (own @ squared)
                + 2 * (own**3).sum()
            ),
            degree3=np.float64((degree**3).sum()),
            degree_squares=np.float64(degree @ (squared - own**2)),
            degree_degree=np.float64(degree @ onward - degree**2 @ own),
        )
