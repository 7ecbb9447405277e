"""Euclidean distances of points with many columns, by a product of matrices.

|a - b|^2 = |a|^2 + |b|^2 - 2 a'b loses digits where a and b are close; such pairs, which are few,
are computed by differences. The gradient in point i is the sum over j of c_ij (a_i - a_j), one more
product of matrices, again with differences for close pairs. Products are left to the caller.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from crossedge.numerics.mirror import SIDE, reflect, team_for
from crossedge.runtime.compiled import compiled, compiled_fused, compiled_sum
from crossedge.runtime.team import in_team
from crossedge.runtime.types import Floats

ROWS = 16  # in a part, the unit of work of a thread
CLOSE = 0.01  # a pair is close if |a - b|^2 is at most this fraction of |a|^2 + |b|^2
# or if |a|^2 + |b|^2 is at most this, as products of so small numbers underflow
UNDERFLOW = {np.dtype(np.float32): 1e-30, np.dtype(np.float64): 1e-280}

Matrix = Any  # an array of float32 or float64


def centred(points: Matrix, scale: float) -> tuple[Matrix, Floats]:
    """Return (points - mean) * scale in the type of the points, and their squared norms."""
    out, norms = np.empty_like(points), np.empty(len(points))
    _centre(team_for(len(points)), points, scale, out, norms)
    return out, norms


@compiled
def _centre(threads: int, points: Matrix, scale: float, out: Matrix, norms: Floats) -> None:
    mean = np.zeros(points.shape[1])
    for i in range(len(points)):
        for k in range(len(mean)):
            mean[k] += points[i, k] * scale
    mean /= len(points)
    in_team(threads, _rows_of_centred, len(points), ROWS, (points, scale, mean, out, norms))


@compiled_sum
def _rows_of_centred(
    first: int, last: int, points: Matrix, scale: float, mean: Floats, out: Matrix, norms: Floats
) -> None:
    for i in range(first, last):
        row, target, norm = points[i], out[i], 0.0
        for k in range(len(row)):
            target[k] = row[k] * scale - mean[k]
            norm += np.float64(target[k]) * np.float64(target[k])
        norms[i] = norm


def distances_of_products(gram: Matrix, norms: Floats, given: Matrix, scale: float) -> Floats:
    """Return distances, given the products a'b of centred points on and below the diagonal.

    `given` are the points before they were centred, which rounds them, and times `scale`.
    """
    out = np.empty(gram.shape)
    least = UNDERFLOW[given.dtype]
    _distances(team_for(len(gram)), gram, norms, given, scale, least, out)
    return out


@compiled
def _distances(
    threads: int,
    gram: Matrix,
    norms: Floats,
    given: Matrix,
    scale: float,
    least: float,
    out: Floats,
) -> None:
    rest = gram, norms, given, scale, least, out
    in_team(threads, _rows_of_distances, len(out), ROWS, rest)
    in_team(threads, _reflect, len(out), SIDE, (out,))


@compiled
def _reflect(first: int, last: int, out: Floats) -> None:
    reflect(out, first, last)


@compiled_fused
def _rows_of_distances(
    first: int,
    last: int,
    gram: Matrix,
    norms: Floats,
    given: Matrix,
    scale: float,
    least: float,
    out: Floats,
) -> None:
    for i in range(first, last):
        row, target, own, close = gram[i, :i], out[i, :i], norms[i], False
        for j in range(len(row)):
            both = own + norms[j]
            squared = both - 2.0 * row[j]
            close |= (squared <= CLOSE * both) | (both <= least)
            target[j] = max(squared, 0.0)
        if close:
            for j in range(len(row)):
                both = own + norms[j]
                if target[j] <= CLOSE * both or both <= least:
                    target[j] = _squared_difference(given[i], given[j], scale)
        for j in range(len(target)):
            target[j] = np.sqrt(target[j])
        out[i, i] = 0.0


@compiled_sum
def _squared_difference(a: Matrix, b: Matrix, scale: float) -> float:
    total = 0.0
    for k in range(len(a)):
        total += ((np.float64(a[k]) - np.float64(b[k])) * scale) ** 2
    return total


def split_spread(
    spread: Floats,
    distances: Floats,
    points: Matrix,
    norms: Floats,
    given: Matrix,
    scale: float,
    first: int,
) -> tuple[Matrix, Matrix]:
    """Split the gradient c in the distances over these, by rows from `first` on.

    Return c without close pairs, in the type of the points, and the part of the gradient that close
    pairs and the sums of c contribute: c_ij (a_i - a_j) for the former, a_i sum_j c_ij for others.
    """
    rows = len(spread)
    far = np.empty(spread.shape, points.dtype)
    out = np.empty((rows, points.shape[1]), points.dtype)
    least = UNDERFLOW[points.dtype]
    _split(team_for(rows), first, spread, distances, points, norms, given, scale, least, far, out)
    return far, out


@compiled
def _split(
    threads: int,
    start: int,
    spread: Floats,
    distances: Floats,
    points: Matrix,
    norms: Floats,
    given: Matrix,
    scale: float,
    least: float,
    far: Matrix,
    out: Matrix,
) -> None:
    rest = start, spread, distances, points, norms, given, scale, least, far, out
    in_team(threads, _rows_of_split, len(out), ROWS, rest)


@compiled_sum
def _rows_of_split(
    first: int,
    last: int,
    start: int,
    spread: Floats,
    distances: Floats,
    points: Matrix,
    norms: Floats,
    given: Matrix,
    scale: float,
    least: float,
    far: Matrix,
    out: Matrix,
) -> None:
    for row in range(first, last):
        i = start + row
        source, target, d, total = spread[row], far[row], distances[i], 0.0
        close = False
        for j in range(len(source)):
            both = norms[i] + norms[j]
            near = (d[j] * d[j] <= CLOSE * both) | (both <= least)
            close |= near and j != i
            value = 0.0 if near else source[j]
            target[j] = value
            total += value
        for k in range(out.shape[1]):
            out[row, k] = total * points[i, k]
        if close:
            for j in range(len(source)):
                both = norms[i] + norms[j]
                if j != i and (d[j] * d[j] <= CLOSE * both or both <= least):
                    for k in range(out.shape[1]):
                        difference = np.float64(given[i, k]) - np.float64(given[j, k])
                        out[row, k] += source[j] * (difference * scale)
