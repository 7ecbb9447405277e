"""Edge marginals of the smoothed spanning tree, and their gradient, at any temperature."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import torch

from crossedge.compiled import compiled
from crossedge.distances import COLD, TIE
from crossedge.numerics.banded_star_mesh import (
    BandedMesh,
    Bands,
    bands_of,
    solve_banded,
    tangent_of_banded,
)
from crossedge.numerics.leaves import Floats, Ints
from crossedge.numerics.memory import empty
from crossedge.numerics.minimum_spanning_tree import arrivals_of_matrix
from crossedge.numerics.mirror import SIDE, add_mirror
from crossedge.numerics.random_trees import draw_tree
from crossedge.numerics.star_mesh import PANEL, Mesh, empty_padded, padded, solve, tangent_of

RANGE = 600.0  # conductances down to e^-600 are safe as plain doubles


@dataclass(frozen=True)
class Tree(ABC):
    """W = mu, the probability of each edge. (n, n), float64."""

    marginals: torch.Tensor
    temperature: float

    def weights(self) -> torch.Tensor:
        n = len(self.marginals)
        return empty(n, n).copy_(self.marginals)

    def pull_back(self, gradient: torch.Tensor) -> torch.Tensor:
        """The gradient in the distances, from that in W.

        With log w = -(d_ij + d_ji) / (2 temperature) and a cotangent G on both mu_ij and mu_ji, it
        is -1 / (2 temperature) times d mu along G + G'.
        """
        return self.tangent(gradient, -0.5 / self.temperature)

    @abstractmethod
    def tangent(self, gradient: torch.Tensor, factor: float) -> torch.Tensor:
        """The change, times factor, of mu along gradient + gradient' as a direction of log w.

        mu is the gradient of log Z in log w, so this Jacobian-vector product is the
        vector-Jacobian product as well.
        """


@dataclass(frozen=True)
class PlainTree(Tree):
    """Where conductances fit into doubles."""

    mesh: Mesh

    def tangent(self, gradient: torch.Tensor, factor: float) -> torch.Tensor:
        n = len(gradient)
        g, mu, out = gradient.numpy(), self.marginals.numpy(), empty(n, n)
        resistance = self.mesh.padded_resistance.numpy()
        d_conductance = empty_padded(n)
        scale = _scale(gradient)
        _changes(g, mu, resistance, scale, d_conductance.numpy())
        d_resistance = tangent_of(self.mesh, d_conductance).numpy()
        _chain(g, mu, resistance, d_resistance, scale, factor, out.numpy())
        return out


@dataclass(frozen=True)
class BandedTree(Tree):
    """Where every pair has a scale of its own; points stand in an order of their own."""

    conductance: Floats
    mesh: BandedMesh
    order: Ints
    bands: Bands

    def tangent(self, gradient: torch.Tensor, factor: float) -> torch.Tensor:
        index = np.ix_(self.order, self.order)
        scale = _scale(gradient)
        direction = (gradient + gradient.T).fill_diagonal_(0.0).numpy()[index] / scale
        d_resistance = tangent_of_banded(self.mesh, self.conductance * direction, self.bands)
        mu = self.marginals.numpy()[index]
        with np.errstate(invalid="ignore"):  # 0 / 0 on the diagonal
            change = mu * (direction + d_resistance / self.mesh.resistance) * scale * factor
        np.fill_diagonal(change, 0.0)
        out = torch.empty_like(gradient)
        out.numpy()[index] = change
        return out


def _scale(gradient: torch.Tensor) -> float:
    """A power of two near the largest entry: products with e^-600 need the range of doubles."""
    least, most = torch.aminmax(gradient)
    size = float(torch.maximum(-least, most))
    return 2.0 ** int(np.frexp(size)[1]) if 0 < size < float("inf") else 1.0


def tree_marginals(
    distances: torch.Tensor, temperature: float, panel: int = PANEL
) -> PlainTree | BandedTree:
    """P(edge in tree) under the Gibbs measure of (d + d') / 2, for (n, n) distances, float64."""
    n = len(distances)
    double = empty(n, n)
    add_mirror(distances.numpy(), 0, n, double.numpy())
    if float(double.max()) / 2 <= RANGE * temperature:
        conductance = double.div_(-2 * temperature).exp_().fill_diagonal_(0.0)
        mesh = solve(padded(conductance), panel)
        return PlainTree(conductance.mul_(mesh.resistance), temperature, mesh)
    symmetric = double.div_(2)
    order, key = arrivals_of_matrix(symmetric.numpy())
    if key[1:].max() - key[1:].min() <= RANGE * temperature:
        return _plain(symmetric, float(key[1:].min()), temperature, panel)
    return _banded(symmetric.numpy(), order, key, temperature)


def _plain(
    distances: torch.Tensor, zero: float, temperature: float, panel: int = PANEL
) -> PlainTree:
    exponent = (zero - distances) / temperature
    mesh = solve(padded(torch.exp(exponent).fill_diagonal_(0.0)), panel)
    # by logarithms: a conductance may be below the range of doubles where its marginal is not
    marginals = torch.exp(torch.log(mesh.resistance) + exponent).fill_diagonal_(0.0)
    return PlainTree(marginals, temperature, mesh)


def draw_smoothed_tree(distances: Floats, temperature: float, key: np.uint64) -> Ints:
    """(n - 1, 2): the edges of a random tree from the Gibbs measure, at 0 a shortest one."""
    order, arrivals = arrivals_of_matrix(distances)
    found = _banded(distances, order, arrivals, temperature)
    return order[draw_tree(found.conductance, found.mesh, found.bands, key)]


def _banded(distances: Floats, order: Ints, key: Floats, temperature: float) -> BandedTree:
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
        marginals = np.empty_like(conductance)
        marginals[np.ix_(order, order)] = np.exp(np.log(mesh.resistance) - exponent)
    np.fill_diagonal(marginals, 0.0)
    found = torch.from_numpy(marginals)
    return BandedTree(found, temperature, conductance, mesh, order, bands)


@compiled
def _changes(gradient: Floats, mu: Floats, resistance: Floats, scale: float, out: Floats) -> None:
    """Write dw = w (g + g') / scale, where w = mu / R."""
    n = len(gradient)
    direction = np.empty((min(SIDE, n), n))
    for top in range(0, n, SIDE):
        bottom = min(top + SIDE, n)
        add_mirror(gradient, top, bottom, direction)
        for i in range(top, bottom):
            for j in range(n):
                c = direction[i - top, j] / scale
                out[i, j] = c * mu[i, j] / resistance[i, j]
            out[i, i] = 0.0


@compiled
def _chain(
    gradient: Floats,
    mu: Floats,
    resistance: Floats,
    d_resistance: Floats,
    scale: float,
    factor: float,
    out: Floats,
) -> None:
    """Write factor mu ((g + g') + scale dR / R), from mu = w R."""
    n = len(gradient)
    direction = np.empty((min(SIDE, n), n))
    for top in range(0, n, SIDE):
        bottom = min(top + SIDE, n)
        add_mirror(gradient, top, bottom, direction)
        for i in range(top, bottom):
            for j in range(n):
                relative = direction[i - top, j] + scale * (d_resistance[i, j] / resistance[i, j])
                out[i, j] = factor * mu[i, j] * relative
            out[i, i] = 0.0
