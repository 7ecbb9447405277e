"""Star-mesh elimination (see star_mesh.py) on sparse graphs: resistances across edges only."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np

from crossedge.numerics import SMALL
from crossedge.numerics.trees.plain import resistances
from crossedge.runtime.types import Floats, Ints

CORE_DEGREE = 32  # neighbours: once every vertex has more, a dense matrix is faster


def edge_resistances(i: Ints, j: Ints, conductance: Floats) -> Floats:
    """Return the resistance across each edge of a sparse graph; parallel edges add up.

    Vertices with few neighbours are eliminated one by one, fewest first; the rest is dense. On the
    way back, only resistances between vertices that were neighbours on the way out are needed.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    vertices, index = np.unique(np.concatenate([i, j]), return_inverse=True)
    i, j = index[: len(i)], index[len(i) :]
    shape = len(vertices), len(vertices)
    if len(i) > len(vertices) ** 2 / 16:
        graph = coo_array((conductance, (i, j)), shape)
        if connected_components(graph, directed=False)[0] == 1:
            dense = graph.toarray()
            return _dense_resistances(dense + dense.T)[i, j]
    ends = list(zip(i.tolist(), j.tolist(), strict=True))
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
            continue  # the entry is out of date
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

    found_so_far: list[dict[int, float]] = [{vertex: 0.0} for vertex in range(len(vertices))]
    for core in _connected(weights, remaining):
        position = {vertex: number for number, vertex in enumerate(core)}
        dense = np.zeros((len(core), len(core)))
        for vertex, row in zip(core, dense, strict=True):
            row[[position[a] for a in weights[vertex]]] = list(weights[vertex].values())
        for vertex, row in zip(core, _dense_resistances(dense), strict=True):
            for a in weights[vertex]:
                found_so_far[vertex][a] = float(row[position[a]])
    for vertex, total, neighbours, shares in reversed(stars):
        known = np.array([[found_so_far[a][b] for b in neighbours] for a in neighbours])
        potential = known @ shares
        found = 1.0 / total + potential - 0.5 * (shares @ potential)
        for a, resistance in zip(neighbours, found.tolist(), strict=True):
            found_so_far[vertex][a] = found_so_far[a][vertex] = resistance
    return np.array([found_so_far[a][b] for a, b in ends])


def _dense_resistances(conductance: Floats) -> Floats:
    if len(conductance) <= SMALL:
        return resistances(conductance)
    from crossedge.numerics.trees.star_mesh import padded, solve

    return solve(padded(conductance)).resistance


def _connected(weights: list[dict[int, float]], vertices: set[int]) -> list[list[int]]:
    """Return the connected components among `vertices`."""
    parts, unseen = [], set(vertices)
    while unseen:
        part = [unseen.pop()]
        for vertex in part:
            for a in weights[vertex]:
                if a in unseen:
                    unseen.remove(a)
                    part.append(a)
        parts.append(part)
    return parts
