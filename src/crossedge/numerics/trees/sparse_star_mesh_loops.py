"""The loops of sparse_star_mesh.py, over the stars of elimination_order.py.

Vertices are named by their place in the order of elimination. Entry `slot` of the lists stands for
the edge between the vertex of a star and member[slot]. The two other sides of a triangle, a star's
vertex and two of its members a < b, are in the star of a, or in the core; `where` finds them.
"""

from __future__ import annotations

import numpy as np

from crossedge.runtime.compiled import compiled
from crossedge.runtime.types import Floats, Ints


@compiled
def slots(place: Ints, start: Ints, member: Ints, first: Ints, second: Ints) -> Ints:
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
def take_out(
    start: Ints, member: Ints, where: Ints, weight: Floats, total: Floats, core: Floats
) -> None:
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
def bring_back(
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
def take_out_tangent(
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
def bring_back_tangent(
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
