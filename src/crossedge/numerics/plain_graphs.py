"""Neighbourhoods by numpy alone: for small samples, which are not worth a compiler."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from crossedge.threads import in_threads
from crossedge.tolerances import COLD, TIE

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Rows = Callable[[int, int], Floats]  # first, last -> rows first ... last - 1 of the distances
Edges = tuple[Ints, Ints, Floats]  # i, j and the weight of each

SMALL = 512  # points
NUMBERS = 1 << 20  # in the rows that are looked at together


def nearest_in_rows(rows: Rows, k: int, copies: Ints) -> Edges:
    """Directed edges: j is among the k nearest of i, with what share of all equally near sets.

    Point i stands for copies[i] equal ones. The weight of an edge i, j is that of each pair of
    copies; i, i is for pairs of copies of i. With s points strictly nearer than the k-th and t at
    just its distance, every choice of k - s among the t is as good, so that each gets (k - s) / t.
    """
    n = len(copies)
    size = max(NUMBERS // n, 1)
    blocks = [(first, min(first + size, n)) for first in range(0, n, size)]
    found = in_threads(lambda block: _nearest_of_block(rows, *block, k, copies), blocks)
    i, j, weight = (np.concatenate(part) for part in zip(twins(k, copies), *found, strict=True))
    return i, j, weight


def twins(k: int, copies: Ints) -> Edges:
    """Edges i, i for the pairs of copies of i."""
    several = np.flatnonzero(copies > 1)
    return several, several, np.minimum(1.0, k / (copies[several] - 1))


def _nearest_of_block(rows: Rows, first: int, last: int, k: int, copies: Ints) -> Edges:
    distances = rows(first, last).copy()
    wanted = np.maximum(k + 1 - copies[first:last], 0)  # beside its own copies
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
    """The distance of the last one wanted, in each row."""
    if copies.max() == 1:
        last = int(wanted[0]) - 1
        return np.partition(distances, last, axis=1)[:, last]
    order = np.argsort(distances, axis=1, kind="stable")
    place = (np.cumsum(copies[order], axis=1) < wanted[:, None]).sum(1)
    each = np.arange(len(distances))
    last_wanted: Floats = distances[each, order[each, place]]
    return last_wanted


def softmax_weights(distances: Floats, temperature: float) -> Floats:
    """W_ij = P(j chosen by i) + P(i chosen by j), where i chooses in proportion to e^-d/t."""
    n = len(distances)
    chosen = np.empty((n, n))
    size = max(NUMBERS // n, 1)

    def of_rows(first: int) -> None:
        rows = chosen[first : first + size]
        rows[:] = distances[first : first + size]
        each = np.arange(len(rows))
        rows[each, first + each] = np.inf
        least = rows.min(1, keepdims=True)
        rows -= least
        if temperature <= COLD * least.max():
            # where it is too cold to tell rounding from a difference, near-ties are ties
            rows[(rows <= (TIE - 1) * least) & (temperature <= COLD * least)] = 0.0
        with np.errstate(over="ignore", under="ignore"):
            rows /= -temperature
            np.exp(rows, out=rows)
        rows /= rows.sum(1, keepdims=True)

    in_threads(of_rows, range(0, n, size))
    return chosen + chosen.T


def arrivals(matrix: Floats) -> tuple[Ints, Ints, Floats, bool]:
    """Prim's algorithm: the order of arrival, parents, lengths, and whether trees may tie.

    A tie is seen where an offer equals the best so far, or where two points could be next: every
    tie between trees shows in one of the two ways.
    """
    n = len(matrix)
    order, parent, key = np.zeros(n, np.int64), np.full(n, -1), np.full(n, np.inf)
    best, nearest, tied = np.full(n, np.inf), np.zeros(n, np.int64), False
    outside = np.ones(n, np.bool_)
    for step in range(1, n):
        latest = order[step - 1]
        outside[latest] = False
        best[latest] = np.inf
        row = matrix[latest]
        if step > 1:
            tied |= bool(((row * TIE >= best) & (row <= best * TIE) & outside).any())
        nearer = (row < best) & outside
        best[nearer], nearest[nearer] = row[nearer], latest
        chosen = int(best.argmin())
        tied |= bool(np.count_nonzero(best <= best[chosen] * TIE) > 1)
        order[step], parent[step], key[step] = chosen, nearest[chosen], best[chosen]
    return order, parent, key, tied


def tied_pairs(matrix: Floats, rank: Ints, limit: Floats) -> Ints:
    """(pairs, 2): arrivals a < b as near as the largest edge on the way from one to the other.

    These are the edges of all minimum spanning trees. Distances are in order of arrival.
    """
    n = len(matrix)
    later = np.triu(np.ones((n, n), np.bool_), 1)
    largest = np.maximum.accumulate(np.where(later, rank, -1), axis=1)
    return np.argwhere(later & (matrix <= limit[largest]))


def contract(a: Ints, b: Ints, edge_rank: Ints, n: int) -> tuple[Ints, Ints]:
    """The component, as left by the classes below its own, of each end of each edge.

    Edges stand in the order of their ranks.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    root, root_a, root_b = np.arange(n), np.empty_like(a), np.empty_like(b)
    borders = np.flatnonzero(np.diff(edge_rank, prepend=-1, append=n))
    for first, last in pairwise(borders):
        root_a[first:last], root_b[first:last] = root[a[first:last]], root[b[first:last]]
        if last - first == 1:
            root[root == root_b[first]] = root_a[first]
        else:
            ends = root_a[first:last], root_b[first:last]
            graph: Any = coo_array((np.ones(last - first), ends), (n, n))
            root = connected_components(graph, directed=False)[1][root]
    return root_a, root_b


def resistances(conductance: Floats) -> Floats:
    """Effective resistances by star-mesh elimination, as star_mesh.py derives it."""
    weight, n = conductance.copy(), len(conductance)
    total = np.ones(n)
    for k in range(n - 1, 0, -1):
        total[k] = weight[k, :k].sum()
        gain = np.outer(weight[k, :k] / total[k], weight[k, :k])
        weight[:k, :k] += gain
    resistance = np.zeros((n, n))
    for k in range(1, n):
        share = weight[k, :k] / total[k]
        v = resistance[:k, :k] @ share
        resistance[k, :k] = resistance[:k, k] = 1 / total[k] + v - share @ v / 2
    return resistance
