"""One neighbour for every point: a softmax in each row, and the symmetric weights of all rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crossedge.compiled import compiled
from crossedge.numerics.mirror import SIDE, add_mirror, mirrored

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LARGEST = float(np.finfo(np.float64).max)  # finite, so that 0 times it is 0


@compiled
def row_sums(first: int, last: int, decay: Floats, total: Floats) -> None:
    """Of rows first ... last - 1 of e^-(d - nearest)/temperature, its diagonal made 0."""
    for i in range(first, last):
        row = decay[i]
        row[i] = 0.0
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        whole = len(row) // 4 * 4
        for j in range(0, whole, 4):
            s0 += row[j]
            s1 += row[j + 1]
            s2 += row[j + 2]
            s3 += row[j + 3]
        for j in range(whole, len(row)):
            s0 += row[j]
        total[i] = (s0 + s1) + (s2 + s3)


@compiled
def softmax_weights(first: int, last: int, decay: Floats, total: Floats, out: Floats) -> None:
    """W_ij = P(j chosen by i) + P(i chosen by j) for rows first ... last - 1."""
    n = len(decay)
    share = 1.0 / total
    tile = np.empty((SIDE, SIDE))
    for top in range(first, last, SIDE):
        bottom = min(top + SIDE, last)
        for left in range(0, n, SIDE):
            right = min(left + SIDE, n)
            mirrored(decay, top, bottom, left, right, tile)
            for i in range(top, bottom):
                target, source = out[i, left:right], decay[i, left:right]
                other, other_share = tile[i - top], share[left:right]
                for j in range(len(target)):
                    target[j] = source[j] * share[i] + other[j] * other_share[j]


@compiled
def softmax_pull_back(
    first: int,
    last: int,
    decay: Floats,
    total: Floats,
    nearest: Ints,
    gradient: Floats,
    temperature: float,
    out: Floats,
) -> None:
    """The gradient in the distances, from that in the weights, for rows first ... last - 1.

    Directions are measured from that of the nearest point, so that nothing is left to cancel where
    it has all the weight.
    """
    n = len(decay)
    direction = np.empty((min(SIDE, last - first), n))
    for top in range(first, last, SIDE):
        bottom = min(top + SIDE, last)
        add_mirror(gradient, top, bottom, direction)
        for i in range(top, bottom):
            row, c, target = decay[i], direction[i - top], out[i]
            c[i] = 0.0  # W has no diagonal
            zero = c[nearest[i, 0]]
            s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
            whole = len(row) // 4 * 4
            for j in range(0, whole, 4):
                s0 += row[j] * (c[j] - zero)
                s1 += row[j + 1] * (c[j + 1] - zero)
                s2 += row[j + 2] * (c[j + 2] - zero)
                s3 += row[j + 3] * (c[j + 3] - zero)
            for j in range(whole, len(row)):
                s0 += row[j] * (c[j] - zero)
            mean = ((s0 + s1) + (s2 + s3)) / total[i]
            scale = min(1.0 / total[i] / temperature, LARGEST)
            for j in range(len(row)):
                target[j] = row[j] * (mean - (c[j] - zero)) * scale
