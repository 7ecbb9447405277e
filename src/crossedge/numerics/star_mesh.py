"""Star-mesh elimination: marginals of random spanning trees from positive numbers only.

A vertex k with conductances w_kj, whose sum is s_k, can be taken out of a network when every pair
i, j of its neighbours gains w_ki w_kj / s_k: the star becomes a mesh, and no effective resistance
among the others changes. With p_kj = w_kj / s_k, the resistances of k follow from those among the
vertices that remained, since its potential is the average of theirs by p_k:

    R_kj = 1/s_k + v_j - (p_k . v) / 2,   v = R p_k.

The one subtraction is harmless: R is a squared Euclidean metric, so R_kj >= 1/s_k. A tree drawn
with probability proportional to the product of its conductances holds the edge i, j with
probability mu_ij = w_ij R_ij (Kirchhoff), to full relative precision.

Vertices are taken out from the last to the first and come back from the first to the last. Both
ways halve the vertices again and again: one half acts on the other by a product of matrices, and
only the last few by compiled loops.

The derivative along a direction dw is the same recursion on dual numbers; `tangent_of` is its
second half, given the first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from crossedge.compiled import compiled

Floats = npt.NDArray[np.float64]

PANEL = 64  # vertices that are left to compiled loops
COLUMNS = 512  # a product that fills a triangle is cut in columns of this width


@dataclass(frozen=True)
class Mesh:
    """What elimination leaves. Row k of p is used left of the diagonal."""

    share: torch.Tensor  # (n, n): p
    total: torch.Tensor  # (n,): s
    resistance: torch.Tensor  # (n, n): R
    offset: torch.Tensor  # (n,): 1/s_k - (p_k . v) / 2, so that R_kj = offset_k + v_j


def solve(conductance: torch.Tensor) -> Mesh:
    """Effective resistances for (n, n) symmetric conductances of a connected graph.

    The conductances are overwritten.
    """
    n = len(conductance)
    weight, total, offset = conductance, conductance.new_ones(n), conductance.new_zeros(n)
    _take_out(weight, total, 0, n)
    share = weight.div_(total[:, None])
    resistance, potential = torch.zeros_like(share), torch.empty_like(share)
    mesh = Mesh(share, total, resistance, offset)
    _bring_back(mesh, potential, 0, n)
    return mesh


def tangent_of(mesh: Mesh, d_conductance: torch.Tensor) -> torch.Tensor:
    """dR, for symmetric changes of the conductances."""
    share, total = mesh.share, mesh.total
    n = len(total)
    weight = share * total[:, None]  # as it was when each vertex was taken out
    d_weight, d_total = d_conductance.clone(), torch.zeros_like(total)
    _take_out_tangent(mesh, weight, d_weight, d_total, 0, n)
    d_share = torch.addcmul(d_weight, share, d_total[:, None], value=-1).div_(total[:, None])
    d_resistance, d_potential = torch.zeros_like(share), torch.empty_like(share)
    _bring_back_tangent(mesh, d_share, d_total, d_resistance, d_potential, 0, n)
    return d_resistance


def _take_out(weight: torch.Tensor, total: torch.Tensor, start: int, stop: int) -> None:
    """Rows start ... stop - 1, which have gained from all later vertices."""
    if stop - start <= PANEL:
        return _eliminate(weight.numpy(), total.numpy(), start, stop)
    middle = (start + stop) // 2
    _take_out(weight, total, middle, stop)
    rows = weight[middle:stop, :middle]
    _add_product(weight, rows, rows / total[middle:stop, None], start)
    return _take_out(weight, total, start, middle)


def _take_out_tangent(
    mesh: Mesh,
    weight: torch.Tensor,
    d_weight: torch.Tensor,
    d_total: torch.Tensor,
    start: int,
    stop: int,
) -> None:
    if stop - start <= PANEL:
        return _eliminate_tangent(
            weight.numpy(), d_weight.numpy(), mesh.total.numpy(), d_total.numpy(), start, stop
        )
    middle = (start + stop) // 2
    _take_out_tangent(mesh, weight, d_weight, d_total, middle, stop)
    upper = slice(middle, stop)
    rows, d_rows, shares = (part[upper, :middle] for part in (weight, d_weight, mesh.share))
    d_shares = torch.addcmul(d_rows, shares, d_total[upper, None], value=-1)
    d_shares /= mesh.total[upper, None]
    _add_product(d_weight, torch.cat([d_rows, rows]), torch.cat([shares, d_shares]), start)
    return _take_out_tangent(mesh, weight, d_weight, d_total, start, middle)


def _bring_back(mesh: Mesh, potential: torch.Tensor, start: int, stop: int) -> None:
    """Rows start ... stop - 1 of R, given those before; left of `start`, potential is p R."""
    share, resistance = mesh.share, mesh.resistance
    if stop - start <= PANEL:
        _rebuild(
            share.numpy(),
            mesh.total.numpy(),
            resistance.numpy(),
            mesh.offset.numpy(),
            potential.numpy(),
            start,
            stop,
        )
        resistance[:start, start:stop] = resistance[start:stop, :start].T
        return
    middle = (start + stop) // 2
    _bring_back(mesh, potential, start, middle)
    lower, upper = slice(start, middle), slice(middle, stop)
    potential[upper, :start].addmm_(share[upper, lower], resistance[lower, :start])
    potential[upper, lower].addmm_(share[upper, :middle], resistance[:middle, lower], beta=0)
    _bring_back(mesh, potential, middle, stop)


def _bring_back_tangent(
    mesh: Mesh,
    d_share: torch.Tensor,
    d_total: torch.Tensor,
    d_resistance: torch.Tensor,
    d_potential: torch.Tensor,
    start: int,
    stop: int,
) -> None:
    share, resistance = mesh.share, mesh.resistance
    if stop - start <= PANEL:
        _rebuild_tangent(
            share.numpy(),
            d_share.numpy(),
            mesh.total.numpy(),
            d_total.numpy(),
            mesh.offset.numpy(),
            resistance.numpy(),
            d_resistance.numpy(),
            d_potential.numpy(),
            start,
            stop,
        )
        d_resistance[:start, start:stop] = d_resistance[start:stop, :start].T
        return
    middle = (start + stop) // 2
    _bring_back_tangent(mesh, d_share, d_total, d_resistance, d_potential, start, middle)
    lower, upper = slice(start, middle), slice(middle, stop)
    known = d_potential[upper, :start]
    known.addmm_(d_share[upper, lower], resistance[lower, :start])
    known.addmm_(share[upper, lower], d_resistance[lower, :start])
    fresh = d_potential[upper, lower]
    fresh.addmm_(d_share[upper, :middle], resistance[:middle, lower], beta=0)
    fresh.addmm_(share[upper, :middle], d_resistance[:middle, lower])
    _bring_back_tangent(mesh, d_share, d_total, d_resistance, d_potential, middle, stop)


def _add_product(target: torch.Tensor, left: torch.Tensor, right: torch.Tensor, start: int) -> None:
    """Add left' right to the target, from row `start` on and up to the diagonal."""
    size = left.shape[1]
    for first in range(0, size, COLUMNS):
        columns, row = slice(first, min(first + COLUMNS, size)), max(first, start)
        target[row:size, columns].addmm_(left[:, row:].T, right[:, columns])


