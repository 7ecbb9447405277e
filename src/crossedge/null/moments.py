"""Exact moments of the cross count under random labelling, any n_x and n_y.

With labels s = +-1 and pair weights W, the cross count is T = (m - R) / 2 where R is the sum of
W_uv s_u s_v over pairs. A power of R is a sum over tuples of pairs, and the mean of a tuple depends
only on how many vertices occur in it an odd number of times. Subtracting a constant from every
weight moves R by a constant, so the weights are centred first: no large terms are left to cancel.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb, perm

import numpy as np

from crossedge.compiled import compiled
from crossedge.weights import EdgeList
from crossedge.weights.edge_list import Floats, Ints


@dataclass(frozen=True)
class Moments:
    mean: float
    std: float
    skewness: float  # 0 where the statistic does not vary


def mean_label_product(k: int, n_x: int, n_y: int) -> float:
    """E[s_1 ... s_k] of k distinct points, in exact arithmetic; 0 where there are not so many."""
    n = n_x + n_y
    if k > n:
        return 0.0
    signed = sum((-1) ** j * comb(k, j) * perm(n_y, j) * perm(n_x, k - j) for j in range(k + 1))
    return float(Fraction(signed, perm(n, k)))


@dataclass(frozen=True)
class CentredSums:
    """Sums of the weights less their mean, W' = W - c: what moments up to the third depend on."""

    squares: float  # sum of W'^2 over pairs
    cubes: float  # sum of W'^3 over pairs
    degree2: float  # sum of squared degrees
    degree3: float  # sum of cubed degrees
    degree_squares: float  # sum over points of degree times the row sum of W'^2
    degree_degree: float  # deg' W' deg
    triangles: float  # tr W'^3


def centred_sums(graph: EdgeList) -> CentredSums:
    n, sizes = graph.n, graph.sizes
    c = graph.total / (n * (n - 1) / 2)
    centred = graph.weight - c
    unjoined = n - 1 - graph.row_sums(np.ones_like(centred))  # pairs of weight 0, so of W' = -c
    degree = graph.row_sums(centred) - c * unjoined
    squares = graph.row_sums(centred**2) + c**2 * unjoined
    cubes = graph.row_sums(centred**3) - c**3 * unjoined
    onward = graph.row_sums(graph.weight, degree) + c * degree  # W' deg: the degrees sum to 0
    # tr (W - c (J - I))^3, with (J - I)^2 = (n - 2) J + I
    triangles = (
        closed_triangles(graph)
        - 3 * c * (sizes @ (graph.degree**2 - graph.row_sums(graph.weight**2)))
        + 6 * c**2 * (n - 2) * graph.total
        - c**3 * perm(n, 3)
    )
    return CentredSums(
        squares=float(sizes @ squares) / 2,
        cubes=float(sizes @ cubes) / 2,
        degree2=float(sizes @ degree**2),
        degree3=float(sizes @ degree**3),
        degree_squares=float(sizes @ (degree * squares)),
        degree_degree=float(sizes @ (degree * onward)),
        triangles=float(triangles),
    )


def cross_moments(graph: EdgeList, n_x: int, n_y: int) -> Moments:
    """Mean, standard deviation and skewness of T (the first two: the paper's theorem 3).

    The tuples of pairs are sorted by shape; the names below say which, and `e2` ... `e6` are the
    means of products of so many distinct labels.
    """
    e2, e4, e6 = (mean_label_product(k, n_x, n_y) for k in (2, 4, 6))
    n = n_x + n_y
    mean = graph.total * 2 * n_x * n_y / (n * (n - 1))
    s = centred_sums(graph)

    adjacent = s.degree2 - 2 * s.squares  # two edges with one common end
    apart = -s.squares - adjacent  # all pairs of edges sum to m'^2 = 0
    terms = s.squares, e2 * adjacent, e4 * apart
    variance = sum(terms) / 4
    # a statistic that cannot vary, as on regular graphs with n_x = 1, leaves rounding errors
    if variance <= 1e-13 * sum(map(abs, terms)) + (1e-12 * graph.total) ** 2:
        return Moments(mean, 0.0, 0.0)

    repeated = -2 * s.cubes  # one edge three times, or two edges, one of them twice
    triangle = s.triangles
    star = s.degree3 - 3 * s.degree_squares + 4 * s.cubes
    path = 3 * (s.degree_degree - 2 * s.degree_squares + 2 * s.cubes - triangle)
    # an adjacent pair and any third edge, less what has been counted
    twice = s.degree_squares - 2 * s.cubes
    adjacent_and_apart = -3 * (2 * twice + triangle + star + 2 / 3 * path)
    all_apart = -(repeated + triangle + star + path + adjacent_and_apart)
    third = triangle + e2 * (repeated + path) + e4 * (star + adjacent_and_apart) + e6 * all_apart
    return Moments(mean, variance**0.5, -third / 8 / variance**1.5)


def closed_triangles(graph: EdgeList) -> float:
    """The trace of W^3: the weight of all closed walks over three distinct points."""
    atoms, inside = len(graph.sizes), graph.i == graph.j
    if len(graph.i) > atoms**2 / 32:  # dense enough for a product of matrices
        matrix = np.zeros((atoms, atoms))
        matrix[graph.i, graph.j] = matrix[graph.j, graph.i] = graph.weight
        matrix *= np.sqrt(graph.sizes) * np.sqrt(graph.sizes)[:, None]
        walks = float(np.einsum("ij,ij->", matrix @ matrix, matrix))
    else:
        i = np.concatenate([graph.i, graph.j[~inside]])
        j = np.concatenate([graph.j, graph.i[~inside]])
        weight = np.concatenate([graph.weight, graph.weight[~inside]])
        order = np.argsort(i, kind="stable")
        start = np.searchsorted(i[order], np.arange(atoms + 1))
        walks = _closed_walks(start, j[order], weight[order], graph.sizes)
    # walks that stay inside an atom may return to the same point: take those out
    own = np.zeros(atoms)
    own[graph.i[inside]] = graph.weight[inside]
    row2 = graph.row_sums(graph.weight**2)
    return float(walks - graph.sizes @ (3 * own * row2 + own**3))


@compiled
def _closed_walks(start: Ints, neighbour: Ints, weight: Floats, sizes: Ints) -> float:
    """Sum of w_ab w_bc w_ca over all triples of atoms, times the number of points in each."""
    to_first = np.zeros(len(sizes))
    total = 0.0
    for a in range(len(sizes)):
        for edge in range(start[a], start[a + 1]):
            to_first[neighbour[edge]] = weight[edge] * sizes[a]
        for edge in range(start[a], start[a + 1]):
            b = neighbour[edge]
            walks = 0.0
            for onward in range(start[b], start[b + 1]):
                c = neighbour[onward]
                walks += weight[onward] * sizes[c] * to_first[c]
            total += walks * weight[edge] * sizes[b]
        for edge in range(start[a], start[a + 1]):
            to_first[neighbour[edge]] = 0.0
    return total
