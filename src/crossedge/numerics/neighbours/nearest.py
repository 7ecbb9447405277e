"""The k nearest neighbours of many points, by compiled loops; see plain.py for few points."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from crossedge.numerics.leaves import (
    CAPACITY,
    GROUP,
    Filter,
    Leaves,
    build_leaves,
    filter_of,
    leaves_within,
    near_pairs,
    reach_in_filter,
    reduced_distance,
    reduced_tie,
    scratch_for,
)
from crossedge.numerics.neighbours.plain import Edges, twins
from crossedge.runtime.compiled import compiled
from crossedge.runtime.threads import in_threads
from crossedge.runtime.types import Floats, Ints


def neighbours_of_points(points: Floats, k: int, p: float, copies: Ints) -> Edges:
    """Return edges to the k nearest under l_p of (n, d) distinct points, i with copies[i] copies.

    The weight of an edge i, j holds for each pair of copies; i, i is for pairs of copies of i.
    """
    leaves, tie, use = build_leaves(points), reduced_tie(p), filter_of(p, points.shape[1])
    wanted = np.maximum(k + 1 - copies, 0)  # besides its own copies
    found = in_threads(
        lambda leaf: _neighbours_of_leaf(leaf, leaves, use, tie, wanted, copies),
        range(len(leaves.scale)),
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
def nearest_of_leaf(
    leaf: int, leaves: Leaves, use: Filter, tie: float, wanted: Ints, nearest: Floats, ids: Ints
) -> Floats:
    """Find the nearest points of those in a leaf; return the smallest distance that had no room.

    `nearest` and `ids`, (CAPACITY, most), receive a heap of reduced distances for each slot, the
    largest first. Slots with wanted[slot] == 0 are left out. What had no room is exact up to the
    factor `tie` beyond the largest in the heap, and larger than that otherwise.
    """
    q, p = use.q, use.p
    scratch = scratch_for(leaves.centre.shape[1])
    slots, places = scratch[5], scratch[6]
    nearest[:] = np.inf
    ids[:] = -1
    turned_away = np.full(CAPACITY, np.inf)
    reach = np.full(CAPACITY, -1.0)
    for slot in range(CAPACITY):
        if wanted[slot] > 0:
            reach[slot] = np.inf
    mine = leaves.points[leaf]
    group = leaf // GROUP
    visits = np.empty(0, np.int64)
    bounds = np.empty(0)
    place_in_list = -1 - GROUP  # first the leaf itself, then the rest of its group, then all others
    while place_in_list < len(visits):
        if place_in_list < 0:
            other = leaf
            if place_in_list >= -GROUP:
                other = group * GROUP + place_in_list + GROUP
                if other == leaf or other >= len(leaves.scale):
                    other = -1
        else:
            other = visits[place_in_list]
            most = reach.max()
            if other // GROUP == group or bounds[place_in_list] > (
                most * most if q == 2.0 else most
            ):
                other = -1
        place_in_list += 1
        if other >= 0:
            theirs = leaves.points[other]
            for pair in range(near_pairs(leaf, other, leaves, reach, q, scratch)):
                slot, place = slots[pair], places[pair]
                identity = leaves.ids[other, place]
                if identity < 0 or (other == leaf and slot == place):
                    continue
                distance = reduced_distance(mine, slot, theirs, place, p)
                if distance < nearest[slot, 0]:
                    turned_away[slot] = min(turned_away[slot], nearest[slot, 0])
                    _push(nearest[slot], ids[slot], distance, identity)
                    reach[slot] = reach_in_filter(nearest[slot, 0] * tie, use)
                else:
                    turned_away[slot] = min(turned_away[slot], distance)
        if place_in_list == 0:
            visits, bounds = leaves_within(leaf, leaves, reach.max(), q)
    return turned_away


@compiled
def _neighbours_of_leaf(
    leaf: int, leaves: Leaves, use: Filter, tie: float, wanted: Ints, copies: Ints
) -> Edges:
    """Return the edges of the points of one leaf."""
    here = np.zeros(CAPACITY, np.int64)
    for slot in range(CAPACITY):
        if leaves.ids[leaf, slot] >= 0:
            here[slot] = wanted[leaves.ids[leaf, slot]]
    most = min(here.max(), len(copies) - 1)
    nothing = np.empty(0, np.int64)
    if most == 0:
        return nothing, nothing, np.empty(0)
    nearest, ids = np.empty((CAPACITY, most)), np.empty((CAPACITY, most), np.int64)
    turned_away = nearest_of_leaf(leaf, leaves, use, tie, here, nearest, ids)
    reach = np.full(CAPACITY, -1.0)
    any_crowded = False
    for slot in range(CAPACITY):
        if here[slot] > 0 and turned_away[slot] <= nearest[slot, 0] * tie:  # more ties than room
            reach[slot] = nearest[slot, 0] * tie
            any_crowded = True
    i, j, weight = [nothing], [nothing], [np.empty(0)]
    slots, near, lengths = nothing, nothing, np.empty(0)
    if any_crowded:
        slots, near, lengths = all_within(leaf, leaves, use, reach)
    for slot in range(CAPACITY):
        if here[slot] > 0:
            chosen, length = ids[slot], nearest[slot]
            if reach[slot] >= 0.0:
                chosen, length = near[slots == slot], lengths[slots == slot]
            found = _share_out(leaves.ids[leaf, slot], length, chosen, here[slot], copies, tie)
            i.append(found[0])
            j.append(found[1])
            weight.append(found[2])
    return joined(i), joined(j), joined(weight)


@compiled
def all_within(leaf: int, leaves: Leaves, use: Filter, reach: Floats) -> tuple[Ints, Ints, Floats]:
    """Return all points within a reduced distance reach[slot] >= 0 of each slot of a leaf.

    The three arrays are the slots, the points, and their reduced distances.
    """
    scratch = scratch_for(leaves.centre.shape[1])
    slots, places = scratch[5], scratch[6]
    in_filter = np.full(CAPACITY, -1.0)
    for slot in range(CAPACITY):
        if reach[slot] >= 0.0:
            in_filter[slot] = reach_in_filter(reach[slot], use)
    others = leaves_within(leaf, leaves, in_filter.max(), use.q)[0]
    from_slot, found = np.empty(CAPACITY, np.int64), np.empty(CAPACITY, np.int64)
    lengths = np.empty(CAPACITY)
    count = 0
    for visit in range(-1, len(others)):
        other = leaf if visit < 0 else others[visit]
        pairs = near_pairs(leaf, other, leaves, in_filter, use.q, scratch)
        if count + pairs > len(found):
            room = 2 * (count + pairs)
            from_slot, found = _with_room(from_slot, room), _with_room(found, room)
            lengths = _with_room(lengths, room)
        for pair in range(pairs):
            slot, place = slots[pair], places[pair]
            identity = leaves.ids[other, place]
            if identity < 0 or (other == leaf and slot == place):
                continue
            distance = reduced_distance(
                leaves.points[leaf], slot, leaves.points[other], place, use.p
            )
            if distance <= reach[slot]:
                from_slot[count], found[count], lengths[count] = slot, identity, distance
                count += 1
    return from_slot[:count].copy(), found[:count].copy(), lengths[:count].copy()


@compiled
def _with_room(values: npt.NDArray[Any], room: int) -> npt.NDArray[Any]:
    longer = np.empty(room, values.dtype)
    for place in range(len(values)):
        longer[place] = values[place]
    return longer


@compiled
def joined(parts: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Return arrays one after the other."""
    total = 0
    for part in parts:
        total += len(part)
    whole = np.empty(total, parts[0].dtype)
    filled = 0
    for part in parts:
        whole[filled : filled + len(part)] = part
        filled += len(part)
    return whole
