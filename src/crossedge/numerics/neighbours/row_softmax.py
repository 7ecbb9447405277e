"""The smoothed nearest neighbour in compiled loops: row by row a softmax, and symmetric weights."""

from __future__ import annotations

import numpy as np

from crossedge.numerics.exponential import LOG2_E, LOWEST_POWER, decay_of, half_to
from crossedge.numerics.extent import ends_of_bits, is_odd
from crossedge.numerics.mirror import SIDE, add_mirror, mirrored
from crossedge.numerics.neighbours.cardinality import LARGEST, LEAST_POSITIVE
from crossedge.numerics.tolerances import COLD, TIE
from crossedge.runtime.compiled import compiled, compiled_fused, compiled_sum
from crossedge.runtime.types import Bools, Floats, Ints

CHUNK = 64  # entries of a row that are searched together
CACHED_ROWS = 32  # of the gradient, worked on together: they stay in the cache
ONE_BITS = np.float64(1).view(np.int64)  # of the decay at the least distance


@compiled
def softmax_rows(
    first: int,
    last: int,
    distances: Floats,
    temperature: float,
    odd: Bools,
    total: Floats,
    nearest: Ints,
    decay: Floats,
) -> None:
    """Write e^(-(d - least)/temperature) for rows first ... last - 1, with 0 on the diagonal.

    Also write the sum of each row and its point at the least distance. A negative number, infinity
    or NaN among the distances sets odd[0]: see extent.py.
    """
    per = min(1.0 / max(temperature, LEAST_POSITIVE), LARGEST)
    for i in range(first, last):
        row, target = distances[i], decay[i]
        zero, most, is_odd = _ends(row, i)
        if is_odd:
            odd[0] = True
        if temperature <= COLD * zero:
            _decay(row, zero, per, (TIE - 1) * zero, target)
            total[i] = _sum(target)
        elif per > LARGEST / 2 or (most - zero) * per > LOWEST_POWER / LOG2_E:
            _decay(row, zero, per, 0.0, target)
            total[i] = _sum(target)
        else:
            total[i] = _decay_of_near(row, zero, per * LOG2_E, target)
        total[i] -= target[i]  # at most 1, while the others sum to at least 1
        target[i] = 0.0
        nearest[i] = place_of(ONE_BITS, target.view(np.int64))


@compiled
def _ends(row: Floats, itself: int) -> tuple[float, float, bool]:
    """Return the least of the other entries, the most of all, and whether one is not a distance."""
    bits = row.view(np.int64)
    least, most = ends_of_bits(bits[:itself])
    least_after, most_after = ends_of_bits(bits[itself + 1 :])
    least, most = min(least, least_after), max(max(most, most_after), bits[itself])
    odd = is_odd(min(least, bits[itself]), most)
    return np.int64(least).view(np.float64), np.int64(most).view(np.float64), odd


@compiled_fused
def _decay(row: Floats, zero: float, per: float, blur: float, out: Floats) -> None:
    """Write e^(-(d - zero) per); gaps of at most `blur` count as ties, with a decay of 1."""
    for j in range(len(row)):
        gap = row[j] - zero
        out[j] = decay_of((gap if gap > blur else 0.0) * per)


@compiled_sum
def _decay_of_near(row: Floats, zero: float, per: float, out: Floats) -> float:
    """Write the same and return its sum, where nothing underflows: a third faster."""
    total = 0.0
    for j in range(len(row)):
        out[j] = half_to(max(row[j] - zero, 0.0) * per)
        total += out[j]
    return total


@compiled_sum
def _sum(row: Floats) -> float:
    total = 0.0
    for j in range(len(row)):
        total += row[j]
    return total


@compiled
def softmax_weights(first: int, last: int, total: Floats, decay: Floats, out: Floats) -> None:
    """Write W_ij = P(j chosen by i) + P(i chosen by j).

    This is for rows first ... last - 1 up to the diagonal, and for their mirror image.
    """
    share, tile = 1.0 / total, np.empty((SIDE, SIDE))
    for top in range(first, last, SIDE):
        bottom = min(top + SIDE, last)
        for left in range(0, bottom, SIDE):
            right = min(left + SIDE, bottom)
            _weights_of_tile(top, bottom, left, right, share, decay, tile, out)
            if left < top:
                _weights_of_tile(left, right, top, bottom, share, decay, tile, out)


@compiled
def _weights_of_tile(
    top: int,
    bottom: int,
    left: int,
    right: int,
    share: Floats,
    decay: Floats,
    tile: Floats,
    out: Floats,
) -> None:
    mirrored(decay, top, bottom, left, right, tile)
    for i in range(top, bottom):
        target, source = out[i, left:right], decay[i, left:right]
        other, other_share = tile[i - top], share[left:right]
        for j in range(len(target)):
            target[j] = source[j] * share[i] + other[j] * other_share[j]


@compiled
def softmax_pull_back(
    first: int,
    last: int,
    temperature: float,
    total: Floats,
    nearest: Ints,
    decay: Floats,
    gradient: Floats,
    out: Floats,
) -> None:
    """Write the gradient in the distances, given that in the weights, for rows first ... last - 1.

    The direction at the nearest point is subtracted from all, so that nothing cancels where that
    point has all the weight.
    """
    n = len(total)
    direction = np.empty((min(CACHED_ROWS, last - first), n))
    for top in range(first, last, CACHED_ROWS):
        bottom = min(top + CACHED_ROWS, last)
        add_mirror(gradient, top, bottom, direction)
        for i in range(top, bottom):
            c, e, target = direction[i - top], decay[i], out[i]
            c[i] = 0.0  # W has no diagonal
            zero = c[nearest[i]]
            mean = _moment(e, c, zero) / total[i]
            scale = min(1.0 / total[i] / temperature, LARGEST)
            for j in range(n):
                target[j] = e[j] * (mean - (c[j] - zero)) * scale


@compiled
def place_of(value: np.int64, row: Ints) -> int:
    """Return the first place of a value; 0 if it is absent, as it may be in invalid distances."""
    for first in range(0, len(row), CHUNK):
        part, found = row[first : first + CHUNK], 0
        for j in range(len(part)):
            found += part[j] == value
        if found > 0:
            for j in range(len(part)):
                if part[j] == value:
                    return first + j
    return 0


@compiled_sum
def _moment(weight: Floats, value: Floats, zero: float) -> float:
    total = 0.0
    for j in range(len(weight)):
        total += weight[j] * (value[j] - zero)
    return total
