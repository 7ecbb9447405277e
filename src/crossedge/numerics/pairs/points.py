"""Euclidean distances of points by differences of coordinates, and the gradient in the points.

Points are stored by columns, (d, n), so that a row of distances is a sum over whole vectors.
"""

from __future__ import annotations

import numpy as np

from crossedge.numerics.mirror import SIDE, mirrored, team_for
from crossedge.runtime.compiled import compiled, compiled_fused, compiled_sum
from crossedge.runtime.team import in_team
from crossedge.runtime.types import Floats

ROWS = 16  # of distances in a part, the unit of work of a thread


def distances_of_columns(columns: Floats) -> Floats:
    """Return the (n, n) distances of (d, n) points, symmetric to the last bit."""
    n = columns.shape[1]
    out = np.empty((n, n))
    _distances(team_for(n), columns, out)
    return out


@compiled
def _distances(threads: int, columns: Floats, out: Floats) -> None:
    in_team(threads, _rows_of_distances, len(out), ROWS, (columns, out))


@compiled
def _rows_of_distances(first: int, last: int, columns: Floats, out: Floats) -> None:
    for i in range(first, last):
        distances_from(columns, i, out[i])


@compiled_fused
def distances_from(columns: Floats, i: int, out: Floats) -> None:
    """Write the distances of point i to all points."""
    d, n = columns.shape
    for j in range(n):
        out[j] = 0.0
    whole = d - d % 4
    for k in range(0, whole, 4):  # four at a time, so that `out` is read and written less often
        a, b, c, e = columns[k], columns[k + 1], columns[k + 2], columns[k + 3]
        a_i, b_i, c_i, e_i = a[i], b[i], c[i], e[i]
        for j in range(n):
            out[j] += (a[j] - a_i) ** 2 + (b[j] - b_i) ** 2 + (c[j] - c_i) ** 2 + (e[j] - e_i) ** 2
    for k in range(whole, d):
        a, a_i = columns[k], columns[k][i]
        for j in range(n):
            out[j] += (a[j] - a_i) ** 2
    for j in range(n):
        out[j] = np.sqrt(out[j])


@compiled_sum
def pull_to(columns: Floats, i: int, spread: Floats, out: Floats) -> None:
    """Write the gradient in point i, the sum over j of spread_j (a_i - a_j)."""
    for k in range(len(columns)):
        a, a_i, total = columns[k], columns[k][i], 0.0
        for j in range(len(spread)):
            total += spread[j] * (a_i - a[j])
        out[k] = total


def spread_of(pull: Floats, distances: Floats, first: int, last: int) -> Floats:
    """Return (G + G') / d for the rows first ... last - 1, 0 between equal points.

    G is the gradient in the distances d, as if all of its entries were independent.
    """
    out = np.empty((last - first, len(distances)))
    _spread(team_for(last - first), first, pull, distances, out)
    return out


@compiled
def _spread(threads: int, start: int, pull: Floats, distances: Floats, out: Floats) -> None:
    in_team(threads, _rows_of_spread, len(out), SIDE, (start, pull, distances, out))


@compiled
def _rows_of_spread(
    first: int, last: int, start: int, pull: Floats, distances: Floats, out: Floats
) -> None:
    n, tile = len(distances), np.empty((SIDE, SIDE))
    for left in range(0, n, SIDE):
        right = min(left + SIDE, n)
        mirrored(pull, start + first, start + last, left, right, tile)
        for i in range(first, last):
            target, source = out[i, left:right], pull[start + i, left:right]
            distance, other = distances[start + i, left:right], tile[i - first]
            for j in range(len(target)):
                near = distance[j] > 0.0
                target[j] = (source[j] + other[j]) / distance[j] if near else 0.0


def pull_to_points(columns: Floats, spread: Floats, first: int) -> Floats:
    """Return the gradient in the points from `first` on, one for each row of `spread`."""
    out = np.empty((len(spread), len(columns)))
    _pull(team_for(len(out)), columns, spread, first, out)
    return out


@compiled
def _pull(threads: int, columns: Floats, spread: Floats, start: int, out: Floats) -> None:
    in_team(threads, _rows_of_pull, len(out), ROWS, (columns, spread, start, out))


@compiled
def _rows_of_pull(
    first: int, last: int, columns: Floats, spread: Floats, start: int, out: Floats
) -> None:
    for i in range(first, last):
        pull_to(columns, start + i, spread[i], out[i])
