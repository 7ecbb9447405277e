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
only the last few, a panel, are left to compiled loops. A panel comes back as one: by p, a walk from
its vertex k enters the vertices before the panel at random; a_kj is the mean of R_ij over that
entry i, and R_kj = a_kj + level_k. That is the formula above for a network in which the other
vertices of the panel were taken out before k, so its subtraction is as harmless.

The derivative along a direction dw is the same recursion on dual numbers; `tangent_of` is its
second half, given the first.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from crossedge.numerics.memory import empty
from crossedge.numerics.star_mesh_panels import (
    eliminate,
    eliminate_tangent,
    rebuild,
    rebuild_tangent,
)

PANEL = 64  # vertices that are left to compiled loops
COLUMNS = 256  # a product that fills a triangle is cut in columns of this width


@dataclass(frozen=True)
class Mesh:
    """What elimination leaves, in padded matrices. Row k of p is used left of the diagonal."""

    share: torch.Tensor  # (n, n): p
    total: torch.Tensor  # (n,): s
    outer: torch.Tensor  # (n,): the sum of p_k over the vertices before the panel of k
    ladder: torch.Tensor  # (n, panel): see star_mesh_panels.py
    padded_resistance: torch.Tensor  # (n, n): R

    @property
    def resistance(self) -> torch.Tensor:
        return self.padded_resistance[:, : len(self.total)]

    @property
    def panel(self) -> int:
        return self.ladder.shape[1]


def padded(matrix: torch.Tensor) -> torch.Tensor:
    """A copy with spare columns; see star_mesh_panels.py."""
    copy = empty_padded(len(matrix))
    copy[:, : len(matrix)] = matrix
    return copy


