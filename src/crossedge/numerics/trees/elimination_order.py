"""The order in which a sparse network is eliminated, and the edges that this creates.

Taking out a vertex joins all its neighbours. The next vertex is always one with the fewest
neighbours. The neighbours of each vertex at its turn, its star, are found without making the new
edges: a vertex keeps a list of neighbours and of earlier stars that contain it, and its neighbours
are the union of all these. A star that shares a vertex with a later one is part of that one. So the
lists never grow (George and Liu, "The evolution of the minimum degree ordering algorithm", 1989).

Once every vertex has many neighbours, the vertices that are left make up the core, whose matrix is
better treated as dense.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crossedge.numerics.trees.sampled_star_mesh import MOST_DEGREE, dequeue, enqueue
from crossedge.runtime.compiled import compiled
from crossedge.runtime.types import Ints

CORE_RATIO = 3  # a loop over a star takes as long as a dense one over 3 times as many vertices
SMALL_CORE = 64  # vertices: a smaller core is as fast to treat as dense


class Stars(NamedTuple):
    """A graph in the order of elimination: vertices are named by their place in that order."""

    place: Ints  # (n,): the place of each vertex
    start: Ints  # (eliminated + 1,)
    member: Ints  # (entries,): the star of each vertex, ascending; the core comes last

    @property
    def eliminated(self) -> int:
        """The number of vertices before the core."""
        return len(self.start) - 1


def stars_of(n: int, i: Ints, j: Ints) -> Stars:
    """Return the stars of a graph whose edges may repeat; an isolated vertex has an empty star."""
    low, high = np.minimum(i, j), np.maximum(i, j)
    pairs = np.unique(low * n + high)
    low, high = pairs // n, pairs % n
    ends, others = np.concatenate([low, high]), np.concatenate([high, low])
    near = others[np.argsort(ends, kind="stable")]
    degree = np.bincount(ends, minlength=n)
    begin = np.cumsum(degree) - degree
    queue = np.full((3, max(n, MOST_DEGREE + 1)), -1)
    place, inside, seen = (np.full(n, -1) for _ in range(3))
    start, member = _order(n, begin, degree, near, queue, place, inside, seen)
    eliminated = len(start) - 1
    place[place < 0] = np.arange(eliminated, n)
    member = place[member[: start[-1]]]
    row = np.repeat(np.arange(eliminated), np.diff(start))
    return Stars(place, start, member[np.lexsort((member, row))])


@compiled
def _order(
    n: int,
    begin: Ints,
    degree: Ints,
    near: Ints,
    queue: Ints,
    place: Ints,
    inside: Ints,
    seen: Ints,
) -> tuple[Ints, Ints]:
    """Return the starts and the members of all stars, and write the places of their vertices.

    The list of vertex v is near[begin[v] : begin[v] + count[v]]. An entry that has been eliminated
    stands for its star, whose members are all left. A vertex is in the latest star k, or an earlier
    star is part of it, if inside[vertex] is k.
    """
    count, unions = degree.copy(), 0
    start, member = np.zeros(n + 1, np.int64), np.empty(2 * len(near), np.int64)
    for vertex in range(n - 1, -1, -1):
        enqueue(queue, vertex, degree[vertex])
    for k in range(n):
        least = 0
        while queue[0, least] < 0:
            least += 1
        if least * CORE_RATIO > n - k or (least > 1 and n - k <= SMALL_CORE):
            return start[: k + 1].copy(), member
        v = queue[0, least]
        dequeue(queue, v, degree[v])
        place[v] = k
        if start[k] + degree[v] > len(member):
            old = member
            member = np.empty(2 * (len(member) + degree[v]), np.int64)
            for entry in range(start[k]):
                member[entry] = old[entry]
        inside[v], end = k, start[k]
        for entry in range(begin[v], begin[v] + count[v]):
            u = near[entry]
            inside[u] = k
            if place[u] < 0:
                member[end] = u
                end += 1
        for entry in range(begin[v], begin[v] + count[v]):
            earlier = place[near[entry]]
            if earlier >= 0:
                for other in range(start[earlier], start[earlier + 1]):
                    if inside[member[other]] != k:
                        inside[member[other]] = k
                        member[end] = member[other]
                        end += 1
        start[k + 1] = end
        for entry in range(start[k], end):
            a, kept, unions = member[entry], begin[member[entry]], unions + 1
            neighbours = end - start[k] - 1
            for old_entry in range(begin[a], begin[a] + count[a]):
                u = near[old_entry]
                if inside[u] == k:
                    continue
                near[kept] = u
                kept += 1
                if place[u] < 0:
                    neighbours += seen[u] != unions
                    seen[u] = unions
                else:
                    for other in range(start[place[u]], start[place[u] + 1]):
                        x = member[other]
                        if inside[x] != k and seen[x] != unions:
                            seen[x] = unions
                            neighbours += 1
            near[kept] = v
            count[a] = kept + 1 - begin[a]
            dequeue(queue, a, degree[a])
            degree[a] = neighbours
            enqueue(queue, a, degree[a])
    return start, member
