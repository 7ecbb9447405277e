"""Minimum spanning trees of many points, by compiled loops.

Prim's algorithm grows the tree from one point; at each step the point nearest to the tree arrives.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from crossedge.numerics.leaves import reduced_tie
from crossedge.numerics.tolerances import TIE
from crossedge.numerics.trees.boruvka import arrivals_of_tree, root_of, tree_of_points
from crossedge.numerics.trees.tied import (
    Arrivals,
    TreeEdges,
    average_over_ties,
    edges_of_tree,
    largest_between,
    reach_of,
)
from crossedge.runtime.compiled import compiled
from crossedge.runtime.types import Floats, Ints


def spanning_tree_of_points(points: Floats, p: float, sizes: Ints) -> TreeEdges:
    """Average over the minimum spanning trees of (n, d) distinct points under l_p.

    Point i stands for sizes[i] copies; the weight of an edge i, j holds for each pair of copies.
    """
    tree = tree_of_points(points, p)
    if not tree.tied:
        return TreeEdges(tree.i, tree.j, 1.0 / (sizes[tree.i] * sizes[tree.j]))
    arrivals = Arrivals(*arrivals_of_tree(tree.i, tree.j, tree.length), True)
    reach = reach_of(arrivals.key, reduced_tie(p))
    arrival = np.empty_like(arrivals.order)
    arrival[arrivals.order] = np.arange(len(points))
    i, j, length = (
        np.concatenate(part) for part in zip((tree.i, tree.j, tree.length), *tree.tied, strict=True)
    )
    one, other = arrival[i], arrival[j]
    pairs, kept = np.unique(
        np.minimum(one, other) * len(points) + np.maximum(one, other), return_index=True
    )
    a, b = np.divmod(pairs, len(points))
    is_tied = length[kept] <= reach.limit[largest_between(reach.rank, a, b)]
    tied = np.stack([a[is_tied], b[is_tied]], axis=1)
    return average_over_ties(arrivals, reach.rank, tied, sizes)


def spanning_tree_of_rows(row: Callable[[int], Floats], sizes: Ints) -> TreeEdges:
    """Average over the minimum spanning trees of points whose distances are computed by the row."""
    n = len(sizes)
    order, parent, key = np.zeros(n, np.int64), np.full(n, -1), np.full(n, np.inf)
    any_tied = False
    best, nearest = np.full(n, np.inf), np.full(n, -1)
    for step in range(1, n):
        latest = int(order[step - 1])
        chosen, tied = _absorb_row(row(latest), latest, best, nearest, TIE)
        order[step], parent[step], key[step] = chosen, nearest[chosen], best[chosen]
        any_tied |= tied
    tree = Arrivals(order, parent, key, any_tied)
    if not any_tied:
        return edges_of_tree(tree, sizes)
    reach = reach_of(key, TIE)
    pairs = [_tied_in_row(row(int(order[a]))[order], a, *reach) for a in range(n - 1)]
    return average_over_ties(tree, reach.rank, np.concatenate(pairs), sizes)


@compiled
def arrivals_of_matrix(distances: Floats) -> tuple[Ints, Floats]:
    """Return the order of arrival, and the length of each arrival's edge, for (n, n) distances."""
    n = len(distances)
    order, key = np.zeros(n, np.int64), np.full(n, np.inf)
    best, nearest = np.full(n, np.inf), np.zeros(n, np.int64)
    for step in range(1, n):
        latest = order[step - 1]
        order[step] = _absorb_row(distances[latest], latest, best, nearest, 1.0)[0]
        key[step] = best[order[step]]
    return order, key


@compiled
def _absorb_row(
    row: Floats, latest: int, best: Floats, nearest: Ints, tie: float
) -> tuple[int, bool]:
    """Offer the latest arrival's (n,) distances to the points outside; return the next, and ties.

    An arrival's `best` is set to -1. A tie is seen where an offer equals the best so far, or where
    two points could be next: every tie between trees shows in one of the two ways.
    """
    best[latest] = -1.0
    chosen = -1
    tied = False
    for point in range(len(row)):
        if best[point] < 0.0:
            continue
        new, old = row[point], best[point]
        if old < np.inf and new * tie >= old and new <= old * tie:
            tied = True
        if new < old:
            best[point] = new
            nearest[point] = latest
        if chosen >= 0 and best[point] <= best[chosen] * tie and best[point] * tie >= best[chosen]:
            tied = True
        if chosen < 0 or best[point] < best[chosen]:
            chosen = point
    return chosen, tied


@compiled
def _tied_in_row(distance: Floats, a: int, rank: Ints, limit: Floats) -> Ints:
    """Return (pairs, 2): a, and each later arrival as near as the longest tree edge on the path.

    These are the edges of all minimum spanning trees. `distance` is from a, in order of arrival.
    """
    found = np.empty((len(distance) - a, 2), np.int64)
    count = 0
    largest = -1
    for b in range(a + 1, len(distance)):
        largest = max(largest, rank[b])
        if distance[b] <= limit[largest]:
            found[count, 0] = a
            found[count, 1] = b
            count += 1
    return found[:count].copy()


@compiled
def contract_many(a: Ints, b: Ints, edge_rank: Ints, n: int) -> tuple[Ints, Ints]:
    """Return, for both ends of each edge, the component left by all classes below the edge's own.

    Edges are in the order of their ranks.
    """
    root = np.arange(n)
    root_a = np.empty_like(a)
    root_b = np.empty_like(b)
    first = 0
    for edge in range(len(a) + 1):
        if edge == len(a) or edge_rank[edge] != edge_rank[first]:
            for joined in range(first, edge):
                one, other = root_of(root, root_a[joined]), root_of(root, root_b[joined])
                root[max(one, other)] = min(one, other)
            first = edge
        if edge < len(a):
            for ends, roots in ((a, root_a), (b, root_b)):
                roots[edge] = root_of(root, ends[edge])
    return root_a, root_b
