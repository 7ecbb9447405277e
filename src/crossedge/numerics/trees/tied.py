"""The uniform average over all minimum spanning trees where distances tie.

Prim's order of arrival tells as much as the tree. Points within single-linkage distance t of each
other are runs in that order, so the longest edge on the tree path between arrivals a and b is the
largest key among arrivals a+1 ... b.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from crossedge.numerics import SMALL
from crossedge.numerics.tolerances import TIE
from crossedge.numerics.trees.plain import arrivals, contract, edge_resistances, tied_pairs
from crossedge.runtime.types import Floats, Ints


class Arrivals(NamedTuple):
    """One minimum spanning tree: arrival a is joined to parent[a], at distance key[a]."""

    order: Ints  # (n,): the point that arrived; the first has no parent
    parent: Ints  # (n,): the point that it was joined to
    key: Floats  # (n,): the length of that edge, as a distance or a reduced distance
    tied: bool  # whether another tree may be as short


class TreeEdges(NamedTuple):
    """The edges of all minimum spanning trees, and the share of these trees that each is in."""

    i: Ints  # (edges,)
    j: Ints  # (edges,)
    weight: Floats  # (edges,)


def edges_of_tree(tree: Arrivals, sizes: Ints) -> TreeEdges:
    """Return the edges of the only tree, each shared among the pairs of copies that it may join."""
    i, j = tree.order[1:], tree.parent[1:]
    return TreeEdges(i, j, 1.0 / (sizes[i] * sizes[j]))


class Reach(NamedTuple):
    """Classes of equal lengths of tree edges; every tie belongs to one of them."""

    rank: Ints  # (n,): the class of each arrival's key, 0 for the shortest; -1 for the first
    limit: Floats  # (classes,): the largest length that counts as equal


def reach_of(key: Floats, tie: float) -> Reach:
    """Group the lengths of tree edges into classes, equal within the factor `tie`."""
    ascending = np.argsort(key[1:], kind="stable")
    sorted_keys = key[1:][ascending]
    is_new = np.diff(sorted_keys, prepend=-np.inf) > (tie - 1) * sorted_keys
    rank = np.full(len(key), -1)
    rank[1 + ascending] = np.cumsum(is_new) - 1
    last_of_class = np.flatnonzero(np.append(is_new[1:], True))
    return Reach(rank, sorted_keys[last_of_class] * tie)


def spanning_tree_of_matrix(matrix: Floats, sizes: Ints) -> TreeEdges:
    """Average over the minimum spanning trees of a few distinct points with (n, n) distances.

    Point i stands for sizes[i] copies; the weight of an edge i, j holds for each pair of copies.
    """
    tree = Arrivals(*arrivals(matrix))
    if not tree.tied:
        return edges_of_tree(tree, sizes)
    reach = reach_of(tree.key, TIE)
    pairs = tied_pairs(matrix[np.ix_(tree.order, tree.order)], *reach)
    return average_over_ties(tree, reach.rank, pairs, sizes)


def average_over_ties(tree: Arrivals, rank: Ints, tied: Ints, sizes: Ints) -> TreeEdges:
    """Return the share of minimum spanning trees that contain each of the tied (pairs, 2) edges.

    Kruskal's algorithm takes the edges class by class of equal length. The edges of a class join
    the components that the classes below it left, contracted to vertices, and every minimum
    spanning tree is a choice of one spanning tree of each such multigraph, independently. Under
    the uniform choice an edge of unit conductance has a probability equal to the effective
    resistance between its ends (Kirchhoff).
    """
    a, b = tied.T
    edge_rank = largest_between(rank, a, b)
    by_rank = np.argsort(edge_rank, kind="stable")
    a, b, edge_rank = a[by_rank], b[by_rank], edge_rank[by_rank]
    if len(rank) <= SMALL:
        root_a, root_b = contract(a, b, edge_rank, len(rank))
    else:
        from crossedge.numerics.trees.minimum import contract_many

        root_a, root_b = contract_many(a, b, edge_rank, len(rank))
    copies = sizes[tree.order].astype(np.float64)
    pairs = copies[a] * copies[b]
    weight = 1.0 / pairs
    borders = np.flatnonzero(np.diff(edge_rank, prepend=-1, append=len(rank)))
    for first, last in pairwise(borders):
        if last - first > 1:
            edges = slice(first, last)
            weight[edges] = _resistances(root_a[edges], root_b[edges], pairs[edges])
    return TreeEdges(tree.order[a], tree.order[b], weight)


def _resistances(a: Ints, b: Ints, conductance: Floats) -> Floats:
    """Return the resistance across each edge; parallel edges add up."""
    vertices, ends = np.unique(np.concatenate([a, b]), return_inverse=True)
    network = len(vertices), ends[: len(a)], ends[len(a) :], conductance
    if len(vertices) <= SMALL:
        return edge_resistances(*network)
    from crossedge.numerics.trees.sparse_star_mesh import eliminate

    return eliminate(*network).edge_resistance


def largest_between(rank: Ints, a: Ints, b: Ints) -> Ints:
    """Return max(rank[a+1 ... b]) for every pair, by a table of maxima over runs of 2^level."""
    table = [rank]
    while 2 ** len(table) <= len(rank):
        run, half = table[-1], 2 ** (len(table) - 1)
        table.append(np.maximum(run[:-half], run[half:]))
    level = np.frexp((b - a).astype(np.float64))[1] - 1
    result = np.empty(len(a), np.int64)
    for depth, run in enumerate(table):
        here = level == depth
        result[here] = np.maximum(run[a[here] + 1], run[b[here] + 1 - 2**depth])
    return result
