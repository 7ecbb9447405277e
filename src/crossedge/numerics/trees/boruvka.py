"""A minimum spanning tree of many points, by Boruvka's algorithm over leaves (see leaves.py).

Every component of a growing forest chooses the shortest edge that leaves it, and all chosen edges
are added. Lists of nearest neighbours, made once, answer most of the first rounds. Later a point is
searched only if it could have an edge shorter than the best of its component so far, and leaves
inside its component are skipped. The largest component need not choose: all others join something.

Edges are added from the shortest on, without those that would close a cycle. Then ties do no harm:
the tree is a minimum spanning tree whichever of the shortest edges a component chooses.

Every tie shows in a choice. Let f be as long as e, the longest edge on the tree path between the
ends of f, and let C be the component that chose e. The cycle of f and that path leaves C by e and
returns to C by another edge, which is no shorter than e, so it ties with e or is f itself. So the
edges that leave a component, and are as short as the one chosen, are all the candidates.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from typing import NamedTuple, TypeVar

import numpy as np

from crossedge.numerics.leaves import (
    CAPACITY,
    Filter,
    Leaves,
    Shorts,
    build_leaves,
    filter_of,
    leaves_within,
    reach_in_filter,
    reduced_distance,
    reduced_tie,
)
from crossedge.numerics.near_pairs import near_pairs, scratch_for
from crossedge.numerics.neighbours.nearest import all_within, nearest_of_leaf
from crossedge.runtime.compiled import compiled
from crossedge.runtime.interrupts import checkpoint
from crossedge.runtime.threads import in_threads
from crossedge.runtime.types import Bools, Floats, Ints

LISTED = 8  # nearest neighbours in the list of a point
LINKS = 8  # lengths, each within the tie of the next, that may count as one class of equal lengths
Found = TypeVar("Found")

MOST_LEAVES = 16  # leaves that a thread takes at a time
COORDINATES = 1 << 27  # all of which it may compare with them before the next checkpoint


class Forest(NamedTuple):
    """What is known of each point, numbered by its place in the leaves, and of each component.

    A component is named by one of its points.
    """

    component: Shorts  # (n,)
    in_leaf: Shorts  # (leaves,): the component of all points of a leaf; -1 if there are several
    near: Shorts  # (n, listed): the nearest points, nearest first
    reach: Floats  # (n, listed): their reduced distances
    left_out: Floats  # (n,): the smallest distance that is not in the list, if it ties with one
    seen: Shorts  # (n,): the number of entries of the list that are in the point's own component
    target: Shorts  # (n,): the nearest point of another component; -1 if it is not known
    length: Floats  # (n,): its distance, or a lower bound on it
    crowded: Bools  # (n,): whether another point of another component may be as near
    bound: Floats  # (n,): an upper bound on the shortest edge that leaves a component


class Tree(NamedTuple):
    """A minimum spanning tree, and pairs of points that may be edges of others."""

    i: Ints  # (n - 1,)
    j: Ints  # (n - 1,)
    length: Floats  # (n - 1,): reduced
    tied: list[tuple[Ints, Ints, Floats]]  # i, j and lengths; empty if there is one tree only


def tree_of_points(points: Floats, p: float) -> Tree:
    """Return a minimum spanning tree of (n, d) distinct points under l_p."""
    n = len(points)
    if n == 1:
        none = np.empty(0, np.int64)
        return Tree(none, none, np.empty(0), [])
    use, loose = filter_of(p, points.shape[1]), reduced_tie(p) ** LINKS
    leaves = build_leaves(points)
    order = leaves.ids.ravel()[:n].copy()
    leaves.ids.ravel()[:n] = np.arange(n)
    listed = min(LISTED, n - 1)
    forest = Forest(
        np.arange(n, dtype=np.int32),
        np.full(len(leaves.scale), -1, np.int32),
        np.empty((n, listed), np.int32),
        np.empty((n, listed)),
        np.empty(n),
        np.zeros(n, np.int32),
        np.full(n, -1, np.int32),
        np.zeros(n),
        np.zeros(n, np.bool_),
        np.empty(n),
    )
    _over_leaves(
        partial(_list_neighbours, leaves, use, loose, forest), np.arange(len(leaves.scale)), leaves
    )
    root = np.arange(n)
    edges, tied = [], []
    components = n
    while components > 1:
        checkpoint()
        largest = _consult_lists(leaves, p, loose, forest)
        searched = _leaves_to_search(forest, loose, largest)
        _over_leaves(partial(_search, leaves, use, loose, forest, largest), searched, leaves)
        chosen, reach = _choose(forest, loose, largest)
        ambiguous = np.flatnonzero((reach >= 0).reshape(-1, CAPACITY).any(1))
        others = partial(_foreign_within, leaves, use, reach, forest.component)
        tied += _over_leaves(others, ambiguous, leaves)
        chosen = chosen[np.argsort(forest.length[chosen], kind="stable")]
        kept = chosen[_join_components(root, chosen, forest.target)]
        edges.append((kept, forest.target[kept].astype(np.int64), forest.length[kept]))
        components -= len(kept)
        _name_components(root, forest)
    i, j, length = (np.concatenate(part) for part in zip(*edges, strict=True))
    return Tree(order[i], order[j], length, [(order[a], order[b], far) for a, b, far in tied])


def _over_leaves(work: Callable[[Ints], Found], chosen: Ints, leaves: Leaves) -> list[Found]:
    """Run the work on chunks of the chosen leaves, in threads."""
    size = min(max(COORDINATES // leaves.points.size, 1), MOST_LEAVES)
    chunks = [chosen[first : first + size] for first in range(0, len(chosen), size)]
    return in_threads(work, chunks)


@compiled
def _list_neighbours(
    leaves: Leaves, use: Filter, loose: float, forest: Forest, chunk: Ints
) -> None:
    """Write the lists of nearest neighbours of the points of some leaves."""
    listed = forest.near.shape[1]
    nearest, ids = np.empty((CAPACITY, listed)), np.empty((CAPACITY, listed), np.int64)
    left_out = np.empty(CAPACITY)
    for leaf in chunk:
        wanted = np.zeros(CAPACITY, np.int64)
        for slot in range(min(CAPACITY, len(forest.target) - leaf * CAPACITY)):
            wanted[slot] = listed
        nearest_of_leaf(leaf, leaves, use, loose, wanted, nearest, ids, left_out)
        for slot in range(CAPACITY):
            if wanted[slot]:
                point = leaf * CAPACITY + slot
                for taken in range(listed):  # by insertion, since lists are short
                    place = taken
                    while place > 0 and forest.reach[point, place - 1] > nearest[slot, taken]:
                        forest.near[point, place] = forest.near[point, place - 1]
                        forest.reach[point, place] = forest.reach[point, place - 1]
                        place -= 1
                    forest.near[point, place] = ids[slot, taken]
                    forest.reach[point, place] = nearest[slot, taken]
                forest.left_out[point] = left_out[slot]


@compiled
def _consult_lists(leaves: Leaves, p: float, loose: float, forest: Forest) -> int:
    """Find nearest points of other components in the lists; return the largest component.

    Bound the shortest edge of each component from above as well.
    """
    n, listed = forest.near.shape
    component, target, length, bound = forest.component, forest.target, forest.length, forest.bound
    size = np.zeros(n, np.int32)
    bound[:] = np.inf
    for point in range(n):
        own = component[point]
        size[own] += 1
        if target[point] >= 0 and component[target[point]] == own:
            target[point] = -1
        seen = forest.seen[point]
        while target[point] < 0 and seen < listed:
            here = forest.reach[point, seen]
            length[point] = max(length[point], here)
            if component[forest.near[point, seen]] == own:
                seen += 1
                continue
            target[point] = forest.near[point, seen]
            length[point] = here
            crowded = forest.left_out[point] <= here * loose
            for place in range(seen + 1, listed):
                if forest.reach[point, place] > here * loose:
                    break
                crowded |= component[forest.near[point, place]] != own
            forest.crowded[point] = crowded
        forest.seen[point] = seen
        if target[point] >= 0:
            bound[own] = min(bound[own], length[point])
    # every component has neighbours in the order of leaves that belong to others
    for point in range(n - 1):
        own, other = component[point], component[point + 1]
        if own != other and (bound[own] == np.inf or bound[other] == np.inf):
            leaf, next_leaf = point // CAPACITY, (point + 1) // CAPACITY
            distance = reduced_distance(
                leaves.points[leaf],
                point % CAPACITY,
                leaves.points[next_leaf],
                (point + 1) % CAPACITY,
                p,
            )
            bound[own] = min(bound[own], distance)
            bound[other] = min(bound[other], distance)
    return int(np.argmax(size))


@compiled
def _leaves_to_search(forest: Forest, loose: float, largest: int) -> Ints:
    """Return the leaves with points that could have a shorter edge than their component has."""
    found = np.empty(len(forest.in_leaf), np.int64)
    count = 0
    for leaf in range(len(found)):
        for point in range(leaf * CAPACITY, min((leaf + 1) * CAPACITY, len(forest.target))):
            if _is_open(point, forest, loose, largest):
                found[count] = leaf
                count += 1
                break
    return found[:count].copy()


@compiled
def _is_open(point: int, forest: Forest, loose: float, largest: int) -> bool:
    """Return whether a point's nearest point of another component is unknown, and could matter."""
    own = forest.component[point]
    if own == largest or forest.target[point] >= 0:
        return False
    return bool(forest.length[point] <= forest.bound[own] * loose)


