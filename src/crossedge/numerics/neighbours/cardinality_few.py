"""The model of cardinality.py for small k, with loops along a row for vector instructions.

Start from the k nearest points. Let a_l be the odds of leaving the l-th of them, and w_i those of
taking the far point i, both at most 1. Let A and B be the elementary symmetric polynomials of a and
w. The weight of all choices of j items, near or far, and the normaliser are

    E_j = sum_l A_{k-l} B_{j-l},     Z = E_k.

A far point is divided out again, in j + 1 steps instead of a sweep over all others:

    E_j(without i) = E_j - w_i E_{j-1}(without i),     P(i chosen) = w_i E_{k-1}(without i) / Z.

The subtracted term is at most j times the remainder: at least j points have more weight than i, and
one of them can take its place in each set that i would complete. So little cancels. `_is_safe`
bounds the loss; where k is not small against n and points tie, the row is left to the sweeps of
cardinality.py. For the k nearest, division is not safe: there the other k - 1 factors are
multiplied out anew.
"""

from __future__ import annotations

import numpy as np

from crossedge.numerics.extent import ends_of_bits
from crossedge.numerics.neighbours.cardinality import choose_marginals, choose_tangent
from crossedge.runtime.compiled import compiled_fused
from crossedge.runtime.types import Floats, Ints

LANES = 64  # parts of a row that are multiplied out side by side
SWEEP = 4 * LANES  # entries of a row that are multiplied out in registers, if k is at most three
LARGEST_ERROR = 1e4  # of a division, relative, in units of rounding
LARGEST = float(np.finfo(np.float64).max)  # finite, unlike infinity, so that 0 times it is 0


@compiled_fused
def choose_few(
    first: int,
    last: int,
    distances: Floats,
    decay: Floats,
    kth: Floats,
    nearest: Ints,
    out: Floats,
) -> None:
    """Write P(chosen) for rows first ... last - 1 of (n, n) distances."""
    n, k = nearest.shape
    whole = (n + SWEEP - 1) // SWEEP * SWEEP
    far, rest = np.zeros(whole), np.empty(whole)
    parts = np.empty((max(k, 3) + 1, LANES))
    a, near, others = np.empty(k), np.empty(k + 1), np.empty(k + 1)
    both = np.empty(k + 1)
    for row in range(first, last):
        _far_and_near(row, decay, nearest, far, a)
        _multiply_out(far, parts)
        _near_product(a, -1, near)
        _convolve(near, parts, both)
        if not _is_safe(far, both):
            choose_marginals(row, row + 1, distances, decay, kth, k, out)
            continue
        z = both[k]
        rest[:] = both[0]
        for j in range(1, k):
            _take_out(far, both[j], rest)
        target = out[row]
        for i in range(len(target)):
            target[i] = far[i] * rest[i] / z
        for place in range(k):
            _near_product(a, place, others)
            chosen = 0.0
            for j in range(k):
                chosen += others[j] * parts[j, 0]
            target[nearest[row, place]] = chosen / z


