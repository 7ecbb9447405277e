"""The sums of centred.py for a list of edges, without an n x n matrix.

All sums are computed for W', which is W less its mean, and then converted to those of
V_uv = W'_uv - a_u - a_v with a = deg / (n - 2).
"""

from __future__ import annotations

from math import perm
from typing import Any

import numpy as np

from crossedge.moments.centred import SecondSums, ThirdSums, estimated_triangles, triangles
from crossedge.numerics import SMALL
from crossedge.runtime.types import Floats
from crossedge.weights import EdgeList

# If more than one in this many entries of a matrix is not 0, a product of matrices is as fast as a
# walk over the edges.
SPARSE_RATIO = 32

CANCELLATION = 1e-13  # relative rounding error of a difference of two sums


class _Rows:
    """Row sums of W' and of its square, for a point of each atom."""

    def __init__(self, graph: EdgeList) -> None:
        n = graph.n
        self.mean = graph.total / (n * (n - 1) / 2)
        self.above = graph.weight - self.mean
        # the number of pairs in a row with weight 0, for which W' = -mean
        self.unjoined = n - 1 - graph.row_sums(np.ones_like(self.above))
        self.degree = graph.row_sums(self.above) - self.mean * self.unjoined
        self.squares: Floats = graph.row_sums(self.above**2) + self.mean**2 * self.unjoined
        self.degree2 = float(graph.sizes @ self.degree**2)
        self.per_point = 1 / (n - 2) if n > 2 else 0.0


def second_sums_of_edges(graph: EdgeList) -> SecondSums:
    """Return the sums that variances need."""
    rows = _Rows(graph)
    whole = float(graph.sizes @ rows.squares) / 2
    squares = whole - rows.degree2 * rows.per_point
    if squares <= CANCELLATION * whole:  # V is 0 but for rounding, as with all points but one equal
        squares = 0.0
    return SecondSums(np.float64(graph.total), np.float64(squares), np.float64(rows.degree2))


def third_sums_of_edges(graph: EdgeList, *, nearly: bool = False) -> ThirdSums:
    """Return the sums that third moments need; with `nearly`, triangles are estimated."""
    n, sizes, rows = graph.n, graph.sizes, _Rows(graph)
    c, degree, squares, r = rows.mean, rows.degree, rows.squares, rows.per_point
    cubes = graph.row_sums(rows.above**3) - c**3 * rows.unjoined
    onward = graph.row_sums(graph.weight, degree) + c * degree  # W' deg, since degrees sum to 0
    # tr (W - c (J - I))^3, with (J - I)^2 = (n - 2) J + I
    walks = (
        closed_triangles(graph, nearly=nearly)
        - 3 * c * (sizes @ (graph.degree**2 - graph.row_sums(graph.weight**2)))
        + 6 * c**2 * (n - 2) * graph.total
        - c**3 * perm(n, 3)
    )
    d3 = float(sizes @ degree**3)
    ds, dwd = float(sizes @ (degree * squares)), float(sizes @ (degree * onward))
    values = (
        (sizes @ cubes) / 2 - 3 * ds * r + 3 * (d3 + dwd) * r**2 - (n - 4) * d3 * r**3,
        walks - 6 * (dwd - ds) * r + 3 * ((n - 4) * dwd - 4 * d3) * r**2 - (16 - 6 * n) * d3 * r**3,
        d3,
        ds - 2 * (d3 + dwd) * r + (n - 4) * d3 * r**2,
        dwd + 2 * d3 * r,
    )
    return ThirdSums(*(np.float64(value) for value in values))


def closed_triangles(graph: EdgeList, *, nearly: bool = False) -> float:
    """Return the trace of W^3, the weight of all closed walks over three distinct points."""
    atoms, inside = len(graph.sizes), graph.i == graph.j
    if nearly:
        walks = float(estimated_triangles(_balanced(graph)))
    elif atoms <= SMALL or len(graph.i) > atoms**2 / SPARSE_RATIO:
        matrix = np.zeros((atoms, atoms))
        matrix[graph.i, graph.j] = matrix[graph.j, graph.i] = graph.weight
        matrix *= np.sqrt(graph.sizes) * np.sqrt(graph.sizes)[:, None]
        walks = float(triangles(matrix))
    else:
        from crossedge.numerics.closed_walks import closed_walks

        i = np.concatenate([graph.i, graph.j[~inside]])
        j = np.concatenate([graph.j, graph.i[~inside]])
        weight = np.concatenate([graph.weight, graph.weight[~inside]])
        order = np.argsort(i, kind="stable")
        start = np.searchsorted(i[order], np.arange(atoms + 1))
        walks = closed_walks(start, j[order], weight[order], graph.sizes)
    # subtract walks with a step inside an atom from a point to itself, where W is 0
    own = np.zeros(atoms)
    own[graph.i[inside]] = graph.weight[inside]
    row2 = graph.row_sums(graph.weight**2)
    return float(walks - graph.sizes @ (3 * own * row2 + own**3))


def _balanced(graph: EdgeList) -> Any:
    """Return the sparse matrix of W between atoms with edges, times the roots of their sizes."""
    from scipy.sparse import coo_array

    root, inside = np.sqrt(graph.sizes), graph.i == graph.j
    weight = graph.weight * root[graph.i] * root[graph.j]
    i = np.concatenate([graph.i, graph.j[~inside]])
    j = np.concatenate([graph.j, graph.i[~inside]])
    entries = np.concatenate([weight, weight[~inside]])
    joined = np.zeros(len(graph.sizes), np.int64)  # atoms without edges have no part in any walk
    joined[i] = 1
    place = np.cumsum(joined) - 1
    count = max(int(joined.sum()), 1)
    return coo_array((entries, (place[i], place[j])), (count, count)).tocsr()
