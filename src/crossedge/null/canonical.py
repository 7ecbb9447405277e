"""An order of points in which a matrix looks the same, in whatever order its rows were given."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

ROUNDING = 1e-9


def canonical_order(A: Floats, c: Floats) -> Ints:
    """Of a symmetric matrix, and a number for each point.

    Points differ by their number, by how large their row is, and by their neighbours. Of those that
    are alike in all this one is put first, whichever; then its neighbours are no longer like those
    of the others, and so on until no two are alike (refinement of colours, as in tests of graphs
    for isomorphism).
    """
    n = len(A)
    # a number for each rank, so that sums over neighbours tell which ranks they have
    of_rank = np.random.default_rng(0).random(n)
    rank = _ranks(_ranks(np.zeros(n, np.int64), c), (A * A).sum(1))
    while True:
        classes = -1
        while classes < rank.max():
            classes = rank.max()
            rank = _ranks(rank, A @ of_rank[rank])
        order: Ints = np.argsort(rank, kind="stable")
        alike = np.flatnonzero(np.diff(rank[order]) == 0)
        if not len(alike):
            return order
        first = np.zeros(n)
        first[order[alike[0]]] = -1.0
        rank = _ranks(rank, first)


def _ranks(rank: Ints, value: Floats) -> Ints:
    """By rank, then by value but for rounding; equal ones share a rank."""
    value = value / max(float(np.abs(value).max()), np.finfo(float).tiny)
    order = np.lexsort([value, rank])
    steps = (np.diff(rank[order]) > 0) | (np.diff(value[order]) > ROUNDING)
    found = np.empty(len(rank), np.int64)
    found[order] = np.concatenate([[0], np.cumsum(steps)])
    return found
