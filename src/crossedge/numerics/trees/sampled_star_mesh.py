"""Sampled star-mesh elimination: an approximate factor of a Laplacian, for conjugate gradients.

Taking a vertex out of a network replaces its star by a mesh with w_i w_j / s on every pair of its
neighbours (star_mesh.py), which fills a sparse graph with edges. Here the mesh is replaced by a
random tree on the neighbours that equals it in expectation. In ascending order of conductance,
every neighbour i but the last is joined to one later neighbour j, drawn with probability w_j / S_i,
where S_i is the sum of the later w_j, by an edge of conductance w_i S_i / s. A star of k edges thus
becomes k - 1 edges, and the number of edges never grows.

Kyng and Sachdeva (FOCS 2016) prove that products of such random steps concentrate. The variant
with sorted neighbours, few parallel copies of every edge and the next vertex of least degree is by
Gao, Kyng and Spielman (SIAM Journal on Scientific Computing, 2023). Since S_i >= w_i, weights are
only added, multiplied and divided, and no weight of a connected network falls to 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crossedge.numerics.labellings.packed import next_random, random_state
from crossedge.runtime.compiled import compiled
from crossedge.runtime.types import Floats, Ints, Words

COPIES = 2  # parallel copies of an edge: more make a better factor, which takes longer
MOST_DEGREE = 1024  # degrees above count as equal


class Factor(NamedTuple):
    """An eliminated network: vertex order[k] had the shares of its neighbours in row k."""

    order: Ints  # (n,)
    start: Ints  # (n + 1,): the first place of each row; the last vertex of a component has none
    neighbour: Ints  # (entries,)
    share: Floats  # (entries,): p = w / s
    total: Floats  # (n,): s, or 0 for the last vertex of a component


def factor_of(
    n: int, i: Ints, j: Ints, conductance: Floats, seed: int, copies: int = COPIES
) -> Factor:
    """Eliminate a network with positive conductances; parallel edges add up."""
    ends = np.empty((len(i) * copies, 2), np.int64)
    ends[:, 0], ends[:, 1] = np.repeat(i, copies), np.repeat(j, copies)
    weight = np.repeat(conductance / copies, copies)
    queue, head, place = np.full((3, max(n, MOST_DEGREE + 1)), -1), np.full(n, -1), np.full(n, -1)
    state = random_state(np.uint64(seed), 0)
    found = _eliminate(n, ends.ravel(), weight, copies, queue, head, place, state)
    order, start, neighbour, share, total = found
    return Factor(order, start, neighbour[: start[n]].copy(), share[: start[n]].copy(), total)


@compiled
def _eliminate(
    n: int,
    ends: Ints,
    weight: Floats,
    copies: int,
    queue: Ints,
    head: Ints,
    place: Ints,
    state: Words,
) -> tuple[Ints, Ints, Ints, Floats, Floats]:
    """Return the arrays of a Factor.

    Edge e has two halves, 2 e and 2 e + 1. A half lies in the list of one end, and `to` names the
    other end, or is -1 once the edge is gone. A vertex has its `head`, the first half of its list,
    and a `place` in the row of shares, or among the copies of a star; -1 means none.
    """
    to, after = np.empty(len(ends), np.int64), np.empty(len(ends), np.int64)
    degree = np.zeros(n, np.int64)
    for half in range(len(ends)):
        vertex = ends[half]
        to[half], after[half] = ends[half ^ 1], head[vertex]
        head[vertex] = half
        degree[vertex] += 1
    for vertex in range(n - 1, -1, -1):
        enqueue(queue, vertex, degree[vertex])
    order, start, total = np.empty(n, np.int64), np.zeros(n + 1, np.int64), np.zeros(n)
    neighbour, share = np.empty(2 * len(ends), np.int64), np.empty(2 * len(ends))
    star, later = np.empty(0, np.int64), np.empty(0)
    for k in range(n):
        least = 0
        while queue[0, least] < 0:
            least += 1
        vertex = queue[0, least]
        dequeue(queue, vertex, degree[vertex])
        order[k] = vertex
        if degree[vertex] > len(star):
            star, later = np.empty(2 * degree[vertex], np.int64), np.empty(2 * degree[vertex])
        size = _collect(vertex, head, after, to, weight, copies, place, star, degree, queue)
        _sort(star, size, weight)
        last = start[k] + size
        if last > len(neighbour):
            old, old_share = neighbour, share
            neighbour, share = np.empty(2 * last, np.int64), np.empty(2 * last)
            for entry in range(start[k]):
                neighbour[entry], share[entry] = old[entry], old_share[entry]
        # sums of the later weights, from the lightest to all
        s = 0.0
        for a in range(size - 1, -1, -1):
            s += weight[star[a] >> 1]
            later[a] = s
        total[k] = s
        end = start[k]
        for a in range(size):
            near, p = to[star[a]], weight[star[a] >> 1] / s
            if place[near] >= 0:
                share[place[near]] += p
            else:
                place[near] = end
                neighbour[end], share[end] = near, p
                end += 1
        start[k + 1] = end
        for entry in range(start[k], end):
            place[neighbour[entry]] = -1
        _sample(star, size, later, head, after, to, weight, degree, queue, state)
    return order, start, neighbour, share, total


@compiled
def _collect(
    vertex: int,
    head: Ints,
    after: Ints,
    to: Ints,
    weight: Floats,
    copies: int,
    place: Ints,
    star: Ints,
    degree: Ints,
    queue: Ints,
) -> int:
    """Write the halves of a vertex to `star`; return their number.

    Of parallel edges, as many as `copies` are left; further ones are added to the first.
    """
    size = 0
    half = head[vertex]
    while half >= 0:
        near = to[half]
        if near >= 0:
            found = -1
            if place[near] >= 0:  # the last of the parallel edges that were seen, and their number
                found, seen = place[near] // copies, place[near] % copies + 1
            if found < 0 or seen < copies:
                place[near] = size * copies + (0 if found < 0 else seen)
                star[size] = half
                size += 1
            else:
                weight[star[found] >> 1] += weight[half >> 1]
                to[half ^ 1] = -1
                _change_degree(queue, near, degree, -1)
        half = after[half]
    for a in range(size):
        place[to[star[a]]] = -1
    return size


@compiled
def _sort(star: Ints, size: int, weight: Floats) -> None:
    """Sort the halves of a star by weight, by Shell's method."""
    gap = 1
    while gap < size // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for a in range(gap, size):
            half, b = star[a], a
            w = weight[half >> 1]
            while b >= gap and weight[star[b - gap] >> 1] > w:
                star[b] = star[b - gap]
                b -= gap
            star[b] = half
        gap //= 3


