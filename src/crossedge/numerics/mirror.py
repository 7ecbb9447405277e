"""Add a matrix to its transpose, a tile at a time: reading down columns would miss the cache."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crossedge.compiled import compiled
from crossedge.numerics.vectors import turn
from crossedge.threads import team_size

Floats = npt.NDArray[np.float64]

SIDE = 64


@compiled
def mirrored(matrix: Floats, first: int, last: int, left: int, right: int, tile: Floats) -> None:
    """Rows first ... last - 1 of the transpose, columns left ... right - 1."""
    whole, end = left + (right - left) // 4 * 4, first + (last - first) // 4 * 4
    for j in range(left, whole, 4):
        for i in range(first, end, 4):
            turn(matrix, j, i, tile, i - first, j - left)
        for i in range(end, last):
            for k in range(j, j + 4):
                tile[i - first, k - left] = matrix[k, i]
    for j in range(whole, right):
        row = matrix[j, first:last]
        for i in range(len(row)):
            tile[i, j - left] = row[i]


@compiled
def add_mirror(matrix: Floats, first: int, last: int, out: Floats) -> None:
    """out[i] = matrix[first + i] + matrix'[first + i], up to row last - 1 and as long as out is."""
    width = out.shape[1]
    tile = np.empty((SIDE, SIDE))
    for top in range(first, last, SIDE):
        bottom = min(top + SIDE, last)
        for left in range(0, width, SIDE):
            right = min(left + SIDE, width)
            mirrored(matrix, top, bottom, left, right, tile)
            for i in range(top, bottom):
                target, source = out[i - first, left:right], matrix[i, left:right]
                other = tile[i - top]
                for j in range(len(target)):
                    target[j] = source[j] + other[j]


@compiled
def reflect(matrix: Floats, first: int, last: int) -> None:
    """Copy rows first ... last - 1 left of the diagonal to where it mirrors them."""
    tile = np.empty((SIDE, SIDE))
    for top in range(first, last, SIDE):
        bottom = min(top + SIDE, last)
        for left in range(0, bottom, SIDE):
            right = min(left + SIDE, bottom)
            mirrored(matrix, left, right, top, bottom, tile)
            for j in range(left, right):
                start = max(top, j + 1)
                matrix[j, start:bottom] = tile[j - left, start - top : bottom - top]


def team_for(n: int) -> int:
    """How many threads for n rows: a small matrix is not worth a second one."""
    return team_size() if n > 2 * SIDE else 1


def parts_of_rows(n: int) -> list[tuple[int, int]]:
    """About eight ranges of rows for several threads; a small matrix is not worth a second one."""
    size = max(n // (8 * SIDE), 1) * SIDE if n > 4 * SIDE else n
    return [(first, min(first + size, n)) for first in range(0, n, size)]
