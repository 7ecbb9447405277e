"""Effective resistances by star-mesh elimination: positive numbers only, so nothing cancels.

A vertex k with conductances w_kj, whose sum is s_k, can be taken out of a network when every pair
i, j of its neighbours gains w_ki w_kj / s_k: the star becomes a mesh, and no resistance among the
others changes. With p_kj = w_kj / s_k, the resistances of k follow from those among the vertices
that remained, since its potential is the average of theirs by p_k:

    R_kj = 1/s_k + v_j - (p_k . v) / 2,   v = R p_k.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np
import numpy.typing as npt

from crossedge.compiled import compiled

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

CORE_DEGREE = 32  # where every vertex has more neighbours than this, a dense matrix is faster


def edge_resistances(i: Ints, j: Ints, conductance: Floats) -> Floats:
    """The resistance across each edge of a sparse graph; parallel edges add up.

    Vertices with few neighbours are eliminated one by one, fewest first; what is left is dense.
    The way back needs resistances only between vertices that were neighbours on the way out.
    """
    vertices, index = np.unique(np.concatenate([i, j]), return_inverse=True)
    ends = list(zip(index[: len(i)].tolist(), index[len(i) :].tolist(), strict=True))
    weights: list[dict[int, float]] = [{} for _ in vertices]
    for (a, b), weight in zip(ends, conductance.tolist(), strict=True):
        weights[a][b] = weights[b][a] = weights[a].get(b, 0.0) + weight

    queue = [(len(near), vertex) for vertex, near in enumerate(weights)]
    heapify(queue)
    stars: list[tuple[int, float, list[int], Floats]] = []
    remaining = set(range(len(vertices)))
    while queue and queue[0][0] <= CORE_DEGREE:
        degree, vertex = heappop(queue)
        if vertex not in remaining or degree != len(weights[vertex]):
            continue  # its degree has changed since
        remaining.remove(vertex)
        near = list(weights[vertex].items())
        total = sum(weight for _, weight in near)
        for place, (a, weight) in enumerate(near):
            del weights[a][vertex]
            share = weight / total
            for b, other in near[:place]:
                weights[a][b] = weights[b][a] = weights[a].get(b, 0.0) + share * other
        for a, _ in near:
            heappush(queue, (len(weights[a]), a))
        if near:
            shares = np.array([weight / total for _, weight in near])
            stars.append((vertex, total, [a for a, _ in near], shares))

    core = sorted(remaining)
    place_in_core = {vertex: place for place, vertex in enumerate(core)}
    dense = np.zeros((len(core), len(core)))
    for vertex in core:
        for a, weight in weights[vertex].items():
            dense[place_in_core[vertex], place_in_core[a]] = weight
    dense = effective_resistances(dense)

    resistances: list[dict[int, float]] = [{vertex: 0.0} for vertex in range(len(vertices))]
    for vertex in core:
        for a in weights[vertex]:
            resistances[vertex][a] = float(dense[place_in_core[vertex], place_in_core[a]])
    for vertex, total, neighbours, shares in reversed(stars):
        known = np.array([[resistances[a][b] for b in neighbours] for a in neighbours])
        potential = known @ shares
        found = 1.0 / total + potential - 0.5 * (shares @ potential)
        for a, resistance in zip(neighbours, found.tolist(), strict=True):
            resistances[vertex][a] = resistances[a][vertex] = resistance
    return np.array([resistances[a][b] for a, b in ends])


@compiled
def effective_resistances(conductance: Floats) -> Floats:
    """(n, n) resistances between the vertices of a graph of (n, n) conductances.

    Infinite between vertices that nothing connects. The argument is overwritten.
    """
    n = len(conductance)
    weight = conductance  # row k, left of the diagonal, becomes p_k; the diagonal becomes s_k
    for k in range(n - 1, 0, -1):
        total = 0.0
        for j in range(k):
            total += weight[k, j]
        weight[k, k] = total
        for i in range(k):
            if weight[k, i] > 0.0:
                share = weight[k, i] / total
                for j in range(i):
                    weight[i, j] += share * weight[k, j]
        for i in range(k):
            if weight[k, i] > 0.0:
                weight[k, i] /= total
    resistance = np.zeros((n, n))
    potential = np.empty(n)
    for k in range(1, n):
        for j in range(k):
            potential[j] = 0.0
        for i in range(k):
            share = weight[k, i]
            if share > 0.0:
                for j in range(k):
                    potential[j] += share * resistance[i, j]
        inner = 0.0
        for j in range(k):
            if weight[k, j] > 0.0:
                inner += weight[k, j] * potential[j]
        for j in range(k):
            resistance[k, j] = 1.0 / weight[k, k] + potential[j] - 0.5 * inner
            resistance[j, k] = resistance[k, j]
    return resistance
