"""The compiled loops of star_mesh.py, for a panel of vertices start ... stop - 1.

Matrices are contiguous, with n rows and more than n columns, of which the first n are used. The
spare columns keep rows from being a power of two apart, where they would compete for cache lines.

Rows are treated two at a time, so that each number read serves both: a third of the time is saved.
Small copies have a spare row at the end, for the partner that the last row may lack.
"""

from __future__ import annotations

import numpy as np

from crossedge.numerics.mirror import mirrored
from crossedge.runtime.compiled import compiled, compiled_fused
from crossedge.runtime.types import Floats


@compiled
def eliminate(
    weight: Floats, total: Floats, outer: Floats, ladder: Floats, start: int, stop: int
) -> None:
    """Take out the vertices of a panel, last first, as far as its own rows are concerned.

    Row i gains share_ki times row k from every later k. Here this is done inside the panel, where
    all vertices before it count as one. Left of the panel, rows A become A + ladder A: `ladder`,
    (I - gain)^-1 - I, sums up the gains of gains, from positive numbers only.
    """
    size = stop - start
    inside = _zeros(size)  # column 0: all vertices before the panel
    gain = _zeros(size)  # share_ki at i, k
    for k in range(size):
        row = weight[start + k]
        inside[k, 0] = _sum(row[:start])
        inside[k, 1 : k + 1] = row[start : start + k]
    for i in range(size - 1, -1, -2):
        _add_two(inside[i], inside[i - 1], gain[i], gain[i - 1], inside, i + 1, size, i + 1)
        for k in range(i, max(i - 2, -1), -1):
            if k < i:
                _add_one(inside[k], gain[k, i], inside[i], k + 1)
            s = _sum(inside[k, : k + 1])
            s = s if s > 0 else 1.0  # the first vertex of all has nobody left
            total[start + k] = s
            outer[start + k] = inside[k, 0] / s
            for j in range(k):
                gain[j, k] = inside[k, j + 1] / s
                weight[start + k, start + j] = inside[k, j + 1]
    if start:
        steps = gain.copy()
        for i in range(size - 1, -1, -2):
            _add_two(steps[i], steps[i - 1], gain[i], gain[i - 1], steps, i + 1, size, size)
            _add_one(steps[i - 1], gain[i - 1, i], steps[i], size)
        ladder[start:stop, :size] = steps[:size, :size]


@compiled
def eliminate_tangent(
    share: Floats,
    outer: Floats,
    d_weight: Floats,
    d_total: Floats,
    d_gain: Floats,
    start: int,
    stop: int,
) -> None:
    """Take out the tangent of a panel, where d_gain_ik = dw_ki - share_ki ds_k.

    So w_k d share_ki = d_gain_ik share_k. Left of the panel, rows dA become
    (I + ladder) (dA + d_gain p).
    """
    size = stop - start
    inside, d_inside, gain = _zeros(size), _zeros(size), _zeros(size)
    d_gain[:] = 0.0
    for k in range(size):
        row, d_row = share[start + k], d_weight[start + k]
        inside[k, 0] = outer[start + k]
        inside[k, 1 : k + 1] = row[start : start + k]
        gain[:k, k] = row[start : start + k]
        d_inside[k, 0] = _sum(d_row[:start])
        d_inside[k, 1 : k + 1] = d_row[start : start + k]
    for i in range(size - 1, -1, -2):
        after, width = i + 1, i + 1
        one, other = d_inside[i], d_inside[i - 1]
        _add_two(one, other, gain[i], gain[i - 1], d_inside, after, size, width)
        _add_two(one, other, d_gain[i], d_gain[i - 1], inside, after, size, width)
        for k in range(i, max(i - 2, -1), -1):
            if k < i:
                _add_one(d_inside[k], gain[k, i], d_inside[i], k + 1)
                _add_one(d_inside[k], d_gain[k, i], inside[i], k + 1)
            ds = _sum(d_inside[k, : k + 1])
            d_total[start + k] = ds
            for j in range(k):
                d_gain[j, k] = d_inside[k, j + 1] - inside[k, j + 1] * ds
                d_weight[start + k, start + j] = d_inside[k, j + 1]


@compiled
def rebuild(
    share: Floats,
    total: Floats,
    outer: Floats,
    across: Floats,
    resistance: Floats,
    start: int,
    stop: int,
) -> None:
    """Bring back the vertices of a panel, in order, given across = p a' over earlier vertices.

    With offset_k = 1/s_k - (p_k . v_k) / 2, the level of k is offset_k + sum_i p_ki level_i.
    """
    size = stop - start
    inner = _inner(share, start, stop)
    inside, level = _zeros(size), np.zeros(size + 1)
    v = np.zeros((2, inside.shape[1]))
    for k in range(0, size, 2):
        for one in range(k, min(k + 2, size)):
            for j in range(one):
                v[one - k, j] = across[one, j] + outer[start + one] * level[j]
        _add_two(v[0], v[1], inner[k], inner[k + 1], inside, 0, k, k)
        for one in range(k, min(k + 2, size)):
            p, potential = inner[one], v[one - k]
            if one > k:
                _add_one(potential, p[k], inside[k], k)
                potential[k] = (
                    across[one, k] + outer[start + one] * level[k] + _dot(p, inside[k], k)
                )
            above = _dot(p, level, one)
            product = across[one, one] + outer[start + one] * above + _dot(p, potential, one)
            offset = 1.0 / total[start + one] - 0.5 * product
            if start + one == 0:
                offset = 0.0
            level[one] = above + offset
            for j in range(one):
                inside[one, j] = potential[j] + offset
                inside[j, one] = inside[one, j]
    _finish(inside, level, resistance, start, stop)


