"""Star-mesh elimination (see star_mesh.py) on sparse graphs: resistances across edges only.

Vertices are taken out in the order of elimination_order.py until a core is left, which is dense. On
the way back, only resistances between vertices that were neighbours on the way out are needed. Like
conductances, they are kept with the star of the vertex that was taken out first; those of the core
are in a matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crossedge.numerics.trees.elimination_order import Stars, stars_of
from crossedge.numerics.trees.star_mesh import Mesh, padded, solve, tangent_of
from crossedge.runtime.compiled import compiled
from crossedge.runtime.types import Floats, Ints


@dataclass(frozen=True)
class SparseMesh:
    """The result of elimination."""

    stars: Stars
    slot: Ints  # (edges,): where each edge is kept: in the stars, or -1 - its place in the core
    weight: Floats  # (entries,): w of a star's edges when its vertex was taken out
    total: Floats  # (eliminated,): s, the sums of w
    core: tuple[tuple[Ints, Mesh], ...]  # the vertices of each part of the core, and its mesh
    resistance: Floats  # (entries,): R across the edges of stars
    core_resistance: Floats  # (core, core)

    @property
    def edge_resistance(self) -> Floats:
        """Return the resistance across each edge."""
        return _read(self.slot, self.resistance, self.core_resistance)

    def tangent(self, d_conductance: Floats) -> Floats:
        """Return the changes of the edges' resistances for changes of their conductances."""
        d_weight, d_core = _write(self.slot, d_conductance, self.resistance, self.core_resistance)
        lists = self.stars.start, self.stars.member, np.full(len(self.stars.place), -1)
        d_total = np.empty_like(self.total)
        known = self.weight, self.total
        _take_out_tangent(*lists, *known, d_weight, d_total, d_core)
        d_core_resistance = np.zeros_like(d_core)
        for part, mesh in self.core:
            d_part = tangent_of(mesh, padded(d_core[np.ix_(part, part)]))
            d_core_resistance[np.ix_(part, part)] = d_part[:, : len(part)]
        d_resistance = np.empty_like(self.resistance)
        found = self.resistance, self.core_resistance, d_resistance, d_core_resistance
        _bring_back_tangent(*lists, *known, d_weight, d_total, *found)
        return _read(self.slot, d_resistance, d_core_resistance)


def eliminate(n: int, i: Ints, j: Ints, conductance: Floats) -> SparseMesh:
    """Compute the resistances across the edges of a graph, which may have several parts.

    Parallel edges add up.
    """
    stars = stars_of(n, i, j)
    size = n - stars.eliminated
    slot = _slots(*stars, np.minimum(stars.place[i], stars.place[j]), np.maximum(stars.place[i], stars.place[j]))
    empty = np.empty(len(stars.member)), np.empty((size, size))
    weight, core = _write(slot, conductance, *empty)
    lists = stars.start, stars.member, np.full(n, -1)
    total = np.empty(stars.eliminated)
    _take_out(*lists, weight, total, core)
    parts, core_resistance = [], np.zeros((size, size))
    for part in _parts(core):
        mesh = solve(padded(core[np.ix_(part, part)]))
        core_resistance[np.ix_(part, part)] = mesh.resistance
        parts.append((part, mesh))
    resistance = np.empty_like(weight)
    _bring_back(*lists, weight, total, resistance, core_resistance)
    return SparseMesh(stars, slot, weight, total, tuple(parts), resistance, core_resistance)