@compiled_fused
def choose_few_tangent(
    first: int,
    last: int,
    distances: Floats,
    decay: Floats,
    kth: Floats,
    nearest: Ints,
    direction: Floats,
    temperature: float,
    out: Floats,
) -> None:
    """Write the change of P(chosen) along a (last - first, n) direction of the distances.

    The direction at the nearest point is subtracted from all: a common shift changes nothing.
    """
    n, k = nearest.shape
    whole = (n + SWEEP - 1) // SWEEP * SWEEP
    far, rest, d_far, d_rest = np.zeros(whole), np.empty(whole), np.zeros(whole), np.empty(whole)
    parts, d_parts = np.empty((max(k, 3) + 1, LANES)), np.empty((max(k, 3) + 1, LANES))
    a, near, others, both = np.empty(k), np.empty(k + 1), np.empty(k + 1), np.empty(k + 1)
    c, d_near, d_others, d_both = np.empty(k), np.empty(k + 1), np.empty(k + 1), np.empty(k + 1)
    part = np.empty(k + 1)
    per = max(-1.0 / temperature, -LARGEST)
    for row in range(first, last):
        along, target = direction[row - first], out[row]
        _far_and_near(row, decay, nearest, far, a)
        zero = along[nearest[row, 0]]
        for place in range(k):
            c[place] = along[nearest[row, place]] - zero
        for i in range(len(along)):
            d_far[i] = far[i] * (along[i] - zero)
        _multiply_out_dual(far, d_far, parts, d_parts)
        _near_product_dual(a, c, -1, near, d_near)
        _convolve(near, parts, both)
        _convolve(d_near, parts, d_both)
        _convolve(near, d_parts, part)
        d_both += part
        if not _is_safe(far, both):
            choose_tangent(
                row,
                row + 1,
                distances,
                decay,
                kth,
                k,
                direction[row - first : row - first + 1],
                out,
            )
            for i in range(len(target)):
                target[i] *= per
            continue
        z, slope = both[k], d_both[k] / both[k]
        rest[:] = both[0]
        d_rest[:] = d_both[0]
        for j in range(1, k):
            _take_out_dual(far, d_far, both[j], d_both[j], rest, d_rest)
        scale = max(per / z, -LARGEST)
        for i in range(len(target)):
            target[i] = (d_far[i] * rest[i] + far[i] * (d_rest[i] - rest[i] * slope)) * scale
        for place in range(k):
            _near_product_dual(a, c, place, others, d_others)
            x, dx, y, dy = 0.0, 0.0, 0.0, 0.0
            for j in range(k):
                x += others[j] * parts[j, 0]
                dx += d_others[j] * parts[j, 0] + others[j] * d_parts[j, 0]
                y += others[j] * parts[j + 1, 0]
                dy += d_others[j] * parts[j + 1, 0] + others[j] * d_parts[j + 1, 0]
            change = c[place] * x * y + (dx * y - x * dy)
            target[nearest[row, place]] = a[place] * change / z * scale


@compiled_fused
def _far_and_near(row: int, decay: Floats, nearest: Ints, far: Floats, a: Floats) -> None:
    """Write the odds w of one row to `far`, 0 for the k nearest, and theirs to `a`."""
    source = decay[row]
    for i in range(len(source)):
        far[i] = source[i]
    far[row] = 0.0  # never its own neighbour
    for place in range(len(a)):
        at = nearest[row, place]
        a[place] = source[at]
        far[at] = 0.0


@compiled_fused
def _multiply_out(w: Floats, parts: Floats) -> None:
    """Write the j-th elementary symmetric polynomial of w to parts[j, 0]."""
    k, lanes = len(parts) - 1, parts.shape[1]
    parts[:] = 0.0
    parts[0] = 1.0
    for at in range(0, len(w) if k == 3 else 0, SWEEP):
        _raise_three(w[at : at + SWEEP].reshape(4, LANES), parts[3], parts[2], parts[1])
    for at in range(0, len(w) if k > 3 else 0, lanes):
        fresh = w[at : at + lanes]
        for j in range(k, 0, -1):
            more, less = parts[j], parts[j - 1]
            for lane in range(len(fresh)):
                more[lane] += less[lane] * fresh[lane]
    half = lanes // 2
    while half >= 1:
        for j in range(k, 0, -1):
            target, other = parts[j, :half], parts[j, half : 2 * half]
            for lane in range(len(target)):
                target[lane] += other[lane]
            for i in range(1, j):
                x, y = parts[j - i, :half], parts[i, half : 2 * half]
                for lane in range(len(target)):
                    target[lane] += x[lane] * y[lane]
        half //= 2


@compiled_fused
def _multiply_out_dual(w: Floats, dw: Floats, parts: Floats, d_parts: Floats) -> None:
    """Write the same and its tangent along dw."""
    k, lanes = len(parts) - 1, parts.shape[1]
    parts[:] = 0.0
    d_parts[:] = 0.0
    parts[0] = 1.0
    for at in range(0, len(w) if k == 3 else 0, SWEEP):
        sweep = w[at : at + SWEEP].reshape(4, LANES), dw[at : at + SWEEP].reshape(4, LANES)
        levels = parts[3], parts[2], parts[1], d_parts[3], d_parts[2], d_parts[1]
        _raise_three_dual(*sweep, *levels)
    for at in range(0, len(w) if k > 3 else 0, lanes):
        fresh, d_fresh = w[at : at + lanes], dw[at : at + lanes]
        for j in range(k, 0, -1):
            more, less, d_more, d_less = parts[j], parts[j - 1], d_parts[j], d_parts[j - 1]
            for lane in range(len(fresh)):
                d_more[lane] += d_less[lane] * fresh[lane] + less[lane] * d_fresh[lane]
                more[lane] += less[lane] * fresh[lane]
    half = lanes // 2
    while half >= 1:
        for j in range(k, 0, -1):
            target, other = parts[j, :half], parts[j, half : 2 * half]
            d_target, d_other = d_parts[j, :half], d_parts[j, half : 2 * half]
            for lane in range(len(target)):
                target[lane] += other[lane]
                d_target[lane] += d_other[lane]
            for i in range(1, j):
                x, y = parts[j - i, :half], parts[i, half : 2 * half]
                dx, dy = d_parts[j - i, :half], d_parts[i, half : 2 * half]
                for lane in range(len(target)):
                    target[lane] += x[lane] * y[lane]
                for lane in range(len(target)):
                    d_target[lane] += dx[lane] * y[lane] + x[lane] * dy[lane]
        half //= 2


