"""Blocks of a graph: its largest parts that hold together when any one vertex is taken away.

Every spanning tree of the graph is a choice of one spanning tree of each block, so the marginals of
a block of k vertices add up to k - 1. A bridge is a block of one edge, and its marginal is 1.
"""

from __future__ import annotations

import numpy as np

from crossedge.runtime.compiled import compiled
from crossedge.runtime.types import Floats, Ints

NEWTON_STEPS = 4  # the sums are nearly right, and each step squares the error


def blocks_of(n: int, i: Ints, j: Ints) -> Ints:
    """Return the number of the block of each edge; parallel edges share a block."""
    ends, others = np.concatenate([i, j]), np.concatenate([j, i])
    order = np.argsort(ends, kind="stable")
    start = np.append(0, np.cumsum(np.bincount(ends, minlength=n)))
    return _label(start, others[order], order % max(len(i), 1), len(i))


def balance(mu: Floats, variance: Floats, n: int, i: Ints, j: Ints) -> Floats:
    """Return estimates in [0, 1] that add up to what is known in every block.

    Their logits are shifted in proportion to variance / (mu (1 - mu)), so that mu itself changes in
    proportion to its variance, as least squares would have it. Entries of variance 0 stay.
    """
    block = blocks_of(n, i, j)
    edges = np.bincount(block)
    low, high = np.minimum(i, j), np.maximum(i, j)
    members = np.unique(np.concatenate([block * n + low, block * n + high]))
    target = np.bincount(members // n) - 1.0
    mu = np.where(edges[block] == 1, 1.0, mu)
    v = mu * (1.0 - mu)
    slope = np.where(v > 0.0, variance / np.where(v > 0.0, v, 1.0), 0.0)
    result, shift = mu, np.zeros(len(edges))
    for _ in range(NEWTON_STEPS):
        missing = target - np.bincount(block, result)
        change = np.bincount(block, slope * result * (1.0 - result))
        shift += np.where(change > 0.0, missing / np.where(change > 0.0, change, 1.0), 0.0)
        # far from the sums a step may be too long: no odds change by more than a factor of e
        largest = np.zeros(len(edges))
        np.maximum.at(largest, block, slope)
        bound = 1.0 / np.where(largest > 0.0, largest, np.inf)
        shift = np.clip(shift, -bound, bound)
        odds = np.exp(slope * shift[block])
        result = mu * odds / (1.0 - mu + mu * odds)
    return result


@compiled
def _label(start: Ints, neighbour: Ints, edge_of: Ints, edges: int) -> Ints:
    """Search in depth (Hopcroft and Tarjan, 1973), with stacks of our own.

    `lowest` is the earliest arrival that a vertex or its descendants are joined to.
    """
    n = len(start) - 1
    label, blocks, arrived = np.full(edges, -1), 0, 0
    arrival, lowest, turn = np.full(n, -1), np.empty(n, np.int64), start[:n].copy()
    way, entered = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)  # from the root to here
    open_edges, opened = np.empty(edges, np.int64), 0
    is_open = np.zeros(edges, np.bool_)
    for root in range(n):
        if arrival[root] >= 0:
            continue
        depth = 0
        way[0], entered[0] = root, -1
        arrival[root] = lowest[root] = arrived
        arrived += 1
        while depth >= 0:
            vertex = way[depth]
            if turn[vertex] < start[vertex + 1]:
                other, edge = neighbour[turn[vertex]], edge_of[turn[vertex]]
                turn[vertex] += 1
                if is_open[edge] or label[edge] >= 0:
                    continue  # seen from its other end
                is_open[edge] = True
                open_edges[opened] = edge
                opened += 1
                if arrival[other] >= 0:
                    lowest[vertex] = min(lowest[vertex], arrival[other])
                    continue
                depth += 1
                way[depth], entered[depth] = other, edge
                arrival[other] = lowest[other] = arrived
                arrived += 1
                continue
            if depth > 0:
                above = way[depth - 1]
                lowest[above] = min(lowest[above], lowest[vertex])
                if lowest[vertex] >= arrival[above]:  # what was opened since is a block
                    edge = -1
                    while edge != entered[depth]:
                        opened -= 1
                        edge = open_edges[opened]
                        label[edge] = blocks
                        is_open[edge] = False
                    blocks += 1
            depth -= 1
    return label