def _parts(core: Floats) -> list[Ints]:
    """Return the vertices of each connected part of the core."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    if not len(core):
        return []
    label = connected_components(csr_array(core > 0), directed=False)[1]
    order = np.argsort(label, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(label[order])) + 1)


def _read(slot: Ints, of_stars: Floats, of_core: Floats) -> Floats:
    return np.append(of_stars, of_core.ravel()[::-1])[slot]


def _write(slot: Ints, values: Floats, like_stars: Floats, like_core: Floats) -> tuple[Floats, Floats]:
    """Add up the values of edges at their slots, in the core on both sides of the diagonal."""
    all_slots = np.zeros(like_stars.size + like_core.size)
    np.add.at(all_slots, slot, values)
    core = all_slots[like_stars.size :][::-1].reshape(like_core.shape)
    return all_slots[: like_stars.size], core + core.T


@compiled
def _slots(place: Ints, start: Ints, member: Ints, first: Ints, second: Ints) -> Ints:
    """Return the slot of each edge, whose first end was taken out first."""
    slot, eliminated = np.empty_like(first), len(start) - 1
    size = len(place) - eliminated
    for edge in range(len(first)):
        a, b = first[edge], second[edge]
        if a >= eliminated:
            slot[edge] = -1 - ((b - eliminated) * size + a - eliminated)
            continue
        low, high = start[a], start[a + 1]
        while high - low > 1:
            middle = (low + high) // 2
            if member[middle] <= b:
                low = middle
            else:
                high = middle
        slot[edge] = low
    return slot


@compiled
def _take_out(start: Ints, member: Ints, where: Ints, weight: Floats, total: Floats, core: Floats) -> None:
    """Turn the stars' conductances into those at their vertices' turns; `where` holds -1."""
    eliminated = len(total)
    for k in range(eliminated):
        first, last = start[k], start[k + 1]
        s = 0.0
        for x in range(first, last):
            where[member[x]] = x
            s += weight[x]
        total[k] = s
        for x in range(first, last):
            a, p = member[x], weight[x] / s
            if a < eliminated:
                for slot in range(start[a], start[a + 1]):
                    y = where[member[slot]]
                    if y >= 0:
                        weight[slot] += p * weight[y]
            else:
                row = core[a - eliminated]
                for y in range(first, last):
                    if member[y] >= eliminated and y != x:
                        row[member[y] - eliminated] += p * weight[y]
        for x in range(first, last):
            where[member[x]] = -1


@compiled
def _bring_back(
    start: Ints,
    member: Ints,
    where: Ints,
    weight: Floats,
    total: Floats,
    resistance: Floats,
    core: Floats,
) -> None:
    """Write the resistances of stars, given those of the core."""
    for k in range(len(total) - 1, -1, -1):
        first, last = start[k], start[k + 1]
        share, v = np.empty(last - first), np.zeros(last - first)
        for x in range(first, last):
            where[member[x]] = x - first
            share[x - first] = weight[x] / total[k]
        _multiply(start, member, where, resistance, core, first, last, share, v)
        inner = 0.0
        for x in range(first, last):
            where[member[x]] = -1
            inner += share[x - first] * v[x - first]
        for x in range(first, last):
            resistance[x] = 1.0 / total[k] + v[x - first] - 0.5 * inner


@compiled
def _multiply(
    start: Ints,
    member: Ints,
    where: Ints,
    resistance: Floats,
    core: Floats,
    first: int,
    last: int,
    share: Floats,
    out: Floats,
) -> None:
    """Add R p to `out`, over the members of a star; `where` has their places."""
    eliminated = len(start) - 1
    for x in range(last - first):
        a = member[first + x]
        if a < eliminated:
            for slot in range(start[a], start[a + 1]):
                y = where[member[slot]]
                if y >= 0:
                    out[x] += resistance[slot] * share[y]
                    out[y] += resistance[slot] * share[x]
        else:
            row, added = core[a - eliminated], 0.0
            for y in range(x + 1):  # members before x that are in the core as well
                b = member[first + x - y]
                if b < eliminated:
                    break
                added += row[b - eliminated] * share[x - y]
                if y > 0:
                    out[x - y] += row[b - eliminated] * share[x]
            out[x] += added


@compiled
def _take_out_tangent(
    start: Ints,
    member: Ints,
    where: Ints,
    weight: Floats,
    total: Floats,
    d_weight: Floats,
    d_total: Floats,
    d_core: Floats,
) -> None:
    """Turn changes of the edges' conductances into changes at their vertices' turns."""
    eliminated = len(total)
    for k in range(eliminated):
        first, last = start[k], start[k + 1]
        ds = 0.0
        for x in range(first, last):
            where[member[x]] = x
            ds += d_weight[x]
        d_total[k] = ds
        for x in range(first, last):
            a, p = member[x], weight[x] / total[k]
            dp = (d_weight[x] - p * ds) / total[k]
            if a < eliminated:
                for slot in range(start[a], start[a + 1]):
                    y = where[member[slot]]
                    if y >= 0:
                        d_weight[slot] += p * d_weight[y] + dp * weight[y]
            else:
                row = d_core[a - eliminated]
                for y in range(first, last):
                    if member[y] >= eliminated and y != x:
                        row[member[y] - eliminated] += p * d_weight[y] + dp * weight[y]
        for x in range(first, last):
            where[member[x]] = -1


@compiled
def _bring_back_tangent(
    start: Ints,
    member: Ints,
    where: Ints,
    weight: Floats,
    total: Floats,
    d_weight: Floats,
    d_total: Floats,
    resistance: Floats,
    core: Floats,
    d_resistance: Floats,
    d_core: Floats,
) -> None:
    """Write the changes of the stars' resistances, given those of the core."""
    for k in range(len(total) - 1, -1, -1):
        first, last, s = start[k], start[k + 1], total[k]
        size = last - first
        share, d_share, v, dv = np.empty(size), np.empty(size), np.zeros(size), np.zeros(size)
        for x in range(size):
            where[member[first + x]] = x
            share[x] = weight[first + x] / s
            d_share[x] = (d_weight[first + x] - share[x] * d_total[k]) / s
        _multiply(start, member, where, resistance, core, first, last, share, v)
        _multiply(start, member, where, resistance, core, first, last, d_share, dv)
        _multiply(start, member, where, d_resistance, d_core, first, last, share, dv)
        d_inner = 0.0
        for x in range(size):
            where[member[first + x]] = -1
            d_inner += d_share[x] * v[x] + share[x] * dv[x]
        for x in range(size):
            d_resistance[first + x] = -d_total[k] / s / s + dv[x] - 0.5 * d_inner