@compiled
def _search(
    leaves: Leaves, use: Filter, loose: float, forest: Forest, largest: int, chunk: Ints
) -> None:
    """Find the nearest points of other components for the open points of some leaves.

    Threads share `bound`: what one thread finds spares others work. Each value that they may read,
    old or new, is the length of an edge that leaves the component.
    """
    n = len(forest.target)
    component, bound = forest.component, forest.bound
    scratch = scratch_for(leaves.centre.shape[1])
    slots, places = scratch[5], scratch[6]
    reach, limit = np.empty(CAPACITY), np.empty(CAPACITY)
    best, second, nearest = np.empty(CAPACITY), np.empty(CAPACITY), np.empty(CAPACITY, np.int64)
    for leaf in chunk:
        begin = leaf * CAPACITY
        common = -2  # the component of all open points; -1 if there are several
        reach[:] = -1.0
        best[:], second[:], nearest[:], limit[:] = np.inf, np.inf, -1, np.inf
        for slot in range(min(CAPACITY, n - begin)):
            if _is_open(begin + slot, forest, loose, largest):
                own = component[begin + slot]
                common = own if common == -2 or common == own else -1
                limit[slot] = bound[own]
                reach[slot] = reach_in_filter(limit[slot] * loose, use)
        if common == -2:
            continue  # meanwhile no point is open
        visits, gap = leaves_within(leaf, leaves, reach.max(), use.q)
        for visit in range(-1, len(visits)):
            other = leaf if visit < 0 else visits[visit]
            if common >= 0 and forest.in_leaf[other] == common:
                continue
            most = -1.0
            for slot in range(CAPACITY):
                if reach[slot] >= 0.0:
                    now = min(best[slot], bound[component[begin + slot]])
                    if now < limit[slot]:
                        limit[slot] = now
                        reach[slot] = reach_in_filter(now * loose, use)
                    most = max(most, reach[slot])
            if visit >= 0 and gap[visit] > (most * most if use.q == 2.0 else most):
                continue
            for pair in range(near_pairs(leaf, other, leaves, reach, use.q, scratch)):
                slot, place = slots[pair], places[pair]
                there = other * CAPACITY + place
                if there >= n or component[there] == component[begin + slot]:
                    continue
                distance = reduced_distance(
                    leaves.points[leaf], slot, leaves.points[other], place, use.p
                )
                if distance < best[slot]:
                    second[slot], best[slot], nearest[slot] = best[slot], distance, there
                    own = component[begin + slot]
                    bound[own] = min(bound[own], distance)
                else:
                    second[slot] = min(second[slot], distance)
        for slot in range(CAPACITY):
            if reach[slot] >= 0.0:
                point = begin + slot
                shortest = bound[component[point]]
                if best[slot] <= shortest * loose:
                    forest.target[point], forest.length[point] = nearest[slot], best[slot]
                    # beyond the shortest, not all that tie have been looked at
                    is_close = second[slot] <= best[slot] * loose
                    forest.crowded[point] = is_close or best[slot] > shortest
                else:
                    forest.length[point] = max(forest.length[point], shortest)


