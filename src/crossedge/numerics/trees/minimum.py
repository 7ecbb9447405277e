"""Minimum spanning trees of many points, by compiled loops.

Prim's algorithm grows the tree from one point; at each step the point nearest to the tree arrives.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from crossedge.numerics.leaves import build_leaves, reduced_distances, reduced_gaps, reduced_tie
from crossedge.numerics.tolerances import TIE
from crossedge.numerics.trees.tied import (
    Arrivals,
    TreeEdges,
    average_over_ties,
    edges_of_tree,
    reach_of,
)
from crossedge.runtime.compiled import compiled
from crossedge.runtime.threads import in_threads
from crossedge.runtime.types import Floats, Ints

LEAF_CAPACITY = 128  # points


def spanning_tree_of_points(points: Floats, p: float, sizes: Ints) -> TreeEdges:
    """Average over the minimum spanning trees of (n, d) distinct points under l_p.

    Point i stands for sizes[i] copies; the weight of an edge i, j holds for each pair of copies.
    """
    tie = reduced_tie(p)
    tree = Arrivals(*_arrivals_over_leaves(*build_leaves(points, LEAF_CAPACITY), p, tie))
    if not tree.tied:
        return edges_of_tree(tree, sizes)
    reach = reach_of(tree.key, tie)
    latest_first = np.ascontiguousarray(points[tree.order[::-1]].T)
    blocks = range(0, len(points) - 1, 256)
    tied = in_threads(lambda first: _tied_points(latest_first, first, 256, p, *reach), blocks)
    return average_over_ties(tree, reach.rank, np.concatenate(tied), sizes)


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
def _arrivals_over_leaves(
    points: Floats, ids: Ints, sizes: Ints, low: Floats, high: Floats, p: float, tie: float
) -> tuple[Ints, Ints, Floats, bool]:
    """Run Prim's algorithm, skipping leaves none of whose points could come nearer to the tree.

    The leaves are emptied on the way. Return order, parent, key and tied: see Arrivals in tied.py.
    """
    leaves, d, capacity = points.shape
    n = sizes.sum()
    order = np.empty(n, np.int64)
    parent = np.empty(n, np.int64)
    key = np.empty(n, np.float64)
    best = np.full((leaves, capacity), np.inf)
    nearest = np.full((leaves, capacity), -1)
    nearest_in_leaf = np.full(leaves, np.inf)
    furthest_in_leaf = np.full(leaves, np.inf)
    gaps = np.empty((d, leaves))
    bound = np.empty(leaves)
    distance = np.empty(capacity)
    point = np.empty(d)
    ties = 0
    leaf = 0
    slot = 0
    for step in range(n):
        arrived = ids[leaf, slot]
        order[step] = arrived
        parent[step] = nearest[leaf, slot]
        key[step] = best[leaf, slot]
        # the last point of the leaf takes the slot of the point that has arrived
        last = sizes[leaf] - 1
        sizes[leaf] = last
        for axis in range(d):
            point[axis] = points[leaf, axis, slot]
            points[leaf, axis, slot] = points[leaf, axis, last]
        ids[leaf, slot] = ids[leaf, last]
        best[leaf, slot] = best[leaf, last]
        nearest[leaf, slot] = nearest[leaf, last]
        smallest = np.inf
        for other in range(last):
            smallest = min(smallest, best[leaf, other])
        nearest_in_leaf[leaf] = smallest
        if last == 0:
            furthest_in_leaf[leaf] = -1.0

        reduced_gaps(low, high, point, point, p, gaps, bound)
        chosen = -1
        least = np.inf
        for leaf in range(leaves):
            if bound[leaf] <= furthest_in_leaf[leaf] * tie:
                count = sizes[leaf]
                best_here = best[leaf]
                nearest_here = nearest[leaf]
                reduced_distances(points[leaf], count, point, p, distance)
                near = 0
                for other in range(count):
                    near += distance[other] <= best_here[other] * tie
                if near > 0:  # rare: usually no point of the leaf comes nearer
                    smallest = np.inf
                    largest = -1.0
                    for other in range(count):
                        new = distance[other]
                        old = best_here[other]
                        ties += (old < np.inf) & (new * tie >= old) & (new <= old * tie)
                        if new < old:
                            best_here[other] = new
                            nearest_here[other] = arrived
                        smallest = min(smallest, best_here[other])
                        largest = max(largest, best_here[other])
                    nearest_in_leaf[leaf] = smallest
                    furthest_in_leaf[leaf] = largest
            here = nearest_in_leaf[leaf]
            if here < np.inf:
                ties += (chosen >= 0) & (here <= least * tie) & (here * tie >= least)
                if here < least:
                    least = here
                    chosen = leaf
        leaf = chosen
        candidates = 0
        for other in range(sizes[leaf]):
            candidates += best[leaf, other] <= least * tie
            if best[leaf, other] == least:
                slot = other
        ties += candidates > 1
    return order, parent, key, ties > 0


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
def _tied_points(
    latest_first: Floats, first: int, count: int, p: float, rank: Ints, limit: Floats
) -> Ints:
    """Return the same for `count` arrivals from `first` on; (d, n) points, latest arrival first."""
    n = latest_first.shape[1]
    backward = np.empty(n)
    distance = np.empty(n)
    pieces = [np.empty((0, 2), np.int64)]
    total = 0
    for a in range(first, min(first + count, n - 1)):
        point = latest_first[:, n - 1 - a].copy()
        reduced_distances(latest_first, n - 1 - a, point, p, backward)
        for b in range(a + 1, n):
            distance[b] = backward[n - 1 - b]
        pieces.append(_tied_in_row(distance, a, rank, limit))
        total += len(pieces[-1])
    pairs = np.empty((total, 2), np.int64)
    filled = 0
    for piece in pieces:
        pairs[filled : filled + len(piece)] = piece
        filled += len(piece)
    return pairs


@compiled
def root_of(parent: Ints, vertex: int) -> int:
    """Return the root of a vertex in a forest of parents, halving its path on the way."""
    while parent[vertex] != vertex:
        parent[vertex] = parent[parent[vertex]]
        vertex = parent[vertex]
    return vertex


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