def empty_padded(n: int) -> torch.Tensor:
    return empty(n, (n + 63) // 64 * 64 + 32)


def solve(weight: torch.Tensor, panel: int = PANEL) -> Mesh:
    """Effective resistances for padded symmetric conductances of a connected graph, overwritten."""
    n = len(weight)
    total, outer, ladder = empty(n), empty(n), empty(n, panel)
    _TakeOut(weight, total, outer, ladder).run(0, n)
    share = weight.div_(total[:, None])
    mesh = Mesh(share, total, outer, ladder, empty_padded(n))
    _BringBack(mesh).run(0, n)
    return mesh


def tangent_of(mesh: Mesh, d_weight: torch.Tensor) -> torch.Tensor:
    """dR, padded, for padded symmetric changes of the conductances, overwritten."""
    n = len(mesh.total)
    d_total = torch.zeros_like(mesh.total)
    _TakeOutTangent(mesh, d_weight, d_total).run(0, n)
    d_share = d_weight.addcmul_(mesh.share, d_total[:, None], value=-1).div_(mesh.total[:, None])
    d_resistance = empty_padded(n)
    _BringBackTangent(mesh, d_share, d_total, d_resistance).run(0, n)
    return d_resistance


class _TakeOut:
    def __init__(
        self, weight: torch.Tensor, total: torch.Tensor, outer: torch.Tensor, ladder: torch.Tensor
    ) -> None:
        self.weight, self.total, self.ladder = weight, total, ladder
        self.arrays = weight.numpy(), total.numpy(), outer.numpy(), ladder.numpy()

    def run(self, start: int, stop: int) -> None:
        """Rows start ... stop - 1, which have gained from all later vertices."""
        if stop - start <= self.ladder.shape[1]:
            eliminate(*self.arrays, start, stop)
            return _climb(self.weight, _block(self.ladder, start, stop, 0, stop - start), start)
        middle = (start + stop) // 2
        self.run(middle, stop)
        columns = _copy(_mirror(self.weight, middle, stop, 0, middle))
        shares = torch.div(columns, self.total[middle:stop], out=empty(*columns.shape))
        _add_product(self.weight, columns, shares, start)
        return self.run(start, middle)


class _TakeOutTangent:
    def __init__(self, mesh: Mesh, d_weight: torch.Tensor, d_total: torch.Tensor) -> None:
        self.mesh, self.d_weight, self.d_total = mesh, d_weight, d_total
        self.arrays = mesh.share.numpy(), mesh.outer.numpy(), d_weight.numpy(), d_total.numpy()

    def run(self, start: int, stop: int) -> None:
        if stop - start <= self.mesh.panel:
            d_gain = empty(stop - start, stop - start)
            eliminate_tangent(*self.arrays, d_gain.numpy(), start, stop)
            if start:
                _block(self.d_weight, start, stop, 0, start).addmm_(
                    d_gain, _block(self.mesh.share, start, stop, 0, start)
                )
            ladder = _block(self.mesh.ladder, start, stop, 0, stop - start)
            return _climb(self.d_weight, ladder, start)
        middle = (start + stop) // 2
        self.run(middle, stop)
        shares = _copy(_mirror(self.mesh.share, middle, stop, 0, middle))
        changes = _copy(_mirror(self.d_weight, middle, stop, 0, middle))
        # d(w_i w_j / s) = (dw_i - ds p_i / 2) p_j + p_i (dw_j - ds p_j / 2)
        changes.addcmul_(shares, self.d_total[middle:stop], value=-0.5)
        if start:
            left = _block(self.d_weight, start, middle, 0, start)
            left.addmm_(changes[start:], shares[:start].T)
            left.addmm_(shares[start:], changes[:start].T)
        size = middle - start
        half = torch.mm(changes[start:], shares[start:].T, out=empty(size, size))
        _block(self.d_weight, start, middle, start, middle).add_(half).add_(half.T)
        return self.run(start, middle)


class _BringBack:
    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.share, self.resistance = mesh.share.numpy(), mesh.padded_resistance.numpy()
        self.sums = mesh.total.numpy(), mesh.outer.numpy()

    def run(self, start: int, stop: int) -> None:
        """Rows start ... stop - 1 of R, given those before; left of `start` they hold p R."""
        share, resistance = self.mesh.share, self.mesh.padded_resistance
        if stop - start <= self.mesh.panel:
            # from p R to a, where a_k = (p R)_k + sum_i p_ki a_i over earlier i of the panel
            _climb(resistance, _mirror(self.mesh.ladder, start, stop, 0, stop - start), start)
            across = _block(share, start, stop, 0, start) @ _mirror(
                resistance, start, stop, 0, start
            )
            return rebuild(self.share, *self.sums, across.numpy(), self.resistance, start, stop)
        middle = (start + stop) // 2
        self.run(start, middle)
        # R is symmetric, and products with a transposed matrix are the fastest
        if start:
            _block(resistance, middle, stop, 0, start).addmm_(
                _block(share, middle, stop, start, middle),
                _mirror(resistance, 0, start, start, middle),
            )
        _block(resistance, middle, stop, start, middle).addmm_(
            _block(share, middle, stop, 0, middle),
            _mirror(resistance, start, middle, 0, middle),
            beta=0,
        )
        return self.run(middle, stop)


class _BringBackTangent:
    def __init__(
        self,
        mesh: Mesh,
        d_share: torch.Tensor,
        d_total: torch.Tensor,
        d_resistance: torch.Tensor,
    ) -> None:
        self.mesh, self.d_share_, self.d_resistance_ = mesh, d_share, d_resistance
        self.share, self.d_share = mesh.share.numpy(), d_share.numpy()
        self.resistance, self.d_resistance = mesh.padded_resistance.numpy(), d_resistance.numpy()
        self.sums = mesh.total.numpy(), d_total.numpy(), mesh.outer.numpy()

    def run(self, start: int, stop: int) -> None:
        share, d_share = self.mesh.share, self.d_share_
        resistance, d_resistance = self.mesh.padded_resistance, self.d_resistance_
        if stop - start <= self.mesh.panel:
            shares, resistances = (self.share, self.d_share), (self.resistance, self.d_resistance)
            if start:
                _block(d_resistance, start, stop, 0, start).addmm_(
                    _block(d_share, start, stop, start, stop).tril(-1),
                    _block(resistance, start, stop, 0, start),
                )
            _climb(d_resistance, _mirror(self.mesh.ladder, start, stop, 0, stop - start), start)
            d_across = _block(d_share, start, stop, 0, start) @ _mirror(
                resistance, start, stop, 0, start
            )
            d_across.addmm_(
                _block(share, start, stop, 0, start), _mirror(d_resistance, start, stop, 0, start)
            )
            return rebuild_tangent(*shares, *self.sums, d_across.numpy(), *resistances, start, stop)
        middle = (start + stop) // 2
        self.run(start, middle)
        for p, r, beta in ((d_share, resistance, 0), (share, d_resistance, 1)):
            if start:
                _block(d_resistance, middle, stop, 0, start).addmm_(
                    _block(p, middle, stop, start, middle), _mirror(r, 0, start, start, middle)
                )
            _block(d_resistance, middle, stop, start, middle).addmm_(
                _block(p, middle, stop, 0, middle), _mirror(r, start, middle, 0, middle), beta=beta
            )
        return self.run(middle, stop)


def _climb(matrix: torch.Tensor, ladder: torch.Tensor, start: int) -> None:
    """Add ladder times the rows of its panel to them, left of the panel."""
    if start:
        rows = _block(matrix, start, start + len(ladder), 0, start)
        rows.addmm_(ladder, _copy(rows))


def _copy(matrix: torch.Tensor) -> torch.Tensor:
    """With rows one after another, in memory that was used before."""
    return empty(*matrix.shape).copy_(matrix)


def _block(matrix: torch.Tensor, row: int, end_row: int, column: int, end: int) -> torch.Tensor:
    """matrix[row:end_row, column:end] of a contiguous matrix, at a third of the cost."""
    long = matrix.shape[1]
    return matrix.as_strided((end_row - row, end - column), (long, 1), row * long + column)


def _mirror(matrix: torch.Tensor, row: int, end_row: int, column: int, end: int) -> torch.Tensor:
    """The same, transposed."""
    long = matrix.shape[1]
    return matrix.as_strided((end - column, end_row - row), (1, long), row * long + column)


def _add_product(target: torch.Tensor, left: torch.Tensor, right: torch.Tensor, start: int) -> None:
    """Add left right' to the target, from row `start` on and up to the diagonal."""
    size = len(left)
    for first in range(0, size, COLUMNS):
        last, row = min(first + COLUMNS, size), max(first, start)
        _block(target, row, size, first, last).addmm_(left[row:], right[first:last].T)