@compiled
def _sample(
    star: Ints,
    size: int,
    later: Floats,
    head: Ints,
    after: Ints,
    to: Ints,
    weight: Floats,
    degree: Ints,
    queue: Ints,
    state: Words,
) -> None:
    """Replace a star, sorted by weight, by a random tree on its ends."""
    for a in range(size):
        half, near = star[a], to[star[a]]
        other = near
        if a < size - 1:
            # the last b > a with later[b] > target, where `later` descends
            target = later[a + 1] * (np.float64(next_random(state) >> np.uint64(11)) * 2.0**-53)
            low, high = a + 1, size
            while high - low > 1:
                middle = (low + high) // 2
                if later[middle] > target:
                    low = middle
                else:
                    high = middle
            other = to[star[low]]
        if other == near:  # the last edge, or an edge between two copies of the same vertex
            to[half ^ 1] = -1
            _change_degree(queue, near, degree, -1)
        else:  # the half at `near` stays there, the other one moves from the star to `other`
            weight[half >> 1] *= later[a + 1] / later[0]
            to[half ^ 1], after[half] = other, head[other]
            head[other] = half
            _change_degree(queue, other, degree, 1)


@compiled
def _change_degree(queue: Ints, vertex: int, degree: Ints, change: int) -> None:
    dequeue(queue, vertex, degree[vertex])
    degree[vertex] += change
    enqueue(queue, vertex, degree[vertex])


@compiled
def enqueue(queue: Ints, vertex: int, degree: int) -> None:
    """Put a vertex first in the list of its degree.

    Row 0 of the queue has the first vertex of every list; rows 1 and 2 have the vertices before and
    behind each vertex. Degrees from MOST_DEGREE on share a list.
    """
    here = min(degree, MOST_DEGREE)
    second = queue[0, here]
    queue[0, here], queue[1, vertex], queue[2, vertex] = vertex, -1, second
    if second >= 0:
        queue[1, second] = vertex


@compiled
def dequeue(queue: Ints, vertex: int, degree: int) -> None:
    """Take a vertex out of the list of its degree."""
    before, behind = queue[1, vertex], queue[2, vertex]
    if before >= 0:
        queue[2, before] = behind
    else:
        queue[0, min(degree, MOST_DEGREE)] = behind
    if behind >= 0:
        queue[1, behind] = before
