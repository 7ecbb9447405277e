"""Minimum spanning trees by numpy alone, for small samples that are not worth compiling a loop."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from crossedge.numerics.tolerances import TIE
from crossedge.runtime.types import Floats, Ints


def arrivals(matrix: Floats) -> tuple[Ints, Ints, Floats, bool]:
    """Run Prim's algorithm: return the order of arrival, parents, lengths, and whether trees tie.

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
    """Return (pairs, 2): arrivals a < b as near as the longest tree edge on the path between them.

    These are the edges of all minimum spanning trees. Distances are in order of arrival.
    """
    n = len(matrix)
    later = np.triu(np.ones((n, n), np.bool_), 1)
    largest = np.maximum.accumulate(np.where(later, rank, -1), axis=1)
    return np.argwhere(later & (matrix <= limit[largest]))


def contract(a: Ints, b: Ints, edge_rank: Ints, n: int) -> tuple[Ints, Ints]:
    """Return, for both ends of each edge, the component left by all classes below the edge's own.

    Edges are in the order of their ranks.
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
    """Return effective resistances by star-mesh elimination, as derived in star_mesh.py."""
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


def edge_resistances(n: int, i: Ints, j: Ints, conductance: Floats) -> Floats:
    """Return the resistance across each edge of a small graph, which may have several parts.

    Parallel edges add up.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph: Any = coo_array((conductance, (i, j)), (n, n))
    part = connected_components(graph, directed=False)[1]
    by_part = np.argsort(part, kind="stable")
    sizes = np.bincount(part)
    ends = np.cumsum(sizes)
    number = np.empty(n, np.int64)  # of a vertex in its part
    number[by_part] = np.arange(n) - np.repeat(ends - sizes, sizes)
    edges_by_part = np.argsort(part[i], kind="stable")
    borders = np.append(0, np.cumsum(np.bincount(part[i], minlength=len(sizes))))
    found = np.empty(len(i))
    for size, (first, last) in zip(sizes, pairwise(borders), strict=True):
        edges = edges_by_part[first:last]
        a, b, dense = number[i[edges]], number[j[edges]], np.zeros((size, size))
        np.add.at(dense, (a, b), conductance[edges])
        found[edges] = resistances(dense + dense.T)[a, b]
    return found
