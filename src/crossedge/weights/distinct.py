"""Equal points have equal neighbours: merge them."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crossedge.distances import Distances, PointDistances, matrix_distances

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Distinct(NamedTuple):
    """Equal points as one."""

    distances: Distances  # between the distinct points
    atom: Ints  # (n,): which of them each point is
    copies: Ints  # (atoms,)


def distinct(distances: Distances) -> Distinct:
    """Merge points with equal coordinates, or with equal rows in a matrix of distances."""
    n = distances.n
    if isinstance(distances, PointDistances):
        points, atom, copies = np.unique(
            distances.points, axis=0, return_inverse=True, return_counts=True
        )
        if len(points) < n:
            return Distinct(replace(distances, points=points), atom.reshape(n), copies)
    elif distances.matrix is not None:
        first = _first_equal_row(distances.matrix)
        kept, atom, copies = np.unique(first, return_inverse=True, return_counts=True)
        if len(kept) < n:
            return Distinct(matrix_distances(distances.matrix[np.ix_(kept, kept)]), atom, copies)
    return Distinct(distances, np.arange(n), np.ones(n, np.int64))


def _first_equal_row(matrix: Floats) -> Ints:
    """For each point the first one at distance 0 whose row is the same, if only itself."""
    first = np.arange(len(matrix))
    for i, row in enumerate(matrix):
        candidate = int(np.argmax(row == 0))
        if candidate < i and np.array_equal(matrix[candidate], row):
            first[i] = candidate
    return first
