"""The k nearest neighbours of many points, by compiled loops; see plain.py for few points."""

from __future__ import annotations

from typing import Any, NamedTuple

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
    reach_in_filter,
    reduced_distance,
    reduced_tie,
)
from crossedge.numerics.near_pairs import near_pairs, scratch_for
from crossedge.numerics.neighbours.plain import Edges, twins
from crossedge.runtime.compiled import compiled
from crossedge.runtime.threads import in_threads
from crossedge.runtime.types import Bools, Floats, Ints


class Nearest(NamedTuple):
    """The nearest of distinct points, from which the graphs of several k are read off."""

    leaves: Leaves
    use: Filter
    tie: float
    copies: Ints
    k: int  # the lists serve all numbers of neighbours up to this
    distance: Floats  # (leaves, CAPACITY, most): reduced distances, in ascending order
    ids: Ints  # (leaves, CAPACITY, most)
    turned_away: Floats  # (leaves, CAPACITY): the smallest distance that had no room

    def lengths(self, reduced: Floats) -> Floats:
        """Return distances of reduced distances."""
        lengths: Floats = np.sqrt(reduced) if self.use.p == 2 else reduced
        return lengths


def nearest_of_points(points: Floats, k: int, p: float, copies: Ints) -> Nearest:
    """Return the k nearest under l_p of (n, d) distinct points, i with copies[i] copies."""
    leaves, tie, use = build_leaves(points), reduced_tie(p), filter_of(p, points.shape[1])
    wanted, most = _wanted(k, copies)
    wanted_of = wanted[leaves.ids]
    distance = np.empty((*leaves.ids.shape, most))
    ids = np.empty(distance.shape, np.int64)
    turned_away = np.empty(leaves.ids.shape)

    def of_leaf(leaf: int) -> None:
        heap = distance[leaf], ids[leaf], turned_away[leaf]
        if most:
            nearest_of_leaf(leaf, leaves, use, tie, wanted_of[leaf], *heap)
            order = np.argsort(distance[leaf], axis=1)
            for values in heap[:2]:
                values[:] = np.take_along_axis(values, order, axis=1)

    in_threads(of_leaf, range(len(leaves.ids)))
    return Nearest(leaves, use, tie, copies, k, distance, ids, turned_away)


def edges_of(found: Nearest, k: int) -> Edges:
    """Return edges to the k nearest, for any k up to the one of the search.

    The weight of an edge i, j holds for each pair of copies; i, i is for pairs of copies of i.
    """
    leaves, tie, copies = found.leaves, found.tie, found.copies
    wanted, most = _wanted(k, copies)
    if most == 0:
        return twins(k, copies)
    parts = [twins(k, copies)]
    last, room = found.distance[..., most - 1], found.distance.shape[2]
    following = found.distance[..., most] if most < room else found.turned_away
    some = wanted[leaves.ids] > 0
    # more points tie with the last one than have room in so many places
    crowded = some & (following <= last * tie)
    listed, longer = some & ~crowded, crowded & _ends_inside(found, last)
    for rows, count in ((listed, most), (longer, room)):
        i, j = np.repeat(leaves.ids[rows], count), found.ids[rows][:, :count].ravel()
        if rows is listed and copies.max() == 1:
            parts.append((i, j, np.ones(len(i))))
        elif len(i):
            distance = found.distance[rows][:, :count].ravel()
            parts.append(_share_out(i, j, distance, wanted, copies, tie))
    beyond = crowded & ~longer
    if beyond.any():
        reach = np.where(beyond, last * tie, -1.0)

        def of_crowded(leaf: int) -> Edges:
            slots, near, distance = all_within(leaf, leaves, found.use, reach[leaf])
            return _share_out(leaves.ids[leaf][slots], near, distance, wanted, copies, tie)

        parts += in_threads(of_crowded, np.flatnonzero(beyond.any(1)).tolist())
    i, j, weight = (np.concatenate(part) for part in zip(*parts, strict=True))
    return i, j, weight


def neighbours_of_points(points: Floats, k: int, p: float, copies: Ints) -> Edges:
    """Return edges to the k nearest under l_p of (n, d) distinct points; see `edges_of`."""
    return edges_of(nearest_of_points(points, k, p, copies), k)


def _wanted(k: int, copies: Ints) -> tuple[Ints, int]:
    """Return how many neighbours each point wants besides its own copies, and the most of all.

    There is one more entry: the place of no point, which is -1, wants none.
    """
    wanted = np.append(np.maximum(k + 1 - copies, 0), 0)
    return wanted, min(int(wanted.max()), len(copies) - 1)


def _ends_inside(found: Nearest, last: Floats) -> Bools:
    """Return where the lists have all points that tie with the last one."""
    inside: Bools = np.maximum(found.distance[..., -1], found.turned_away) > last * found.tie
    return inside


def _share_out(i: Ints, j: Ints, distance: Floats, wanted: Ints, copies: Ints, tie: float) -> Edges:
    """Return the edges of points i among candidates j, given all up to the last one wanted.

    With s points strictly nearer than the last one wanted and t at its distance, each of the t has
    the same share of what is wanted besides the s.
    """
    order = np.lexsort((distance, i))
    i, j, distance = i[order], j[order], distance[order]
    first = np.flatnonzero(np.diff(i, prepend=-1))
    row = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(i))))
    number = np.where(np.isfinite(distance), copies[j], len(copies))
    taken = np.cumsum(number)
    taken -= (taken[first] - number[first])[row]
    # the first candidate with which as many are taken as are wanted
    is_last = (taken >= wanted[i]) & (taken - number < wanted[i])
    last = distance[is_last][row]
    near, nearer = distance <= last * tie, distance * tie < last
    sums = [np.add.reduceat(np.where(some, number, 0), first)[row] for some in (nearer, near)]
    share = (wanted[i] - sums[0]) / np.maximum(sums[1] - sums[0], 1)
    return i[near], j[near], np.where(nearer, 1.0, share)[near]


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
    leaf: int,
    leaves: Leaves,
    use: Filter,
    tie: float,
    wanted: Ints,
    nearest: Floats,
    ids: Ints,
    turned_away: Floats,
) -> None:
    """Find the nearest points of those in a leaf, and the smallest distances that had no room.

    `nearest` and `ids`, (CAPACITY, most), receive a heap of reduced distances for each slot, the
    largest first. Slots with wanted[slot] == 0 are left out. What had no room is exact up to the
    factor `tie` beyond the largest in the heap, and larger than that otherwise.
    """
    q, p = use.q, use.p
    scratch = scratch_for(leaves.centre.shape[1])
    slots, places = scratch[5], scratch[6]
    reach = np.full(CAPACITY, -1.0)
    for slot in range(CAPACITY):
        if wanted[slot] > 0:
            reach[slot] = np.inf
        turned_away[slot] = np.inf
        for place in range(nearest.shape[1]):
            nearest[slot, place] = np.inf
            ids[slot, place] = -1
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
