"""Weights without row effects: W_uv = V_uv + a_u + a_v, with V of row sums 0."""

from __future__ import annotations

from crossedge.runtime.arrays import clear_diagonal
from crossedge.runtime.types import Array


def without_row_effects(W: Array) -> tuple[Array, Array]:
    """Return V and the centred degrees of W, both differentiable in a tensor."""
    n = len(W)
    V = clear_diagonal(W - W.sum() / (n * (n - 1)))
    degree = V.sum(1)
    degree = degree - degree.mean()
    if n > 2:
        for _ in range(2):  # the second time for what rounding left
            rows = V.sum(1)
            effect = (rows - rows.sum() / (2 * n - 2)) / (n - 2)
            V -= effect
            V -= effect[:, None]
            V = clear_diagonal(V)
    return V, degree
