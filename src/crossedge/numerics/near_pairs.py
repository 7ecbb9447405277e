"""The pairs of points of two leaves that are near each other.

A search has two steps. The first works in float32, which is fast, on coordinates relative to the
centre of a leaf; it passes all pairs that could be near enough, and perhaps a few more. The second
computes the distances of these pairs in float64. Rounding in the first step is bounded here, so the
result is that of float64 throughout.
"""

from __future__ import annotations

import numpy as np

from crossedge.numerics.leaves import CAPACITY, Leaves, Shorts, Singles
from crossedge.runtime.compiled import compiled, compiled_fused
from crossedge.runtime.types import Floats

ROWS = 4  # points whose distances to a leaf are computed together
UNIT = 2.0**-24  # the relative rounding of float32

Scratch = tuple[Singles, Singles, Singles, Singles, Shorts, Shorts, Shorts]


@compiled
def scratch_for(d: int) -> Scratch:
    """Return the space that `near_pairs` needs; the last two arrays receive its pairs."""
    return (
        np.empty(d * CAPACITY, np.float32),  # points of a leaf, relative to another leaf
        np.empty(CAPACITY, np.float32),  # their distance to its box
        np.empty(CAPACITY, np.float32),  # the largest distance that matters
        np.empty(ROWS * CAPACITY, np.float32),  # distances of a few points to all in the leaf
        np.empty(CAPACITY + ROWS, np.int32),  # slots that are near enough to the box
        np.empty(CAPACITY * CAPACITY, np.int32),
        np.empty(CAPACITY * CAPACITY, np.int32),
    )


@compiled
def near_pairs(
    leaf: int, other: int, leaves: Leaves, reach: Floats, q: float, scratch: Scratch
) -> int:
    """Find the pairs of a slot of `leaf` and a place of `other` within l_q reach; return how many.

    reach[slot] < 0 leaves a slot out. All pairs within reach are there, and perhaps a few others,
    among them places without a point.

    Relative to the centre c of the other leaf, and scaled, a point a of the leaf and a point b of
    the other become a' = a - c and b' = b - c, |b'_i| <= 1, each rounded to float32 with a relative
    error of u = UNIT. So |a' - b'| is found up to u (|a'| + |b'| + |a' - b'|), which is at most
    2 u (|a' - b'| + |b'|), and |b'| <= |(1 ... 1)|. Sums and squares add a relative error of up to
    (d + 2) u. The same holds for the distance from a' to the box. Limits have four times that.
    """
    moved, gap, limit, block, active, slots, places = scratch
    d, m = leaves.centre.shape[1], len(gap)  # m is CAPACITY, not unrolled
    size = np.sqrt(np.float64(d)) if q == 2.0 else (np.float64(d) if q == 1.0 else 1.0)
    scale = leaves.scale[other]
    rounding = 1.0 + 4.0 * (d + 4) * UNIT
    for slot in range(m):
        gap[slot] = np.float32(0.0)
        most = reach[slot] * scale * (1.0 + 8.0 * UNIT) + 8.0 * UNIT * size
        most = most * most if q == 2.0 else most
        limit[slot] = np.float32(most * rounding) if reach[slot] >= 0.0 else np.float32(-1.0)
    for axis in range(d):
        centre = leaves.centre[other, axis]
        half = leaves.half[other, axis]
        coordinate = leaves.points[leaf, axis]
        along = moved[axis * CAPACITY : (axis + 1) * CAPACITY]
        if q == 2.0:
            for slot in range(m):
                offset = np.float32((coordinate[slot] - centre) * scale)
                along[slot] = offset
                beyond = max(abs(offset) - half, np.float32(0.0))
                gap[slot] += beyond * beyond
        elif q == 1.0:
            for slot in range(m):
                offset = np.float32((coordinate[slot] - centre) * scale)
                along[slot] = offset
                gap[slot] += max(abs(offset) - half, np.float32(0.0))
        else:
            for slot in range(m):
                offset = np.float32((coordinate[slot] - centre) * scale)
                along[slot] = offset
                gap[slot] = max(gap[slot], abs(offset) - half)
    near = 0
    for slot in range(m):
        active[near] = slot
        near += gap[slot] <= limit[slot]
    for place in range(near, near + ROWS):
        active[place] = active[max(near - 1, 0)]
    points = leaves.nearby[other]
    count = 0
    for first in range(0, near, ROWS):
        rows = active[first : first + ROWS]
        if q == 2.0:
            _squares(points, moved, rows, d, m, block)
        else:
            _sums(points, moved, rows, d, m, q, block)
        for row in range(min(ROWS, near - first)):
            slot, distance = rows[row], block[row * CAPACITY : (row + 1) * CAPACITY]
            most = limit[slot]
            if _any_within(distance, most, m):  # rare, once the nearest leaves are done
                for place in range(m):
                    if distance[place] <= most:
                        slots[count] = slot
                        places[count] = place
                        count += 1
    return count


