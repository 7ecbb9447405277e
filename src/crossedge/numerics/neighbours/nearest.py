"""The k nearest neighbours of many points, by compiled loops; see plain.py for few points."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from crossedge.numerics.leaves import (
    Leaves,
    build_leaves,
    reduced_distances,
    reduced_gap,
    reduced_gaps,
    reduced_tie,
)
from crossedge.numerics.neighbours.plain import Edges, twins
from crossedge.runtime.compiled import compiled
from crossedge.runtime.threads import in_threads
from crossedge.runtime.types import Floats, Ints

LEAF_CAPACITY = 64  # points


def neighbours_of_points(points: Floats, k: int, p: float, copies: Ints) -> Edges:
    """Return edges to the k nearest under l_p of (n, d) distinct points, i with copies[i] copies.

    The weight of an edge i, j holds for each pair of copies; i, i is for pairs of copies of i.
    """
    leaves, tie = build_leaves(points, LEAF_CAPACITY), reduced_tie(p)
    wanted = np.maximum(k + 1 - copies, 0)  # besides its own copies
    found = in_threads(
        lambda leaf: _neighbours_of_leaf(leaf, leaves, p, tie, wanted, copies),
        range(len(leaves.sizes)),
    )
    i, j, weight = (np.concatenate(part) for part in zip(twins(k, copies), *found, strict=True))
    return i, j, weight


@compiled
def _share_out(
    i: int, distance: Floats, candidates: Ints, wanted: int, copies: Ints, tie: float
) -> Edges:
    """Return the edges of i; candidates include all up to the last point wanted, and its ties."""
    ascending = np.argsort(distance)
    taken = 0
    place = 0
    while taken < wanted:
        taken += copies[candidates[ascending[place]]]
        place += 1
    last = distance[ascending[place - 1]]
    nearer, tied, count = 0, 0, 0
    for place in ascending:
        if distance[place] > last * tie:
            break
        count += 1
        if distance[place] * tie < last:
            nearer += copies[candidates[place]]
        else:
            tied += copies[candidates[place]]
    j = candidates[ascending[:count]]
    weight = np.ones(count)
    for place in range(count):
        if distance[ascending[place]] * tie >= last:
            weight[place] = (wanted - nearer) / tied
    return np.full(count, i), j, weight


@compiled
def _push(distances: Floats, ids: Ints, distance: float, identity: int) -> None:
    """Replace the largest entry of a heap, which is its first."""
    size = len(distances)
    hole = 0
    while True:
        child = 2 * hole + 1
        if child >= size:
            break
        if child + 1 < size and distances[child + 1] > distances[child]:
            child += 1
        if distances[child] <= distance:
            break
        distances[hole] = distances[child]
        ids[hole] = ids[child]
        hole = child
    distances[hole] = distance
    ids[hole] = identity


@compiled
def _neighbours_of_leaf(
    leaf: int, leaves: Leaves, p: float, tie: float, wanted: Ints, copies: Ints
) -> Edges:
    """Return the edges of the points of one leaf, visiting leaves by distance while they matter."""
    d, n_leaves = leaves.low.shape
    bound = np.empty(n_leaves)
    lowest, highest = leaves.low[:, leaf].copy(), leaves.high[:, leaf].copy()
    reduced_gaps(leaves.low, leaves.high, lowest, highest, p, np.empty((d, n_leaves)), bound)
    visits = np.argsort(bound)
    count = leaves.sizes[leaf]
    most = 0
    for slot in range(count):
        most = max(most, wanted[leaves.ids[leaf, slot]])
    most = min(most, len(copies) - 1)
    nearest = np.full((count, most), np.inf)
    ids = np.full((count, most), -1)
    turned_away = np.full(count, np.inf)  # the smallest distance that found no room
    distance = np.empty(leaves.points.shape[2])
    point = np.empty(d)
    for other in visits:
        if most == 0 or bound[other] > nearest[:, 0].max() * tie:
            break
        for slot in range(count):
            for axis in range(d):
                point[axis] = leaves.points[leaf, axis, slot]
            if reduced_gap(leaves.low, leaves.high, other, point, p) > nearest[slot, 0] * tie:
                continue
            reduced_distances(leaves.points[other], leaves.sizes[other], point, p, distance)
            if other == leaf:
                distance[slot] = np.inf  # not its own neighbour
            least = np.inf
            for place in range(leaves.sizes[other]):
                least = min(least, distance[place])
            if least >= nearest[slot, 0]:  # the usual case, once the nearest leaves are done
                turned_away[slot] = min(turned_away[slot], least)
                continue
            for place in range(leaves.sizes[other]):
                if distance[place] < nearest[slot, 0]:
                    turned_away[slot] = min(turned_away[slot], nearest[slot, 0])
                    _push(nearest[slot], ids[slot], distance[place], leaves.ids[other, place])
                else:
                    turned_away[slot] = min(turned_away[slot], distance[place])

    i, j, weight = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0)]
    for slot in range(count):
        identity = leaves.ids[leaf, slot]
        if wanted[identity] == 0:
            continue
        near, reach = ids[slot], nearest[slot]
        if turned_away[slot] <= reach[0] * tie:  # more ties than room
            for axis in range(d):
                point[axis] = leaves.points[leaf, axis, slot]
            near, reach = _all_within(reach[0] * tie, point, identity, leaves, bound, p)
        found = _share_out(identity, reach, near, wanted[identity], copies, tie)
        i.append(found[0])
        j.append(found[1])
        weight.append(found[2])
    return _join(i), _join(j), _join(weight)


@compiled
def _all_within(
    reach: float, point: Floats, identity: int, leaves: Leaves, bound: Floats, p: float
) -> tuple[Ints, Floats]:
    """Return every other point no further than `reach`, and its distance."""
    distance = np.empty(leaves.points.shape[2])
    ids = np.empty(leaves.sizes.sum(), np.int64)
    distances = np.empty(len(ids))
    count = 0
    for leaf in range(len(bound)):
        if bound[leaf] <= reach:
            reduced_distances(leaves.points[leaf], leaves.sizes[leaf], point, p, distance)
            for place in range(leaves.sizes[leaf]):
                if distance[place] <= reach and leaves.ids[leaf, place] != identity:
                    ids[count] = leaves.ids[leaf, place]
                    distances[count] = distance[place]
                    count += 1
    return ids[:count].copy(), distances[:count].copy()


@compiled
def _join(parts: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    total = 0
    for part in parts:
        total += len(part)
    whole = np.empty(total, parts[0].dtype)
    filled = 0
    for part in parts:
        whole[filled : filled + len(part)] = part
        filled += len(part)
    return whole