@compiled
def rebuild_tangent(
    share: Floats,
    d_share: Floats,
    total: Floats,
    d_total: Floats,
    outer: Floats,
    d_across: Floats,
    resistance: Floats,
    d_resistance: Floats,
    start: int,
    stop: int,
) -> None:
    """Bring back the tangent: d(p . v) = p . dv + dp . R_k, as the changes of shares sum to 0."""
    size = stop - start
    inner, d_inner = _inner(share, start, stop), _inner(d_share, start, stop)
    inside, d_inside = _zeros(size), _zeros(size)
    for k in range(size):
        inside[k, :size] = resistance[start + k, start:stop]
    d_level = np.zeros(size + 1)
    dv = np.zeros((2, inside.shape[1]))
    for k in range(0, size, 2):
        for one in range(k, min(k + 2, size)):
            for j in range(one):
                dv[one - k, j] = d_across[one, j] + outer[start + one] * d_level[j]
        _add_two(dv[0], dv[1], inner[k], inner[k + 1], d_inside, 0, k, k)
        _add_two(dv[0], dv[1], d_inner[k], d_inner[k + 1], inside, 0, k, k)
        for one in range(k, min(k + 2, size)):
            p, dp, d_potential = inner[one], d_inner[one], dv[one - k]
            if one > k:
                _add_one(d_potential, p[k], d_inside[k], k)
                _add_one(d_potential, dp[k], inside[k], k)
                d_potential[k] = (d_across[one, k] + outer[start + one] * d_level[k]) + (
                    _dot(p, d_inside[k], k) + _dot(dp, inside[k], k)
                )
            d_above = _dot(p, d_level, one)
            d_product = (d_across[one, one] + outer[start + one] * d_above) + (
                _dot(p, d_potential, one) + _dot(dp, inside[one], one)
            )
            s = total[start + one]
            d_offset = -d_total[start + one] / s / s - 0.5 * d_product  # s * s could underflow
            d_level[one] = d_above + d_offset
            for j in range(one):
                d_inside[one, j] = d_potential[j] + d_offset
                d_inside[j, one] = d_inside[one, j]
    _finish(d_inside, d_level, d_resistance, start, stop)


@compiled
def _zeros(size: int) -> Floats:
    """Return zeros with a spare row, and spare columns for `_add_two`."""
    return np.zeros((size + 1, (size + 8) // 8 * 8))


@compiled
def _inner(share: Floats, start: int, stop: int) -> Floats:
    """Return the shares inside the panel, with a spare row."""
    size = stop - start
    inner = _zeros(size)
    for k in range(size):
        inner[k, :k] = share[start + k, start : start + k]
    return inner


@compiled
def _finish(inside: Floats, level: Floats, resistance: Floats, start: int, stop: int) -> None:
    """Write the rows of the panel, and the columns that mirror them."""
    for k in range(start, stop):
        resistance[k, start:stop] = inside[k - start, : stop - start]
    for k in range(start, stop):
        row = resistance[k, :start]
        for j in range(len(row)):
            row[j] += level[k - start]
    mirrored(resistance, 0, start, start, stop, resistance[:, start:stop])


@compiled_fused
def _add_two(
    one: Floats,
    other: Floats,
    factor: Floats,
    other_factor: Floats,
    rows: Floats,
    first: int,
    last: int,
    width: int,
) -> None:
    """Add to `one` the sum of factor[k] rows[k] for k = first ... last - 1; `other` likewise."""
    one, other = one[:width], other[:width]
    for k in range(first, last):
        row, f, g = rows[k, :width], factor[k], other_factor[k]
        for j in range(width):
            one[j] += f * row[j]
            other[j] += g * row[j]


@compiled
def _add_one(target: Floats, factor: float, row: Floats, width: int) -> None:
    target = target[:width]
    for j in range(len(target)):
        target[j] += factor * row[j]


@compiled
def _dot(a: Floats, b: Floats, width: int) -> float:
    """Return a dot product by eight partial sums, for vector instructions."""
    a, b = a[:width], b[:width]
    s0, s1, s2, s3, s4, s5, s6, s7 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    whole = len(a) // 8 * 8
    for j in range(0, whole, 8):
        s0 += a[j] * b[j]
        s1 += a[j + 1] * b[j + 1]
        s2 += a[j + 2] * b[j + 2]
        s3 += a[j + 3] * b[j + 3]
        s4 += a[j + 4] * b[j + 4]
        s5 += a[j + 5] * b[j + 5]
        s6 += a[j + 6] * b[j + 6]
        s7 += a[j + 7] * b[j + 7]
    total = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))
    for j in range(whole, len(a)):
        total += a[j] * b[j]
    return total


@compiled
def _sum(a: Floats) -> float:
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    whole = len(a) // 4 * 4
    for j in range(0, whole, 4):
        s0 += a[j]
        s1 += a[j + 1]
        s2 += a[j + 2]
        s3 += a[j + 3]
    total = (s0 + s1) + (s2 + s3)
    for j in range(whole, len(a)):
        total += a[j]
    return total