@compiled_fused
def _raise_three(w: Floats, third: Floats, second: Floats, first: Floats) -> None:
    """Multiply the polynomials of each lane, up to degree three, by four factors 1 + w."""
    for lane in range(len(third)):
        c, b, a = third[lane], second[lane], first[lane]
        for at in range(4):
            fresh = w[at, lane]
            c += b * fresh
            b += a * fresh
            a += fresh
        third[lane], second[lane], first[lane] = c, b, a


@compiled_fused
def _raise_three_dual(
    w: Floats,
    dw: Floats,
    third: Floats,
    second: Floats,
    first: Floats,
    d_third: Floats,
    d_second: Floats,
    d_first: Floats,
) -> None:
    """Do the same, with tangents."""
    for lane in range(len(third)):
        c, b, a = third[lane], second[lane], first[lane]
        dc, db, da = d_third[lane], d_second[lane], d_first[lane]
        for at in range(4):
            fresh, d_fresh = w[at, lane], dw[at, lane]
            dc += db * fresh + b * d_fresh
            c += b * fresh
            db += da * fresh + a * d_fresh
            b += a * fresh
            da += d_fresh
            a += fresh
        third[lane], second[lane], first[lane] = c, b, a
        d_third[lane], d_second[lane], d_first[lane] = dc, db, da


@compiled_fused
def _near_product(a: Floats, without: int, out: Floats) -> None:
    """Write the elementary symmetric polynomials of a, leaving out one entry (none if -1)."""
    out[:] = 0.0
    out[0] = 1.0
    for place in range(len(a)):
        if place != without:
            for j in range(len(a), 0, -1):
                out[j] += out[j - 1] * a[place]


@compiled_fused
def _near_product_dual(a: Floats, c: Floats, without: int, out: Floats, d_out: Floats) -> None:
    """Write the same and its tangent: a moves along -c, since leaving is the opposite of taking."""
    out[:] = 0.0
    d_out[:] = 0.0
    out[0] = 1.0
    for place in range(len(a)):
        if place != without:
            for j in range(len(a), 0, -1):
                d_out[j] += (d_out[j - 1] - out[j - 1] * c[place]) * a[place]
                out[j] += out[j - 1] * a[place]


@compiled_fused
def _convolve(near: Floats, parts: Floats, out: Floats) -> None:
    """Write E_j, the weight of choosing j items, of which l are near."""
    k = len(out) - 1
    for j in range(k + 1):
        out[j] = 0.0
        for at in range(j + 1):
            out[j] += near[k - at] * parts[j - at, 0]


@compiled_fused
def _is_safe(far: Floats, both: Floats) -> bool:
    """Return whether the heaviest far point can be divided out with little rounding error."""
    most = np.int64(ends_of_bits(far.view(np.int64))[1]).view(np.float64)  # none is negative
    rest, error = both[0], 1.0
    for j in range(1, len(both) - 1):
        less = most * rest
        rest = both[j] - less
        if rest > 0.0:
            error = (both[j] + less * error) / rest
        elif both[j] > 0.0:
            return False
    return error < LARGEST_ERROR


@compiled_fused
def _take_out(far: Floats, both: float, rest: Floats) -> None:
    for i in range(len(rest)):
        rest[i] = both - far[i] * rest[i]


@compiled_fused
def _take_out_dual(
    far: Floats, d_far: Floats, both: float, d_both: float, rest: Floats, d_rest: Floats
) -> None:
    for i in range(len(rest)):
        d_rest[i] = d_both - far[i] * d_rest[i] - d_far[i] * rest[i]
        rest[i] = both - far[i] * rest[i]
