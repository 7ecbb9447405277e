"""Nearest neighbours by numpy alone, for small samples that are not worth compiling a loop."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from crossedge.numerics.tolerances import COLD, TIE
from crossedge.runtime.threads import in_threads
from crossedge.runtime.types import Floats, Ints

Rows = Callable[[int, int], Floats]  # first, last -> rows first ... last - 1 of the distances
Edges = tuple[Ints, Ints, Floats]  # i, j and weight of each edge

BLOCK_ENTRIES = 1 << 20  # distances in the rows of one block, which one thread handles


def nearest_in_rows(rows: Rows, k: int, copies: Ints) -> Edges:
    """Return directed edges i, j, weighted by the share of nearest sets of i that contain j.

    Point i stands for copies[i] equal points. The weight of an edge i, j holds for each pair of
    copies; i, i is for pairs of copies of i. With s points strictly nearer than the k-th and t at
    its distance, every choice of k - s among the t is as near, so each of them gets (k - s) / t.
    """
    n = len(copies)
    size = max(BLOCK_ENTRIES // n, 1)
    blocks = [(first, min(first + size, n)) for first in range(0, n, size)]
    found = in_threads(lambda block: _nearest_of_block(rows, *block, k, copies), blocks)
    i, j, weight = (np.concatenate(part) for part in zip(twins(k, copies), *found, strict=True))
    return i, j, weight


def twins(k: int, copies: Ints) -> Edges:
    """Return the edges i, i for the pairs of copies of i."""
    several = np.flatnonzero(copies > 1)
    return several, several, np.minimum(1.0, k / (copies[several] - 1))


def _nearest_of_block(rows: Rows, first: int, last: int, k: int, copies: Ints) -> Edges:
    distances = rows(first, last).copy()
    wanted = np.maximum(k + 1 - copies[first:last], 0)  # besides its own copies
    distances[np.arange(last - first), np.arange(first, last)] = np.inf
    furthest = _furthest(distances, wanted, copies)[:, None]
    near = distances <= furthest * TIE
    nearer = distances * TIE < furthest
    near &= (wanted > 0)[:, None]
    nearer_points, near_points = nearer @ copies, near @ copies
    i, j = np.nonzero(near)
    tied = np.maximum(near_points - nearer_points, 1)
    share = (wanted - nearer_points) / tied
    return i + first, j, np.where(nearer[i, j], 1.0, share[i])


def _furthest(distances: Floats, wanted: Ints, copies: Ints) -> Floats:
    """Return the distance of the last neighbour wanted, in each row."""
    if copies.max() == 1:
        last = int(wanted[0]) - 1
        return np.partition(distances, last, axis=1)[:, last]
    order = np.argsort(distances, axis=1, kind="stable")
    place = (np.cumsum(copies[order], axis=1) < wanted[:, None]).sum(1)
    each = np.arange(len(distances))
    last_wanted: Floats = distances[each, order[each, place]]
    return last_wanted


def softmax_weights(distances: Floats, temperature: float) -> Floats:
    """Return W_ij = P(j chosen by i) + P(i chosen by j), where i chooses by e^(-d/temperature)."""
    n = len(distances)
    chosen = np.empty((n, n))
    size = max(BLOCK_ENTRIES // n, 1)

    def of_rows(first: int) -> None:
        rows = chosen[first : first + size]
        rows[:] = distances[first : first + size]
        each = np.arange(len(rows))
        rows[each, first + each] = np.inf
        least = rows.min(1, keepdims=True)
        rows -= least
        if temperature <= COLD * least.max():
            # too cold to tell rounding from a difference: near-ties count as ties
            rows[(rows <= (TIE - 1) * least) & (temperature <= COLD * least)] = 0.0
        with np.errstate(over="ignore", under="ignore"):
            rows /= -temperature
            np.exp(rows, out=rows)
        rows /= rows.sum(1, keepdims=True)

    in_threads(of_rows, range(0, n, size))
    return chosen + chosen.T
