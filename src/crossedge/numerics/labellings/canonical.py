"""An order of points that makes a matrix the same, in whatever order its rows were given."""

from __future__ import annotations

import numpy as np

from crossedge.runtime.types import Floats, Ints

EQUAL_VALUES = 1e-9  # values that differ by less, relative to the largest, count as equal


def canonical_order(A: Floats, c: Floats) -> Ints:
    """Return the canonical order of the points of a symmetric matrix A, with a number c for each.

    Points are told apart by their number, by the norm of their row, and by their neighbours. Among
    points that are alike in all three, any one is put first. Its neighbours then differ from those
    of the others, and so on until no two points are alike (colour refinement, as in tests for graph
    isomorphism).
    """
    n = len(A)
    # a random number for each rank: sums over neighbours then show which ranks these have
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
    """Return ranks by the old rank, then by value; points equal in both share a rank."""
    value = value / max(float(np.abs(value).max()), np.finfo(float).tiny)
    order = np.lexsort([value, rank])
    steps = (np.diff(rank[order]) > 0) | (np.diff(value[order]) > EQUAL_VALUES)
    found = np.empty(len(rank), np.int64)
    found[order] = np.concatenate([[0], np.cumsum(steps)])
    return found
