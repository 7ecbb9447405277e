"""Quadratic forms of many labellings in a dense matrix of pair weights."""

from __future__ import annotations

import numpy as np

from crossedge.runtime.types import Floats

MOST_BLOCKS, LEAST_COLUMNS = 4, 64  # blocks of columns of W; fewer columns make slow products


def half_squares(z: Floats, matrix: Floats) -> Floats:
    """Return z W z' / 2 for each row z of a (labellings, n) matrix, where W is symmetric.

    Blocks of W above the diagonal count twice, so those below it need no product.
    """
    n = z.shape[1]
    size = max(-(-n // MOST_BLOCKS), LEAST_COLUMNS)
    total = np.zeros(len(z))
    for first in range(0, n, size):
        own = slice(first, min(first + size, n))
        product = z[:, own] @ matrix[own, own]
        product *= 0.5
        if first:
            product += z[:, :first] @ matrix[:first, own]
        total += np.einsum("ij,ij->i", product, z[:, own])
    return total
