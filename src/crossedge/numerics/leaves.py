"""Points in small boxes (leaves), so that a search can skip a box without looking inside.

Distances here are reduced: the square for l_2, the distance itself for every other l_p. They order
pairs as distances do, and cost less. `near_pairs` looks inside the boxes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crossedge.numerics.tolerances import TIE
from crossedge.runtime.compiled import compiled
from crossedge.runtime.threads import in_threads
from crossedge.runtime.types import Floats, Ints

Singles = npt.NDArray[np.float32]
Shorts = npt.NDArray[np.int32]

CAPACITY = 64  # points of a leaf: four vectors of sixteen float32
GROUP = 16  # leaves that also share a larger box
SUBTREE = 1 << 16  # points that one thread splits into leaves
BUCKETS = 64  # ranges of distance in which leaves are visited one after the other


class Leaves(NamedTuple):
    """Boxes of CAPACITY points (the last has fewer), stored axis by axis for vector instructions.

    Neighbouring leaves are near each other; every GROUP of consecutive leaves is a box as well.
    """

    points: Floats  # (leaves, d, CAPACITY): coordinates
    ids: Ints  # (leaves, CAPACITY): the index of each point in the sample; -1 if there is none
    low: Floats  # (d, leaves): the lower corner of each box
    high: Floats  # (d, leaves): the upper corner
    group_low: Floats  # (d, groups)
    group_high: Floats  # (d, groups)
    centre: Floats  # (leaves, d): the middle of each box
    scale: Floats  # (leaves,): a power of two that makes (coordinate - centre) at most 1
    half: Singles  # (leaves, d): (upper corner - centre) * scale
    nearby: Singles  # (leaves, d * CAPACITY): (coordinate - centre) * scale, axis by axis


class Filter(NamedTuple):
    """The l_q norm of the first step, with l_q <= factor * l_p."""

    q: float  # 1, 2 or infinity
    factor: float
    p: float


def filter_of(p: float, d: int) -> Filter:
    """Return the norm that bounds l_p in d dimensions from below, and is cheap."""
    if p in (1.0, 2.0, np.inf):
        return Filter(p, 1.0, p)
    if p < 4.0:
        return Filter(2.0, float(d) ** max(0.5 - 1.0 / p, 0.0), p)
    return Filter(np.inf, 1.0, p)


def build_leaves(points: Floats) -> Leaves:
    """Split (n, d) points across the widest axis, again and again, until each part is a leaf."""
    n, d = points.shape
    order = np.arange(n)
    pending: list[tuple[int, int]] = [(0, n)]
    subtrees: list[tuple[int, int]] = []
    while pending:
        parts = in_threads(lambda part: _split(points, order, *part), pending)
        pending = []
        for first, middle, last in parts:
            for part in ((first, middle), (middle, last)):
                (pending if part[1] - part[0] > SUBTREE else subtrees).append(part)
    in_threads(lambda part: _split_all(points, order, *part), subtrees)
    count = -(-n // CAPACITY)
    leaves = Leaves(
        np.empty((count, d, CAPACITY)),
        np.full((count, CAPACITY), -1),
        np.empty((d, count)),
        np.empty((d, count)),
        np.empty((d, -(-count // GROUP))),
        np.empty((d, -(-count // GROUP))),
        np.empty((count, d)),
        np.empty(count),
        np.empty((count, d), np.float32),
        np.empty((count, d * CAPACITY), np.float32),
    )
    in_threads(lambda first: _fill(points, order, first, leaves), range(0, count, 64 * GROUP))
    return leaves


@compiled
def _split(points: Floats, order: Ints, first: int, last: int) -> tuple[int, int, int]:
    """Reorder `order[first:last]` so that the points before the middle are on the lower side.

    The middle is at a border of leaves, so that leaves are full, and of groups where there are two.
    """
    size = -(-(last - first) // CAPACITY)  # in leaves
    if size <= 1:
        return first, last, last
    half = size // 2
    if size >= 2 * GROUP:
        half = half // GROUP * GROUP
    middle = first + half * CAPACITY
    d = points.shape[1]
    low, high = np.full(d, np.inf), np.full(d, -np.inf)
    for place in range(first, last):
        point = order[place]
        for axis in range(d):
            low[axis] = min(low[axis], points[point, axis])
            high[axis] = max(high[axis], points[point, axis])
    widest = 0
    for axis in range(1, d):
        if high[axis] - low[axis] > high[widest] - low[widest]:
            widest = axis
    keys = np.empty(last - first)
    for place in range(first, last):
        keys[place - first] = points[order[place], widest]
    _select(keys, order[first:last], middle - first)
    return first, middle, last


@compiled
def _select(keys: Floats, order: Ints, middle: int) -> None:
    """Reorder keys, and `order` with them, until none before the middle is above any after it."""
    first, last = 0, len(keys) - 1
    while first < last:
        a, b, c = keys[first], keys[(first + last) // 2], keys[last]
        pivot = max(min(a, b), min(max(a, b), c))
        low, high = first, last
        while low <= high:
            while keys[low] < pivot:
                low += 1
            while keys[high] > pivot:
                high -= 1
            if low <= high:
                keys[low], keys[high] = keys[high], keys[low]
                order[low], order[high] = order[high], order[low]
                low += 1
                high -= 1
        if middle <= high:
            last = high
        elif middle >= low:
            first = low
        else:
            return


@compiled
def _split_all(points: Floats, order: Ints, first: int, last: int) -> None:
    """Split a range of points down to leaves."""
    stack = np.empty((64, 2), np.int64)  # a range has at most half the points of the one before
    stack[0, 0], stack[0, 1] = first, last
    height = 1
    while height > 0:
        height -= 1
        first, last = stack[height, 0], stack[height, 1]
        if last - first <= CAPACITY:
            continue
        middle = _split(points, order, first, last)[1]
        stack[height, 0], stack[height, 1] = middle, last
        stack[height + 1, 0], stack[height + 1, 1] = first, middle
        height += 2


@compiled
def _fill(points: Floats, order: Ints, first: int, leaves: Leaves) -> None:
    """Write the leaves of 64 groups, from leaf `first` on."""
    n, d = points.shape
    count = len(leaves.scale)
    for leaf in range(first, min(first + 64 * GROUP, count)):
        size = min(CAPACITY, n - leaf * CAPACITY)
        for slot in range(CAPACITY):
            # places without a point repeat the last one, so that arithmetic on them is harmless
            point = order[leaf * CAPACITY + min(slot, size - 1)]
            if slot < size:
                leaves.ids[leaf, slot] = point
            for axis in range(d):
                leaves.points[leaf, axis, slot] = points[point, axis]
        widest = 0.0
        group = leaf // GROUP
        for axis in range(d):
            low, high = leaves.points[leaf, axis].min(), leaves.points[leaf, axis].max()
            leaves.low[axis, leaf], leaves.high[axis, leaf] = low, high
            leaves.centre[leaf, axis] = low + (high - low) / 2.0
            widest = max(widest, high - low)
            if leaf % GROUP == 0:
                leaves.group_low[axis, group], leaves.group_high[axis, group] = low, high
            leaves.group_low[axis, group] = min(leaves.group_low[axis, group], low)
            leaves.group_high[axis, group] = max(leaves.group_high[axis, group], high)
        scale = 1.0
        if widest > 0.0:
            scale = 2.0 ** min(-np.floor(np.log2(widest)), 1000.0)
        leaves.scale[leaf] = scale
        for axis in range(d):
            to_corner = leaves.high[axis, leaf] - leaves.centre[leaf, axis]
            leaves.half[leaf, axis] = np.float32(to_corner * scale)
            for slot in range(CAPACITY):
                offset = leaves.points[leaf, axis, slot] - leaves.centre[leaf, axis]
                leaves.nearby[leaf, axis * CAPACITY + slot] = np.float32(offset * scale)


def reduced_tie(p: float) -> float:
    """Return the factor within which two reduced distances tie."""
    return TIE * TIE if p == 2 else TIE


@compiled
def reduced_distance(a: Floats, one: int, b: Floats, other: int, p: float) -> float:
    """Return the reduced distance of two columns of (d, m) arrays of points."""
    d = len(a)
    total = 0.0
    if p == 2.0:
        for axis in range(d):
            difference = a[axis, one] - b[axis, other]
            total += difference * difference
        return total
    if p == 1.0:
        for axis in range(d):
            total += abs(a[axis, one] - b[axis, other])
        return total
    for axis in range(d):
        total = max(total, abs(a[axis, one] - b[axis, other]))
    if p == np.inf or total == 0.0:
        return total
    powers = 0.0
    for axis in range(d):  # relative to the largest difference, so that no power overflows
        powers += (abs(a[axis, one] - b[axis, other]) / total) ** p
    return float(total * powers ** (1.0 / p))


@compiled
def reach_in_filter(reduced: float, use: Filter) -> float:
    """Return the l_q distance within which all points of a reduced distance lie."""
    distance = np.sqrt(reduced) if use.p == 2.0 else reduced
    return float(distance * use.factor * (1.0 + 1e-12))  # the factor leaves room for rounding


@compiled
def gaps(
    low: Floats, high: Floats, first: int, last: int, mine: Floats, q: float, out: Floats
) -> None:
    """Write lower bounds on the l_q distance from the box mine[0], mine[1] to boxes first ... last.

    The bounds leave room for rounding, and go to out[first:last]; for l_2 they are squares.
    """
    for box in range(first, last):
        out[box] = 0.0
    for axis in range(len(low)):
        lowest, highest = mine[0, axis], mine[1, axis]
        lows, highs = low[axis], high[axis]
        if q == 2.0:
            for box in range(first, last):
                gap = max(lows[box] - highest, lowest - highs[box], 0.0)
                out[box] += gap * gap
        elif q == 1.0:
            for box in range(first, last):
                out[box] += max(lows[box] - highest, lowest - highs[box], 0.0)
        else:
            for box in range(first, last):
                out[box] = max(out[box], lows[box] - highest, lowest - highs[box])
    for box in range(first, last):
        out[box] *= 1.0 - 1e-12


@compiled
def leaves_within(leaf: int, leaves: Leaves, reach: float, q: float) -> tuple[Ints, Floats]:
    """Return the other leaves within l_q reach of a leaf, and lower bounds on their distances.

    They are roughly in the order of these bounds, which for l_2 are squares.
    """
    d, n_leaves = leaves.low.shape
    mine = np.empty((2, d))
    for axis in range(d):  # assigning slices would compile for seconds
        mine[0, axis], mine[1, axis] = leaves.low[axis, leaf], leaves.high[axis, leaf]
    bound, group_bound = np.empty(n_leaves), np.empty(leaves.group_low.shape[1])
    gaps(leaves.group_low, leaves.group_high, 0, len(group_bound), mine, q, group_bound)
    limit = reach * reach if q == 2.0 else reach
    found = np.empty(n_leaves, np.int64)
    count = 0
    furthest = 0.0
    for group in range(len(group_bound)):
        if group_bound[group] > limit:
            continue
        first, last = group * GROUP, min((group + 1) * GROUP, n_leaves)
        gaps(leaves.low, leaves.high, first, last, mine, q, bound)
        for other in range(first, last):
            found[count] = other
            if bound[other] <= limit and other != leaf:
                furthest = max(furthest, bound[other])
                count += 1
    # by counting, which unlike sorting is linear in their number
    step = BUCKETS / furthest if furthest > 0.0 else 0.0
    begin = np.zeros(BUCKETS + 2, np.int64)
    for place in range(count):
        begin[int(bound[found[place]] * step) + 1] += 1
    for bucket in range(BUCKETS):
        begin[bucket + 1] += begin[bucket]
    order, bounds = np.empty(count, np.int64), np.empty(count)
    for place in range(count):
        bucket = int(bound[found[place]] * step)
        order[begin[bucket]], bounds[begin[bucket]] = found[place], bound[found[place]]
        begin[bucket] += 1
    return order, bounds
