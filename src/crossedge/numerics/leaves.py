"""Points in small boxes (leaves), so that a search can skip a box without looking inside.

Distances here are reduced: the square for l_2, the distance itself for every other l_p. They order
pairs as distances do, and cost less.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crossedge.numerics.tolerances import TIE
from crossedge.runtime.compiled import compiled
from crossedge.runtime.types import Floats, Ints


class Leaves(NamedTuple):
    """Boxes of at most `capacity` points, stored axis by axis for vector instructions."""

    points: Floats  # (leaves, d, capacity): coordinates
    ids: Ints  # (leaves, capacity): the index of each point in the sample
    sizes: Ints  # (leaves,): the number of points in each leaf
    low: Floats  # (d, leaves): the lower corner of each box
    high: Floats  # (d, leaves): the upper corner


def build_leaves(points: Floats, capacity: int) -> Leaves:
    """Halve (n, d) points at the median of their widest axis until each part fits a leaf."""
    n, d = points.shape
    pieces, pending = [], [np.arange(n)]
    while pending:
        piece = pending.pop()
        if len(piece) <= capacity:
            pieces.append(piece)
            continue
        inside = points[piece]
        widest = int(np.argmax(inside.max(0) - inside.min(0)))
        middle = len(piece) // 2
        piece = piece[np.argpartition(inside[:, widest], middle)]
        pending += [piece[middle:], piece[:middle]]
    leaves = Leaves(
        np.zeros((len(pieces), d, capacity)),
        np.full((len(pieces), capacity), -1),
        np.array([len(piece) for piece in pieces]),
        np.empty((d, len(pieces))),
        np.empty((d, len(pieces))),
    )
    for leaf, piece in enumerate(pieces):
        inside = points[piece].T
        leaves.points[leaf, :, : len(piece)] = inside
        leaves.ids[leaf, : len(piece)] = piece
        leaves.low[:, leaf] = inside.min(1)
        leaves.high[:, leaf] = inside.max(1)
    return leaves


def reduced_tie(p: float) -> float:
    """Return the factor within which two reduced distances tie."""
    return TIE * TIE if p == 2 else TIE


@compiled
def reduced_distances(points: Floats, count: int, point: Floats, p: float, out: Floats) -> None:
    """Write the reduced distances from a (d,) point to the first `count` of (d, m) points."""
    d = len(point)
    for other in range(count):
        out[other] = 0.0
    if p == 2.0:
        for axis in range(d % 4):
            for other in range(count):
                a = points[axis, other] - point[axis]
                out[other] += a * a
        for axis in range(d % 4, d, 4):  # four axes at a time: fewer passes over `out`
            for other in range(count):
                a = points[axis, other] - point[axis]
                b = points[axis + 1, other] - point[axis + 1]
                c = points[axis + 2, other] - point[axis + 2]
                e = points[axis + 3, other] - point[axis + 3]
                out[other] += (a * a + b * b) + (c * c + e * e)
    elif p == 1.0:
        for axis in range(d):
            for other in range(count):
                out[other] += abs(points[axis, other] - point[axis])
    else:
        for axis in range(d):
            for other in range(count):
                out[other] = max(out[other], abs(points[axis, other] - point[axis]))
        if p < np.inf:  # relative to the largest difference, so that no power overflows
            for other in range(count):
                largest = out[other]
                if largest > 0.0:
                    powers = 0.0
                    for axis in range(d):
                        powers += (abs(points[axis, other] - point[axis]) / largest) ** p
                    out[other] = largest * powers ** (1.0 / p)


@compiled
def reduced_gaps(
    low: Floats, high: Floats, lowest: Floats, highest: Floats, p: float, gaps: Floats, out: Floats
) -> None:
    """Write lower bounds on the reduced distances from the box [lowest, highest] to m boxes.

    `gaps` is (d, m) of scratch space. The bound leaves room for rounding, and is never above a
    computed distance.
    """
    d, m = low.shape
    for axis in range(d):
        for box in range(m):
            above = low[axis, box] - highest[axis]
            below = lowest[axis] - high[axis, box]
            gaps[axis, box] = max(above, below, 0.0)
    norm = p if p <= 2.0 and p == np.floor(p) else np.inf  # l_inf is below every l_p, and cheap
    reduced_distances(gaps, m, np.zeros(d), norm, out)
    for box in range(m):
        out[box] *= 1.0 - 1e-12


@compiled
def reduced_gap(low: Floats, high: Floats, box: int, point: Floats, p: float) -> float:
    """Return a lower bound on the reduced distance from a point to one box."""
    total = 0.0
    for axis in range(len(point)):
        gap = max(low[axis, box] - point[axis], point[axis] - high[axis, box], 0.0)
        if p == 2.0:
            total += gap * gap
        elif p == 1.0:
            total += gap
        else:
            total = max(total, gap)
    return total * (1.0 - 1e-12)
