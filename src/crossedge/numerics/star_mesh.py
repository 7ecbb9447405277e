"""Star-mesh elimination: marginals of random spanning trees from positive numbers only.

A vertex k with conductances w_kj, whose sum is s_k, can be taken out of a network when every pair
i, j of its neighbours gains w_ki w_kj / s_k: the star becomes a mesh, and no effective resistance
among the others changes. With p_kj = w_kj / s_k, the resistances of k follow from those among the
vertices that remained, since its potential is the average of theirs by p_k:

    R_kj = 1/s_k + v_j - (p_k . v) / 2,   v = R p_k.

The one subtraction is harmless: R is a squared Euclidean metric, so R_kj >= 1/s_k. A tree drawn
with probability proportional to the product of its conductances holds the edge i, j with
probability mu_ij = w_ij R_ij (Kirchhoff), to full relative precision.

Vertices are taken out from the last to the first and come back from the first to the last, both in
panels: inside a panel by compiled loops, for all others by one product of matrices.

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

PANEL = 64
COLUMNS = 256  # the products fill a triangle; they are cut in columns of this width


@dataclass(frozen=True)
class Mesh:
    """What elimination leaves. Row k of p is used left of the diagonal."""

    share: torch.Tensor  # (n, n): p
    total: torch.Tensor  # (n,): s
    resistance: torch.Tensor  # (n, n): R


def panels(n: int) -> list[tuple[int, int]]:
    return [(start, min(start + PANEL, n)) for start in range(0, n, PANEL)]


def solve(conductance: torch.Tensor) -> Mesh:
    """Effective resistances for (n, n) symmetric conductances of a connected graph.

    The conductances are overwritten.
    """
    n = len(conductance)
    weight, total = conductance, conductance.new_ones(n)
    for start, stop in reversed(panels(n)):
        _eliminate(weight.numpy(), total.numpy(), start, stop)
        rows = weight[start:stop, :start]
        _add_product(weight, rows, rows / total[start:stop, None], start)
    share = weight.div_(total[:, None])
    resistance = torch.zeros_like(share)
    for start, stop in panels(n):
        potential = share[start:stop, :start] @ resistance[:start, :start]
        _rebuild(share.numpy(), total.numpy(), resistance.numpy(), potential.numpy(), start, stop)
        resistance[:start, start:stop] = resistance[start:stop, :start].T
    return Mesh(share, total, resistance)


def tangent_of(mesh: Mesh, d_conductance: torch.Tensor) -> torch.Tensor:
    """dR, for symmetric changes of the conductances."""
    share, total, resistance = mesh.share, mesh.total, mesh.resistance
    weight = share * total[:, None]  # as it was when each vertex was taken out
    n = len(total)
    d_weight, d_total = d_conductance.clone(), torch.zeros_like(total)
    for start, stop in reversed(panels(n)):
        _eliminate_tangent(
            weight.numpy(), d_weight.numpy(), total.numpy(), d_total.numpy(), start, stop
        )
        rows, d_rows, shares = (part[start:stop, :start] for part in (weight, d_weight, share))
        d_shares = (d_rows - shares * d_total[start:stop, None]) / total[start:stop, None]
        _add_product(d_weight, torch.cat([d_rows, rows]), torch.cat([shares, d_shares]), start)
    d_share = (d_weight - share * d_total[:, None]) / total[:, None]
    d_resistance = torch.zeros_like(resistance)
    for start, stop in panels(n):
        shares, d_shares = share[start:stop, :start], d_share[start:stop, :start]
        potential = shares @ resistance[:start, :start]
        d_potential = d_shares @ resistance[:start, :start]
        d_potential.addmm_(shares, d_resistance[:start, :start])
        _rebuild_tangent(
            share.numpy(),
            d_share.numpy(),
            total.numpy(),
            d_total.numpy(),
            resistance.numpy(),
            d_resistance.numpy(),
            potential.numpy(),
            d_potential.numpy(),
            start,
            stop,
        )
        d_resistance[:start, start:stop] = d_resistance[start:stop, :start].T
    return d_resistance


def _add_product(target: torch.Tensor, left: torch.Tensor, right: torch.Tensor, size: int) -> None:
    """Target += left' right on the first `size` rows and columns, below the diagonal."""
    for first in range(0, size, COLUMNS):
        columns = slice(first, min(first + COLUMNS, size))
        target[first:size, columns].addmm_(left[:, first:].T, right[:, columns])


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
    share: Floats, total: Floats, resistance: Floats, known: Floats, start: int, stop: int
) -> None:
    """Bring back the vertices of a panel; `known` is R p_k over the vertices before the panel."""
    v = np.empty(stop)
    for k in range(max(start, 1), stop):
        p = share[k]
        for j in range(start):
            v[j] = known[k - start, j]
        for j in range(start, k):
            v[j] = 0.0
        for i in range(start, k):
            r = resistance[i]
            here = 0.0
            for j in range(start):
                v[j] += p[i] * r[j]
                here += p[j] * r[j]
            for j in range(start, k):
                v[j] += p[i] * r[j]
            v[i] += here
        inner = 0.0
        for j in range(k):
            inner += p[j] * v[j]
        for j in range(k):
            resistance[k, j] = 1.0 / total[k] - 0.5 * inner + v[j]
        for j in range(start, k):
            resistance[j, k] = resistance[k, j]


@compiled
def _rebuild_tangent(
    share: Floats,
    d_share: Floats,
    total: Floats,
    d_total: Floats,
    resistance: Floats,
    d_resistance: Floats,
    known: Floats,
    d_known: Floats,
    start: int,
    stop: int,
) -> None:
    v = np.empty(stop)
    dv = np.empty(stop)
    for k in range(max(start, 1), stop):
        p, dp = share[k], d_share[k]
        for j in range(start):
            v[j] = known[k - start, j]
            dv[j] = d_known[k - start, j]
        for j in range(start, k):
            v[j] = 0.0
            dv[j] = 0.0
        for i in range(start, k):
            r, dr = resistance[i], d_resistance[i]
            here = 0.0
            d_here = 0.0
            for j in range(start):
                v[j] += p[i] * r[j]
                dv[j] += p[i] * dr[j] + dp[i] * r[j]
                here += p[j] * r[j]
                d_here += p[j] * dr[j] + dp[j] * r[j]
            for j in range(start, k):
                v[j] += p[i] * r[j]
                dv[j] += p[i] * dr[j] + dp[i] * r[j]
            v[i] += here
            dv[i] += d_here
        d_inner = 0.0
        for j in range(k):
            d_inner += p[j] * dv[j] + dp[j] * v[j]
        for j in range(k):
            d_resistance[k, j] = dv[j] - 0.5 * d_inner - d_total[k] / total[k] / total[k]
        for j in range(start, k):
            d_resistance[j, k] = d_resistance[k, j]