@compiled
def _choose(forest: Forest, loose: float, largest: int) -> tuple[Ints, Floats]:
    """Return one end of the shortest edge of each component but the largest; and ties.

    Where the shortest edge of a component ties with another, the second array has the reduced
    distance to look within, at each point of the component with such an edge; elsewhere it is -1.
    """
    n = len(forest.target)
    component, target, length = forest.component, forest.target, forest.length
    winner = np.full(n, -1, np.int64)
    for point in range(n):
        own = component[point]
        if own == largest or target[point] < 0:
            continue
        if winner[own] < 0 or length[point] < length[winner[own]]:
            winner[own] = point
    tied = np.zeros(n, np.bool_)
    any_tied = False
    for point in range(n):
        own = component[point]
        best = winner[own]
        if best < 0 or target[point] < 0:
            continue
        ties = forest.crowded[point] if point == best else length[point] <= length[best] * loose
        if ties:
            tied[own] = any_tied = True
    reach = np.full(len(forest.in_leaf) * CAPACITY, -1.0)
    if any_tied:
        for point in range(n):
            own = component[point]
            if tied[own] and target[point] >= 0:
                limit = length[winner[own]] * loose
                if length[point] <= limit:
                    reach[point] = limit
    return winner[winner >= 0], reach


def _foreign_within(
    leaves: Leaves, use: Filter, reach: Floats, component: Shorts, chunk: Ints
) -> tuple[Ints, Ints, Floats]:
    """Return all pairs within reach of a point in some leaves and one of another component."""
    parts = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
    for leaf in chunk.tolist():
        begin = leaf * CAPACITY
        slots, found, distances = all_within(leaf, leaves, use, reach[begin : begin + CAPACITY])
        foreign = component[slots + begin] != component[found]
        parts.append((slots[foreign] + begin, found[foreign], distances[foreign]))
    i, j, length = (np.concatenate(part) for part in zip(*parts, strict=True))
    return i, j, length


