"""Points of a kind do alike to a statistic: which those are, and how many of each may be in x."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

import numpy as np
import numpy.typing as npt
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from crossedge.statistics.label_moments import Form, mean_label_product

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MOST_KINDS = 16
MOST_COUNTS, MOST_NUMBERS = 20_000, 4_000_000  # ways to divide n_x among the kinds; times n


def kinds_of(V: Floats, degree: Floats, form: Form, n_x: int) -> Iterator[Ints]:
    """The kind of each point, in two ways, each with as many kinds as have few enough ways.

    First Ward's clusters of what a label adds to the form, through the rows of V, the weights
    without row effects, and through the degrees. Then the points that add the most, each a kind of
    its own, and all others another.
    """
    n = len(V)
    e2, e4 = (mean_label_product(k, n_x, n - n_x) for k in (2, 4))
    of_rows, of_degrees = form.a**2 * max(1 - 2 * e2 + e4, 0.0), form.b**2 * (1 - e2)
    products = of_rows * (V @ V) + of_degrees * np.outer(degree, degree)
    order = _order(V, np.diag(products))
    products = products[np.ix_(order, order)]
    own = np.diag(products)
    apart = np.sqrt(np.maximum(own[:, None] + own - 2 * products, 0.0))
    tree = linkage(squareform(_rounded(apart), checks=False), "ward")
    most = min(MOST_COUNTS, MOST_NUMBERS // n)
    for many in range(min(MOST_KINDS, n), 1, -1):
        kind = fcluster(tree, many, "maxclust") - 1
        if kind.max() == many - 1 and ways(np.bincount(kind), n_x) <= most:
            yield kind[np.argsort(order)]
            break
    for many in range(MOST_KINDS - 1, 0, -1):
        if many < n - 1:
            kind = np.full(n, many)
            kind[order[:many]] = np.arange(many)
            if ways(np.bincount(kind), n_x) <= most:
                yield kind
                break


def _order(V: Floats, own: Floats) -> Ints:
    """Points by what they add, most first; ties by what their neighbours add, and theirs.

    So that no order of the rows decides, but among points that are alike in all this.
    """
    value, squares = _rounded(own), V * V
    squares = squares / max(squares.sum(1).max(), np.finfo(float).tiny)
    values = [value]
    for _ in range(4):
        value = _rounded(value + squares @ value**2)
        values.append(value)
    return np.lexsort([-value for value in reversed(values)])


def _rounded(values: Floats) -> Floats:
    """In units of the largest, without what rounding left."""
    found: Floats = np.round(values / max(float(np.abs(values).max()), np.finfo(float).tiny), 9)
    return found


def ways(sizes: Ints, n_x: int) -> float:
    """To divide n_x among the kinds."""
    return float(reduce(np.convolve, [np.ones(size + 1) for size in sizes])[n_x])


def counts_of(sizes: Ints, n_x: int) -> Ints:
    """(ways, kinds): how many of each kind are in x, in all ways."""
    found, left = np.zeros((1, 0), np.int64), np.array([n_x])
    for place, size in enumerate(sizes):
        after = sizes[place + 1 :].sum()
        low, high = np.maximum(0, left - after), np.minimum(size, left)
        many = high - low + 1
        row = np.repeat(np.arange(len(found)), many)
        first = np.repeat(np.cumsum(many) - many, many)
        count = low[row] + np.arange(len(row)) - first
        found, left = np.column_stack([found[row], count]), left[row] - count
    return found
