"""Euclidean distances in many dimensions, by one product of matrices.

|a - b|^2 = |a|^2 + |b|^2 - 2 a'b loses digits by cancellation where a and b are close. For pairs
that are closer than a tenth of their distance from the centre of all points, distances and
gradients are therefore computed from differences. All others lose at most two digits of the square,
and so of the distance.
"""

from __future__ import annotations

from typing import NamedTuple

from crossedge.runtime.arrays import clear_diagonal, is_tensor, namespace
from crossedge.runtime.types import Array

MANY_COLUMNS = 32  # from this many columns on, products of matrices are faster than differences
CLOSE_FRACTION = 0.01  # a pair is close if |a - b|^2 is at most this fraction of |a|^2 + |b|^2
MOST_CLOSE_PER_POINT = 8  # with more close pairs, differences for all pairs cost no more


class Product(NamedTuple):
    """Distances by a product of matrices, and what their gradient needs."""

    distances: Array  # (n, n)
    centred: Array  # (n, d) points less their mean
    rows: Array  # (pairs,): indices of the close pairs, above the diagonal
    columns: Array  # (pairs,)
    differences: Array  # (pairs, d), of the close pairs


def euclidean_by_product(points: Array) -> Product | None:
    """Return symmetric (n, n) distances of (n, d) points; None if too many pairs are close."""
    xp = namespace(points)
    centred = points - points.mean(0)
    norms = (centred * centred).sum(1)
    squared = norms[:, None] + norms
    squared -= 2 * (centred @ centred.T)
    squared = xp.triu(clear_diagonal(squared))  # a product need not be symmetric to the last bit
    rows, columns = _close_pairs(norms, squared)
    if len(rows) > MOST_CLOSE_PER_POINT * len(points):
        return None
    differences = points[rows] - points[columns]
    squared[rows, columns] = (differences * differences).sum(1)
    distances = squared + squared.T
    return Product(xp.sqrt(distances), centred, rows, columns, differences)


def _close_pairs(norms: Array, squared: Array) -> tuple[Array, Array]:
    """Return rows and columns of the pairs above the diagonal that lost more than two digits."""
    xp, limit = namespace(norms), CLOSE_FRACTION * norms
    near = xp.triu(squared <= limit[:, None] + limit, k=1)
    rows, columns = near.nonzero(as_tuple=True) if is_tensor(near) else near.nonzero()
    return rows, columns
