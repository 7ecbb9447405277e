"""The sums of centred.py for a list of edges, without an n x n matrix.

All sums are computed for W', which is W less its mean, and then converted to those of
V_uv = W'_uv - a_u - a_v with a = deg / (n - 2).
"""

from __future__ import annotations

from math import perm

import numpy as np

from crossedge.moments.centred import SecondSums, ThirdSums, triangles
from crossedge.numerics import SMALL
from crossedge.runtime.types import Floats
from crossedge.weights import EdgeList

# If more than one in this many entries of a matrix is not 0, a product of matrices is as fast as a
# walk over the edges.
SPARSE_RATIO = 32

WALKS = 1 << 18  # sampled steps over two edges; the triangles of a graph are known to a percent

CANCELLATION = 1e-13  # relative rounding error of a difference of two sums


class EdgeSums:
    """Sums over the weights without row effects."""

    def __init__(self, graph: EdgeList) -> None:
        n = graph.n
        self.graph, self.per_point = graph, 1 / (n - 2) if n > 2 else 0.0
        self.mean = graph.total / (n * (n - 1) / 2)
        self.above = graph.weight - self.mean
        # row sums for a point of each atom: the number of pairs with weight 0, for which W' is
        # -mean, W', and its square
        self.unjoined = n - 1 - graph.row_sums(np.ones_like(self.above))
        self.degree = graph.row_sums(self.above) - self.mean * self.unjoined
        self.squares: Floats = graph.row_sums(self.above**2) + self.mean**2 * self.unjoined
        self.degree2 = float(graph.sizes @ self.degree**2)

    def second(self) -> SecondSums:
        """Return the sums that variances need."""
        whole = float(self.graph.sizes @ self.squares) / 2
        squares = whole - self.degree2 * self.per_point
        if squares <= CANCELLATION * whole:  # V is 0 but for rounding: all points but one equal
            squares = 0.0
        return SecondSums(
            np.float64(self.graph.total), np.float64(squares), np.float64(self.degree2)
        )

    def third(self, *, nearly: bool = False) -> ThirdSums:
        """Return the sums that third moments need; with `nearly`, triangles are estimated."""
        graph, n, sizes = self.graph, self.graph.n, self.graph.sizes
        c, degree, squares, r = self.mean, self.degree, self.squares, self.per_point
        cubes = graph.row_sums(self.above**3) - c**3 * self.unjoined
        onward = graph.row_sums(graph.weight, degree) + c * degree  # W' deg: degrees sum to 0
        row2 = graph.row_sums(graph.weight**2)
        # tr (W - c (J - I))^3, with (J - I)^2 = (n - 2) J + I
        walks = (
            closed_triangles(graph, row2, nearly=nearly)
            - 3 * c * (sizes @ (graph.degree**2 - row2))
            + 6 * c**2 * (n - 2) * graph.total
            - c**3 * perm(n, 3)
        )
        d3 = float(sizes @ degree**3)
        ds, dwd = float(sizes @ (degree * squares)), float(sizes @ (degree * onward))
        values = (
            (sizes @ cubes) / 2 - 3 * ds * r + 3 * (d3 + dwd) * r**2 - (n - 4) * d3 * r**3,
            walks
            - 6 * (dwd - ds) * r
            + 3 * ((n - 4) * dwd - 4 * d3) * r**2
            - (16 - 6 * n) * d3 * r**3,
            d3,
            ds - 2 * (d3 + dwd) * r + (n - 4) * d3 * r**2,
            dwd + 2 * d3 * r,
        )
        return ThirdSums(*(np.float64(value) for value in values))


def closed_triangles(graph: EdgeList, row2: Floats, *, nearly: bool = False) -> float:
    """Return the trace of W^3, the weight of all closed walks over three distinct points.

    `row2` has the row sums of W^2.
    """
    atoms, inside = len(graph.sizes), graph.i == graph.j
    if nearly:
        walks = sampled_walks(graph)
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
    return float(walks - graph.sizes @ (3 * own * row2 + own**3))


def sampled_walks(graph: EdgeList) -> float:
    """Return an estimate of the sum of w_ab w_bc w_ca over all triples of points, from samples.

    Let s_a be the sum of w_ab over all points b. With two independent steps from a, to b and c with
    probabilities w_ab / s_a and w_ac / s_a, the sum is that of s_a^2 times the mean of w_bc. Starts
    a are drawn in proportion to s_a^2. As w_bc is between 0 and the largest weight, the relative
    error is small however unequal the points are (Schank and Wagner, 2005, for triangles).
    """
    from scipy.sparse import coo_array

    random = np.random.default_rng(0)
    atoms, inside = len(graph.sizes), graph.i == graph.j
    i = np.concatenate([graph.i, graph.j[~inside]])
    j = np.concatenate([graph.j, graph.i[~inside]])
    weight = np.concatenate([graph.weight, graph.weight[~inside]])
    rows = coo_array((weight, (i, j)), (atoms, atoms)).tocsr()
    upto = np.append(0.0, np.cumsum(rows.data * graph.sizes[rows.indices]))
    start = upto[rows.indptr]
    steps = np.diff(start)
    starts = graph.sizes * steps**2
    whole = starts.sum()
    if whole == 0:
        return 0.0
    a = np.sort(random.choice(atoms, WALKS, p=starts / whole))  # look-ups in order are faster
    at = start[a] + random.random((2, WALKS)) * steps[a]
    place = np.searchsorted(upto, at, side="right") - 1
    b, c = rows.indices[np.minimum(place, len(weight) - 1)].astype(np.int64)
    known = graph.i * atoms + graph.j  # in order
    pair = np.sort(np.minimum(b, c) * atoms + np.maximum(b, c))
    place = np.minimum(np.searchsorted(known, pair), len(known) - 1)
    closing = np.where(known[place] == pair, graph.weight[place], 0.0)
    return float(whole * closing.mean())
