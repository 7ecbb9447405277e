"""One neighbour for every point: a softmax in each row, and the symmetric weights of all rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crossedge.compiled import compiled, compiled_fused, compiled_sum
from crossedge.distances import COLD, TIE
from crossedge.numerics.cardinality import LARGEST, LEAST_POSITIVE, least_of
from crossedge.numerics.exponential import decay_of
from crossedge.numerics.mirror import SIDE, add_mirror, mirrored, reflect_tile

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

PART = 64  # of a row
FEW = 32  # rows, that stay in the cache


@compiled
def softmax_rows(
    first: int,
    last: int,
    distances: Floats,
    temperature: float,
    nearest: Ints,
    total: Floats,
    out: Floats,
) -> None:
    """e^-(d - nearest)/temperature for rows first ... last - 1, 0 on the diagonal, and its sums."""
    for i in range(first, last):
        nearest[i] = _nearest(distances[i], i)
        _decay(distances[i], i, nearest[i], temperature, out[i])
        total[i] = _sum(out[i])


@compiled_fused
def _decay(row: Floats, itself: int, nearest: int, temperature: float, out: Floats) -> None:
    """Where it is too cold to tell rounding from a difference, near-ties are ties."""
    per = min(1.0 / max(temperature, LEAST_POSITIVE), LARGEST)
    zero = row[nearest]
    blur = (TIE - 1) * zero if temperature <= COLD * zero else 0.0
    for j in range(len(row)):
        gap = row[j] - zero
        gap = gap if gap > blur else 0.0
        out[j] = decay_of(gap * per)
    out[itself] = 0.0


@compiled
def _nearest(row: Floats, itself: int) -> int:
    """Where the smallest other entry stands, the first of several."""
    least, place = np.inf, 0
    for first in range(0, len(row), PART):
        part = row[first : first + PART]
        if first <= itself < first + PART:
            smallest = np.inf
            for j in range(len(part)):
                if first + j != itself:
                    smallest = min(smallest, part[j])
        else:
            smallest = least_of(part)
        if smallest < least:
            least, place = smallest, first
    while row[place] != least or place == itself:
        place += 1
    return place


@compiled_sum
def _sum(row: Floats) -> float:
    total = 0.0
    for j in range(len(row)):
        total += row[j]
    return total


@compiled_sum
def _dot(a: Floats, b: Floats) -> float:
    total = 0.0
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


@compiled
def softmax_weights(first: int, last: int, total: Floats, out: Floats) -> None:
    """W_ij = P(j chosen by i) + P(i chosen by j), from e^-... in its place.

    For rows first ... last - 1 up to the diagonal, and their mirror images.
    """
    share = 1.0 / total
    tile = np.empty((SIDE, SIDE))
    for top in range(first, last, SIDE):
        bottom = min(top + SIDE, last)
        for left in range(0, bottom, SIDE):
            right = min(left + SIDE, bottom)
            mirrored(out, top, bottom, left, right, tile)
            for i in range(top, bottom):
                target, other, other_share = out[i, left:right], tile[i - top], share[left:right]
                for j in range(len(target)):
                    target[j] = target[j] * share[i] + other[j] * other_share[j]
            reflect_tile(out, top, bottom, left, right, tile)


@compiled
def softmax_pull_back(
    first: int,
    last: int,
    distances: Floats,
    temperature: float,
    nearest: Ints,
    total: Floats,
    gradient: Floats,
    out: Floats,
) -> None:
    """The gradient in the distances, from that in the weights, for rows first ... last - 1.

    Directions are measured from that of the nearest point, so that nothing is left to cancel where
    it has all the weight.
    """
    n = len(distances)
    direction, decay = np.empty((min(FEW, last - first), n)), np.empty(n)
    for top in range(first, last, FEW):
        bottom = min(top + FEW, last)
        add_mirror(gradient, top, bottom, direction)
        for i in range(top, bottom):
            c, target = direction[i - top], out[i]
            c[i] = 0.0  # W has no diagonal
            zero = c[nearest[i]]
            for j in range(n):
                c[j] -= zero
            _decay(distances[i], i, nearest[i], temperature, decay)
            mean = _dot(decay, c) / total[i]
            scale = min(1.0 / total[i] / temperature, LARGEST)
            for j in range(n):
                target[j] = decay[j] * (mean - c[j]) * scale
