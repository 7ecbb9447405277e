"""Edge marginals of the smoothed spanning tree, and their gradient, at any temperature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from crossedge.compiled import compiled, compiled_fused
from crossedge.distances import COLD, TIE
from crossedge.numerics.banded_star_mesh import (
    BandedMesh,
    Bands,
    bands_of,
    solve_banded,
    tangent_of_banded,
)
from crossedge.numerics.cardinality import LARGEST
from crossedge.numerics.exponential import decay_of
from crossedge.numerics.leaves import Floats, Ints
from crossedge.numerics.memory import empty
from crossedge.numerics.minimum_spanning_tree import arrivals_of_matrix
from crossedge.numerics.mirror import SIDE, add_mirror, parts_of_rows
from crossedge.numerics.random_trees import draw_tree
from crossedge.numerics.star_mesh import PANEL, Mesh, empty_padded, padded, solve, tangent_of
from crossedge.threads import in_threads

RANGE = 600.0  # conductances down to e^-600 are safe as plain doubles


@dataclass(frozen=True)
class PlainTree:
    """Where conductances fit into doubles."""

    temperature: float
    mesh: Mesh

    def pull_back(self, gradient: torch.Tensor, weights: torch.Tensor, out: torch.Tensor) -> None:
        """Write the gradient in the distances, from that in W = mu.

        With log w = -(d_ij + d_ji) / (2 temperature) and a cotangent G on both mu_ij and mu_ji, it
        is -1 / (2 temperature) times d mu along G + G': mu is the gradient of log Z in log w, so
        its Jacobian is symmetric.
        """
        n, scale = len(gradient), _scale(gradient)
        mu, resistance, target = weights.numpy(), self.mesh.padded_resistance, out.numpy()
        dw, g, parts = empty_padded(n), gradient.numpy(), parts_of_rows(n)
        in_threads(lambda rows: _changes(*rows, g, mu, resistance, scale, dw, target), parts)
        dr = tangent_of(self.mesh, dw)
        factor = -0.5 / self.temperature
        in_threads(lambda rows: _chain(*rows, mu, resistance, dr, scale, factor, target), parts)


@dataclass(frozen=True)
class BandedTree:
    """Where every pair has a scale of its own; points stand in an order of their own."""

    temperature: float
    conductance: Floats
    mesh: BandedMesh
    order: Ints
    bands: Bands

    def pull_back(self, gradient: torch.Tensor, weights: torch.Tensor, out: torch.Tensor) -> None:
        index = np.ix_(self.order, self.order)
        scale = _scale(gradient)
        direction = (gradient + gradient.T).fill_diagonal_(0.0).numpy()[index] / scale
        d_resistance = tangent_of_banded(self.mesh, self.conductance * direction, self.bands)
        mu = weights.numpy()[index]
        with np.errstate(invalid="ignore"):  # 0 / 0 on the diagonal
            change = mu * (direction + d_resistance / self.mesh.resistance) * scale
        change *= -0.5 / self.temperature
        np.fill_diagonal(change, 0.0)
        out.numpy()[index] = change


def _scale(gradient: torch.Tensor) -> float:
    """A power of two near the largest entry: products with e^-600 need the range of doubles."""
    least, most = torch.aminmax(gradient)
    size = float(torch.maximum(-least, most))
    return 2.0 ** int(np.frexp(size)[1]) if 0 < size < float("inf") else 1.0


def tree_marginals(
    distances: torch.Tensor, temperature: float, out: torch.Tensor, panel: int = PANEL
) -> PlainTree | BandedTree:
    """P(edge in tree) under the Gibbs measure of (d + d') / 2, for (n, n) distances, float64.

    The marginals are written.
    """
    if float(distances.max()) <= RANGE * temperature:
        n, per = len(distances), min(0.5 / temperature, LARGEST)
        w, d, target = empty_padded(n), distances.numpy(), out.numpy()
        in_threads(lambda rows: _conductances(*rows, d, per, w, target), parts_of_rows(n))
        mesh = solve(w, panel)
        out.mul_(torch.from_numpy(mesh.resistance))
        return PlainTree(temperature, mesh)
    symmetric = distances / 2 + distances.T / 2
    order, key = arrivals_of_matrix(symmetric.numpy())
    if key[1:].max() - key[1:].min() <= RANGE * temperature:
        return _plain(symmetric, float(key[1:].min()), temperature, out, panel)
    return _banded(symmetric.numpy(), order, key, temperature, out)


def _plain(
    distances: torch.Tensor,
    zero: float,
    temperature: float,
    out: torch.Tensor,
    panel: int = PANEL,
) -> PlainTree:
    exponent = (zero - distances) / temperature
    mesh = solve(padded(torch.exp(exponent).fill_diagonal_(0.0).numpy()), panel)
    # by logarithms: a conductance may be below the range of doubles where its marginal is not
    torch.exp(torch.log(torch.from_numpy(mesh.resistance)) + exponent, out=out).fill_diagonal_(0.0)
    return PlainTree(temperature, mesh)


def draw_smoothed_tree(distances: Floats, temperature: float, key: np.uint64) -> Ints:
    """(n - 1, 2): the edges of a random tree from the Gibbs measure, at 0 a shortest one."""
    order, arrivals = arrivals_of_matrix(distances)
    found = _banded(distances, order, arrivals, temperature, empty(*distances.shape))
    return order[draw_tree(found.conductance, found.mesh, found.bands, key)]


def _banded(
    distances: Floats, order: Ints, key: Floats, temperature: float, out: torch.Tensor
) -> BandedTree:
    bands = bands_of(key, temperature)
    zero = bands.start[bands.of_pair]
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        above = distances[np.ix_(order, order)] - zero
        # where it is too cold to tell rounding from a difference
        above[(above <= (TIE - 1) * zero) & (temperature <= COLD * zero)] = 0.0
        exponent = np.where(above > 0, above / temperature, 0.0)
        conductance = np.exp(-exponent)
        np.fill_diagonal(conductance, 0.0)
        mesh = solve_banded(conductance.copy(), bands)
        out.numpy()[np.ix_(order, order)] = np.exp(np.log(mesh.resistance) - exponent)
    out.fill_diagonal_(0.0)
    return BandedTree(temperature, conductance, mesh, order, bands)


@compiled_fused
def _conductances(
    first: int, last: int, distances: Floats, per: float, weight: Floats, out: Floats
) -> None:
    """Write w = e^-(d + d') per, for rows first ... last - 1, twice."""
    n = len(distances)
    double = np.empty((min(SIDE, last - first), n))
    for top in range(first, last, SIDE):
        bottom = min(top + SIDE, last)
        add_mirror(distances, top, bottom, double)
        for i in range(top, bottom):
            row, target = double[i - top], out[i]
            for j in range(n):
                target[j] = decay_of(row[j] * per)
            target[i] = 0.0
            weight[i, :n] = target


@compiled
def _changes(
    first: int,
    last: int,
    gradient: Floats,
    mu: Floats,
    resistance: Floats,
    scale: float,
    out: Floats,
    direction: Floats,
) -> None:
    """Write g + g', and dw = w (g + g') / scale, where w = mu / R, for rows first ... last - 1."""
    n = len(gradient)
    add_mirror(gradient, first, last, direction[first:last])
    for i in range(first, last):
        target, c, m, r = out[i], direction[i], mu[i], resistance[i]
        for j in range(n):
            target[j] = c[j] / scale * m[j] / r[j]
        target[i] = 0.0


@compiled
def _chain(
    first: int,
    last: int,
    mu: Floats,
    resistance: Floats,
    d_resistance: Floats,
    scale: float,
    factor: float,
    out: Floats,
) -> None:
    """From g + g' to factor mu ((g + g') + scale dR / R), since mu = w R."""
    n = len(mu)
    for i in range(first, last):
        target, m, r, dr = out[i], mu[i], resistance[i], d_resistance[i]
        for j in range(n):
            target[j] = factor * m[j] * (target[j] + scale * (dr[j] / r[j]))
        target[i] = 0.0