@compiled
def _any_within(distance: Singles, limit: float, m: int) -> bool:
    """Return whether one of m distances is within the limit, by four vectors at a time."""
    quarter = m // 4
    within = 0
    for place in range(quarter):
        a, b = distance[place], distance[place + CAPACITY // 4]
        c, e = distance[place + CAPACITY // 2], distance[place + 3 * CAPACITY // 4]
        within += min(min(a, b), min(c, e)) <= limit
    return within > 0


@compiled_fused
def _squares(points: Singles, moved: Singles, rows: Shorts, d: int, m: int, out: Singles) -> None:
    """Write the squared distances from four points of `moved` to all points of a leaf.

    Four points together and two axes at a time: few passes over `out`, many uses of what is loaded.
    """
    i, j, k, o = rows[0], rows[1], rows[2], rows[3]
    odd = d % 2
    if odd:
        a, b, c, e = moved[i], moved[j], moved[k], moved[o]
        for place in range(m):
            x = points[place]
            out[place] = (x - a) * (x - a)
            out[place + CAPACITY] = (x - b) * (x - b)
            out[place + 2 * CAPACITY] = (x - c) * (x - c)
            out[place + 3 * CAPACITY] = (x - e) * (x - e)
    else:
        for place in range(ROWS * m):
            out[place] = np.float32(0.0)
    for axis in range(odd, d, 2):
        here = moved[axis * CAPACITY : (axis + 2) * CAPACITY]
        there = points[axis * CAPACITY : (axis + 2) * CAPACITY]
        a, b, c, e = here[i], here[j], here[k], here[o]
        a2, b2 = here[i + CAPACITY], here[j + CAPACITY]
        c2, e2 = here[k + CAPACITY], here[o + CAPACITY]
        for place in range(m):
            x, y = there[place], there[place + CAPACITY]
            out[place] += (x - a) * (x - a) + (y - a2) * (y - a2)
            out[place + CAPACITY] += (x - b) * (x - b) + (y - b2) * (y - b2)
            out[place + 2 * CAPACITY] += (x - c) * (x - c) + (y - c2) * (y - c2)
            out[place + 3 * CAPACITY] += (x - e) * (x - e) + (y - e2) * (y - e2)


@compiled
def _sums(
    points: Singles, moved: Singles, rows: Shorts, d: int, m: int, q: float, out: Singles
) -> None:
    """Write the l_1 or l_inf distances from four points of `moved` to all points of a leaf."""
    for place in range(ROWS * m):
        out[place] = np.float32(0.0)
    for axis in range(d):
        there = points[axis * CAPACITY : (axis + 1) * CAPACITY]
        for row in range(ROWS):
            a = moved[axis * CAPACITY + rows[row]]
            distance = out[row * CAPACITY : (row + 1) * CAPACITY]
            if q == 1.0:
                for place in range(m):
                    distance[place] += abs(there[place] - a)
            else:
                for place in range(m):
                    distance[place] = max(distance[place], abs(there[place] - a))
