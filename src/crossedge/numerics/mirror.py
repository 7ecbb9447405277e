"""Sums and copies of a matrix and its transpose by tiles: reading columns would miss the cache."""

from __future__ import annotations

import numpy as np

from crossedge.runtime.compiled import compiled
from crossedge.runtime.threads import team_size
from crossedge.runtime.types import Floats

SIDE = 64  # rows and columns of a tile: 32 KB of doubles


@compiled
def mirrored(matrix: Floats, first: int, last: int, left: int, right: int, tile: Floats) -> None:
    """Write to `tile` rows first ... last - 1 and columns left ... right - 1 of the transpose."""
    for j in range(left, right):
        row = matrix[j, first:last]
        for i in range(len(row)):
            tile[i, j - left] = row[i]


@compiled
def add_mirror(matrix: Floats, first: int, last: int, out: Floats) -> None:
    """Write rows first ... last - 1 of matrix + matrix', in their first out.shape[1] columns."""
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
    """Copy rows first ... last - 1, left of the diagonal, to their mirror image above it."""
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
    """Return the number of threads for n rows; a small matrix is not worth a second one."""
    return team_size() if n > 2 * SIDE else 1
