"""Merge equal points, which have equal neighbours, into atoms."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from crossedge.data.distances import Distances, PointDistances, matrix_distances
from crossedge.runtime.types import Floats, Ints


class Distinct(NamedTuple):
    """The distinct points (atoms) of a sample, and how often each occurs."""

    distances: Distances  # between the atoms
    atom: Ints  # (n,): the atom of each point
    copies: Ints  # (atoms,): the number of points of each atom


def distinct(distances: Distances) -> Distinct:
    """Merge points with equal coordinates, or with equal rows in a matrix of distances."""
    n = distances.n
    if isinstance(distances, PointDistances):
        if any(_all_differ(column) for column in distances.points.T):  # much faster than by rows
            return Distinct(distances, np.arange(n), np.ones(n, np.int64))
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


def _all_differ(values: Floats) -> bool:
    return bool((np.diff(np.sort(values)) > 0).all())


def _first_equal_row(matrix: Floats) -> Ints:
    """Return for each point the first point at distance 0 with the same row, perhaps itself."""
    first = np.arange(len(matrix))
    for i, row in enumerate(matrix):
        candidate = int(np.argmax(row == 0))
        if candidate < i and np.array_equal(matrix[candidate], row):
            first[i] = candidate
    return first
