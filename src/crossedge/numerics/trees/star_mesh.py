"""Star-mesh elimination: marginals of random spanning trees from positive numbers only.

A vertex k with conductances w_kj, whose sum is s_k, can be taken out of a network when every pair
i, j of its neighbours gains w_ki w_kj / s_k: the star becomes a mesh, and no effective resistance
among the others changes. With p_kj = w_kj / s_k, the resistances of k follow from those among the
vertices that remained, since its potential is the average of theirs by p_k:

    R_kj = 1/s_k + v_j - (p_k . v) / 2,   v = R p_k.

The one subtraction is harmless: R is a squared Euclidean metric, so R_kj >= 1/s_k. A tree drawn
with probability proportional to the product of its conductances contains the edge i, j with
probability mu_ij = w_ij R_ij (Kirchhoff), which is thus computed to full relative precision.

Vertices are taken out from the last to the first, and come back from the first to the last. Both
passes halve the vertices recursively: one half acts on the other by a product of matrices, and only
the smallest parts, panels, are left to compiled loops. A panel comes back as a whole. A walk by p
from its vertex k enters the vertices before the panel at a random vertex i; a_kj is the mean of
R_ij over i, and R_kj = a_kj + level_k. That is the formula above for a network in which the other
vertices of the panel were taken out before k, so its subtraction is as harmless.

The derivative along a direction dw is the same recursion on dual numbers; `tangent_of` computes the
dual parts, given the values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crossedge.numerics.mirror import SIDE, mirrored
from crossedge.numerics.trees.star_mesh_panels import (
    eliminate,
    eliminate_tangent,
    rebuild,
    rebuild_tangent,
)
from crossedge.runtime.compiled import compiled
from crossedge.runtime.products import add_product
from crossedge.runtime.threads import expect_team
from crossedge.runtime.types import Floats

PANEL = 64  # vertices, at most, that are left to loops
COLUMNS = 256  # width of the column blocks of a product that fills a triangle


@dataclass(frozen=True)
class Mesh:
    """The result of elimination, in padded matrices; row k of p is used left of the diagonal."""

    share: Floats  # (n, n): p
    total: Floats  # (n,): s, the sums of conductances
    outer: Floats  # (n,): the sum of p_k over the vertices before the panel of k
    ladder: Floats  # (n, panel): see star_mesh_panels.py
    padded_resistance: Floats  # (n, n): R
    spare: Floats  # (n, n): scratch space

    @property
    def resistance(self) -> Floats:
        """Return the (n, n) effective resistances, without padding."""
        return self.padded_resistance[:, : len(self.total)]


def padded(matrix: Floats) -> Floats:
    """Return a copy with spare columns; see star_mesh_panels.py."""
    copy = empty_padded(len(matrix))
    copy[:, : len(matrix)] = matrix
    return copy


def empty_padded(n: int) -> Floats:
    """Return an empty matrix with n rows, n columns and spare ones."""
    return np.empty((n, (n + 63) // 64 * 64 + 32))


def solve(weight: Floats, panel: int = PANEL) -> Mesh:
    """Eliminate a connected graph with padded symmetric conductances, which are overwritten."""
    expect_team()
    n = len(weight)
    total, outer, ladder = np.empty(n), np.empty(n), np.empty((n, panel))
    resistance, spare = empty_padded(n), empty_padded(n)
    _take_out(weight, total, outer, ladder, spare, 0, n)
    _bring_back(weight, total, outer, ladder, resistance, spare, 0, n)
    return Mesh(weight, total, outer, ladder, resistance, spare)


def tangent_of(mesh: Mesh, d_weight: Floats) -> Floats:
    """Return dR, padded, for padded symmetric changes of conductances, which are overwritten."""
    expect_team()
    n = len(mesh.total)
    d_total, d_resistance, spare = np.empty(n), empty_padded(n), mesh.spare
    known = mesh.share, mesh.total, mesh.outer, mesh.ladder
    _take_out_tangent(*known, d_weight, d_total, spare, 0, n)
    resistances = mesh.padded_resistance, d_resistance
    _bring_back_tangent(*known, d_weight, d_total, *resistances, spare, 0, n)
    return d_resistance


@compiled
def _take_out(
    weight: Floats,
    total: Floats,
    outer: Floats,
    ladder: Floats,
    spare: Floats,
    start: int,
    stop: int,
) -> None:
    """Turn w into p in rows start ... stop - 1, which have gained from all later vertices."""
    if stop - start <= ladder.shape[1]:
        eliminate(weight, total, outer, ladder, start, stop)
        _climb(weight, ladder, False, spare, start, stop)
        for k in range(start, stop):
            p, per = weight[k, :k], 1.0 / total[k]
            for j in range(len(p)):
                p[j] *= per
        return
    middle = (start + stop) // 2
    _take_out(weight, total, outer, ladder, spare, middle, stop)
    share, w = weight[middle:stop, :middle], spare[: stop - middle, :middle]
    for k in range(len(w)):
        w_k, p, s = w[k], share[k], total[middle + k]
        for j in range(len(w_k)):
            w_k[j] = p[j] * s
    for first in range(0, middle, COLUMNS):
        last, row = min(first + COLUMNS, middle), max(first, start)
        target = weight[row:middle, first:last]
        add_product(target, 1.0, w[:, row:], True, share[:, first:last], False)
    _take_out(weight, total, outer, ladder, spare, start, middle)


@compiled
def _take_out_tangent(
    share: Floats,
    total: Floats,
    outer: Floats,
    ladder: Floats,
    d_weight: Floats,
    d_total: Floats,
    spare: Floats,
    start: int,
    stop: int,
) -> None:
    """Turn dw into dp in rows start ... stop - 1."""
    size = stop - start
    if size <= ladder.shape[1]:
        d_gain = spare[:size, :size]
        eliminate_tangent(share, outer, d_weight, d_total, d_gain, start, stop)
        if start:
            left = d_weight[start:stop, :start]
            add_product(left, 1.0, d_gain, False, share[start:stop, :start], False)
        _climb(d_weight, ladder, False, spare, start, stop)
        for k in range(start, stop):
            row, p, ds, per = d_weight[k, :k], share[k, :k], d_total[k], 1.0 / total[k]
            for j in range(len(row)):
                row[j] = (row[j] - p[j] * ds) * per
        return
    middle = (start + stop) // 2
    _take_out_tangent(share, total, outer, ladder, d_weight, d_total, spare, middle, stop)
    # d(w_i w_j / s) = (dw_i - ds p_i / 2) p_j + p_i (dw_j - ds p_j / 2)
    p, change = share[middle:stop, :middle], spare[: stop - middle, :middle]
    for k in range(len(p)):
        row, share_k, d_share_k = change[k], p[k], d_weight[middle + k]
        s, half_ds = total[middle + k], 0.5 * d_total[middle + k]
        for j in range(len(row)):
            row[j] = d_share_k[j] * s + half_ds * share_k[j]
    if start:
        left = d_weight[start:middle, :start]
        add_product(left, 1.0, change[:, start:], True, p[:, :start], False)
        add_product(left, 1.0, p[:, start:], True, change[:, :start], False)
    half = spare[stop - middle : stop - start, : middle - start]
    add_product(half, 0.0, change[:, start:], True, p[:, start:], False)
    _add_both(half, d_weight[start:middle, start:middle])
    _take_out_tangent(share, total, outer, ladder, d_weight, d_total, spare, start, middle)


@compiled
def _bring_back(
    share: Floats,
    total: Floats,
    outer: Floats,
    ladder: Floats,
    resistance: Floats,
    spare: Floats,
    start: int,
    stop: int,
) -> None:
    """Write rows start ... stop - 1 of R, given earlier rows; left of `start` they hold p R."""
    size = stop - start
    if size <= ladder.shape[1]:
        # turn p R into a, where a_k = (p R)_k + sum_i p_ki a_i over earlier i of the panel
        _climb(resistance, ladder, True, spare, start, stop)
        across = spare[:size, :size]
        add_product(
            across, 0.0, share[start:stop, :start], False, resistance[start:stop, :start], True
        )
        rebuild(share, total, outer, across, resistance, start, stop)
        return
    middle = (start + stop) // 2
    _bring_back(share, total, outer, ladder, resistance, spare, start, middle)
    _bring_on(share, resistance, resistance, 0.0, start, middle, stop)
    _bring_back(share, total, outer, ladder, resistance, spare, middle, stop)


@compiled
def _bring_back_tangent(
    share: Floats,
    total: Floats,
    outer: Floats,
    ladder: Floats,
    d_share: Floats,
    d_total: Floats,
    resistance: Floats,
    d_resistance: Floats,
    spare: Floats,
    start: int,
    stop: int,
) -> None:
    """Write rows start ... stop - 1 of dR, given earlier rows."""
    size = stop - start
    if size <= ladder.shape[1]:
        p, dp = share[start:stop, :start], d_share[start:stop, :start]
        r, dr = resistance[start:stop, :start], d_resistance[start:stop, :start]
        if start:
            inner = spare[:size, :size]
            for k in range(size):
                inner[k, :k] = d_share[start + k, start : start + k]
                inner[k, k:] = 0.0
            add_product(dr, 1.0, inner, False, r, False)
        _climb(d_resistance, ladder, True, spare, start, stop)
        d_across = spare[:size, :size]
        add_product(d_across, 0.0, dp, False, r, True)
        add_product(d_across, 1.0, p, False, dr, True)
        rebuild_tangent(
            share, d_share, total, d_total, outer, d_across, resistance, d_resistance, start, stop
        )
        return
    middle = (start + stop) // 2
    _bring_back_tangent(
        share,
        total,
        outer,
        ladder,
        d_share,
        d_total,
        resistance,
        d_resistance,
        spare,
        start,
        middle,
    )
    _bring_on(d_share, resistance, d_resistance, 0.0, start, middle, stop)
    _bring_on(share, d_resistance, d_resistance, 1.0, start, middle, stop)
    _bring_back_tangent(
        share, total, outer, ladder, d_share, d_total, resistance, d_resistance, spare, middle, stop
    )


@compiled
def _bring_on(
    share: Floats, r: Floats, out: Floats, old: float, start: int, middle: int, stop: int
) -> None:
    """Add rows start ... middle - 1 of R to p R in rows middle ... stop - 1."""
    if start:
        left, p = out[middle:stop, :start], share[middle:stop, start:middle]
        add_product(left, 1.0, p, False, r[:start, start:middle], True)
    within, p = out[middle:stop, start:middle], share[middle:stop, :middle]
    add_product(within, old, p, False, r[start:middle, :middle], True)


@compiled
def _climb(
    matrix: Floats, ladder: Floats, turned: bool, spare: Floats, start: int, stop: int
) -> None:
    """Add the ladder, or its transpose, times the rows of its panel to them, left of the panel."""
    size = stop - start
    if start:
        rows, copy = matrix[start:stop, :start], spare[:size, :start]
        copy[:] = rows
        add_product(rows, 1.0, ladder[start:stop, :size], turned, copy, False)


@compiled
def _add_both(half: Floats, out: Floats) -> None:
    """Add half + half' to `out`, up to the diagonal."""
    n, tile = len(half), np.empty((SIDE, SIDE))
    for top in range(0, n, SIDE):
        bottom = min(top + SIDE, n)
        for left in range(0, top + 1, SIDE):
            mirrored(half, top, bottom, left, min(left + SIDE, bottom), tile)
            for i in range(top, bottom):
                right = min(left + SIDE, i + 1)
                target, one, other = out[i, left:right], half[i, left:right], tile[i - top]
                for j in range(len(target)):
                    target[j] += one[j] + other[j]