@compiled
def _eliminate(weight: Floats, total: Floats, start: int, stop: int) -> None:
    """Take out the vertices of a panel, last first, as far as its own rows are concerned."""
    for k in range(stop - 1, max(start, 1) - 1, -1):
        row = weight[k]
        s = 0.0
        for j in range(k):
            s += row[j]
        total[k] = s
        for i in range(start, k):
            share = row[i] / s
            target = weight[i]
            for j in range(i):
                target[j] += share * row[j]


@compiled
def _eliminate_tangent(
    weight: Floats, d_weight: Floats, total: Floats, d_total: Floats, start: int, stop: int
) -> None:
    for k in range(stop - 1, max(start, 1) - 1, -1):
        row, d_row = weight[k], d_weight[k]
        ds = 0.0
        for j in range(k):
            ds += d_row[j]
        d_total[k] = ds
        for i in range(start, k):
            share = row[i] / total[k]
            d_share = (d_row[i] - share * ds) / total[k]
            target = d_weight[i]
            for j in range(i):
                target[j] += share * d_row[j] + d_share * row[j]


@compiled
def _rebuild(
    share: Floats,
    total: Floats,
    resistance: Floats,
    offset: Floats,
    potential: Floats,
    start: int,
    stop: int,
) -> None:
    """Bring back the vertices of a panel, first first."""
    v = np.empty(stop)
    for k in range(max(start, 1), stop):
        p = share[k]
        known = potential[k]
        for j in range(start):
            v[j] = known[j]
        for j in range(start, k):
            v[j] = 0.0
        for i in range(start, k):
            r = resistance[i]
            share_i = p[i]
            for j in range(k):
                v[j] += share_i * r[j]
            v[i] += _dot(p, r, start)
        offset[k] = 1.0 / total[k] - 0.5 * _dot(p, v, k)
        row = resistance[k]
        for j in range(k):
            row[j] = offset[k] + v[j]
        for j in range(start, k):
            resistance[j, k] = row[j]


@compiled
def _rebuild_tangent(
    share: Floats,
    d_share: Floats,
    total: Floats,
    d_total: Floats,
    offset: Floats,
    resistance: Floats,
    d_resistance: Floats,
    d_potential: Floats,
    start: int,
    stop: int,
) -> None:
    v = np.empty(stop)
    dv = np.empty(stop)
    for k in range(max(start, 1), stop):
        p, dp = share[k], d_share[k]
        known, row = d_potential[k], resistance[k]
        for j in range(k):
            v[j] = row[j] - offset[k]
        for j in range(start):
            dv[j] = known[j]
        for j in range(start, k):
            dv[j] = 0.0
        for i in range(start, k):
            r, dr = resistance[i], d_resistance[i]
            share_i, d_share_i = p[i], dp[i]
            for j in range(k):
                dv[j] += share_i * dr[j] + d_share_i * r[j]
            dv[i] += _dot(p, dr, start) + _dot(dp, r, start)
        d_inner = _dot(p, dv, k) + _dot(dp, v, k)
        d_offset = -d_total[k] / total[k] / total[k] - 0.5 * d_inner
        d_row = d_resistance[k]
        for j in range(k):
            d_row[j] = d_offset + dv[j]
        for j in range(start, k):
            d_resistance[j, k] = d_row[j]


@compiled
def _dot(a: Floats, b: Floats, count: int) -> float:
    """Eight sums side by side, which vector instructions can keep apart."""
    s0, s1, s2, s3, s4, s5, s6, s7 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    whole = count - count % 8
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
    for j in range(whole, count):
        total += a[j] * b[j]
    return total
