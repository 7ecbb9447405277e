"""The fourth moment of R over all labellings, for weights that sum to 0."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crossedge.runtime.threads import in_threads
from crossedge.runtime.types import Floats

BLOCK_ROWS = 128  # rows of a product of matrices in a block, the unit of work of a thread
# The factor of a block of edge ends, by its size, as coefficients of a polynomial in t: see
# `fourth_moment`.
BLOCK_FACTORS = {1: [0, 1], 2: [1, 0, -1], 3: [0, -2, 0, 2], 4: [-2, 0, 8, 0, -6]}


def fourth_moment(W: Floats, label_products: Sequence[float]) -> float:
    """Return the mean of R^4 for a matrix with a zero diagonal whose entries sum to 0.

    `label_products[k]` is the mean of a product of k distinct labels.

    R^4 is a sum over the eight ends of four edges. Ends that fall on the same point form a block.
    A sum over distinct points is a sum over all points less the coincidences, which gives blocks of
    size 1, 2, 3 and 4 the factors

        t,   1 - t^2,   2 t^3 - 2 t,   8 t^2 - 6 t^4 - 2,

    where t^k in the product of all factors stands for the mean of a product of k distinct labels.
    Every term below is a sum over all maps of a graph of four edges to the points. The number
    before it counts the ways to pair the ends into that graph. Graphs in which a single edge is a
    component are missing, because their sums are 0.
    """

    def mean(*blocks: int) -> float:
        product = np.ones(1)
        for size in blocks:
            product = np.convolve(product, BLOCK_FACTORS[size])
        return float(sum(c * label_products[k] for k, c in enumerate(product)))

    squared, walks = W * W, _square(W)
    degree, squares, cubes = W.sum(1), squared.sum(1), (squared * W).sum(1)
    onward, pairs, degree2 = W @ degree, squares.sum(), degree @ degree
    return (
        float(
            192 * mean(1, 2, 2, 2, 1) * (onward @ onward)  # a path
            + 192
            * mean(3, 1, 1, 2, 1)
            * (degree**2 @ onward)  # two edges and a path of two, joined
            + 192 * mean(2, 3, 2, 1) * (squares @ onward)  # a double edge, and a path of two
            + 192 * mean(3, 2, 2, 1) * (degree @ (walks * W).sum(1))  # a triangle and an edge
            + 96
            * mean(1, 3, 3, 1)
            * (degree @ (squared @ degree))  # a path, its middle edge doubled
            + 96 * mean(4, 2, 1, 1) * (squares @ degree**2)  # a double edge and two others, joined
            + 96 * mean(3, 3, 2) * (squared * walks).sum()  # a triangle with a double edge
            + 64 * mean(4, 3, 1) * (cubes @ degree)  # a triple edge and another
            + 48 * mean(2, 2, 2, 2) * (walks**2).sum()  # a cycle of four
            + 12 * mean(2, 2, 2, 2) * pairs**2  # two double edges apart
            + 48 * mean(2, 1, 1, 2, 1, 1) * degree2**2  # two paths of two apart
            + 48 * mean(2, 2, 2, 1, 1) * pairs * degree2  # a double edge and a path of two apart
            + 48 * mean(4, 2, 2) * (squares @ squares)  # two double edges, joined
            + 16 * mean(4, 1, 1, 1, 1) * (degree**4).sum()  # a star
            + 8 * mean(4, 4) * (squared**2).sum()  # an edge four times
        )
        / 16
    )


def _square(W: Floats) -> Floats:
    """Return the matrix product of W with itself, by blocks of rows."""
    out = np.empty_like(W)

    def of_rows(first: int) -> None:
        np.matmul(W[first : first + BLOCK_ROWS], W, out=out[first : first + BLOCK_ROWS])

    in_threads(of_rows, range(0, len(W), BLOCK_ROWS))
    return out