@compiled
def _join_components(root: Ints, chosen: Ints, target: Shorts) -> Bools:
    """Add the edges from `chosen` to their targets in turn; return which closed no cycle."""
    kept = np.zeros(len(chosen), np.bool_)
    for place in range(len(chosen)):
        one = root_of(root, chosen[place])
        other = root_of(root, target[chosen[place]])
        if one != other:
            root[max(one, other)] = min(one, other)
            kept[place] = True
    return kept


@compiled
def _name_components(root: Ints, forest: Forest) -> None:
    """Name components by their roots, and find the leaves inside one component."""
    n = len(forest.target)
    for point in range(n):
        forest.component[point] = root_of(root, point)
    for leaf in range(len(forest.in_leaf)):
        first = forest.component[leaf * CAPACITY]
        forest.in_leaf[leaf] = first
        for point in range(leaf * CAPACITY, min((leaf + 1) * CAPACITY, n)):
            if forest.component[point] != first:
                forest.in_leaf[leaf] = -1
                break


@compiled
def root_of(parent: Ints, vertex: int) -> int:
    """Return the root of a vertex in a forest of parents, halving its path on the way."""
    while parent[vertex] != vertex:
        parent[vertex] = parent[parent[vertex]]
        vertex = parent[vertex]
    return vertex


@compiled
def arrivals_of_tree(i: Ints, j: Ints, length: Floats) -> tuple[Ints, Ints, Floats]:
    """Return the order in which Prim's algorithm adds the points of a tree, parents and lengths."""
    n = len(i) + 1
    begin = np.zeros(n + 1, np.int64)
    for edge in range(n - 1):
        begin[i[edge] + 1] += 1
        begin[j[edge] + 1] += 1
    begin = np.cumsum(begin)
    free = begin[:-1].copy()
    edges = np.empty(2 * (n - 1), np.int64)
    for edge in range(n - 1):
        for end in (i[edge], j[edge]):
            edges[free[end]] = edge
            free[end] += 1
    order, parent, key = np.zeros(n, np.int64), np.full(n, -1), np.full(n, np.inf)
    arrived = np.zeros(n, np.bool_)
    arrived[0] = True
    waiting = [(np.inf, 0, 0) for _ in range(0)]  # empty, of a known type
    latest = 0
    for step in range(1, n):
        for place in range(begin[latest], begin[latest + 1]):
            edge = edges[place]
            other = i[edge] + j[edge] - latest
            if not arrived[other]:
                heappush(waiting, (length[edge], other, latest))
        key[step], order[step], parent[step] = heappop(waiting)
        latest = order[step]
        arrived[latest] = True
    return order, parent, key
