"""Sums of pair weights inside the first sample, for many labellings of a full matrix."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

PARTS, LEAST = 4, 64  # blocks of columns of W, and how many columns they have at least


def half_squares(z: Floats, matrix: Floats) -> Floats:
    """(labellings,): z W z' / 2 for each row of (labellings, n) z, W symmetric.

    Blocks of W above the diagonal count twice, those below it need no product.
    """
    n = z.shape[1]
    size = max(-(-n // PARTS), LEAST)
    total = np.zeros(len(z))
    for first in range(0, n, size):
        own = slice(first, min(first + size, n))
        product = z[:, own] @ matrix[own, own]
        product *= 0.5
        if first:
            product += z[:, :first] @ matrix[:first, own]
        total += np.einsum("ij,ij->i", product, z[:, own])
    return total
