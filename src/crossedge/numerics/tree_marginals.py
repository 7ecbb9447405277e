"""Edge marginals of the smoothed spanning tree, and their derivative, at any temperature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from crossedge.distances import TIE
from crossedge.numerics.banded_star_mesh import (
    BandedMesh,
    Bands,
    bands_of,
    solve_banded,
    tangent_of_banded,
)
from crossedge.numerics.leaves import Floats, Ints
from crossedge.numerics.minimum_spanning_tree import arrivals_of_matrix
from crossedge.numerics.random_trees import draw_tree
from crossedge.numerics.star_mesh import Mesh, solve, tangent_of

RANGE = 600.0  # conductances down to e^-600 are safe as plain doubles


@dataclass(frozen=True)
class TreeMarginals:
    """mu, and what its derivative needs. All (n, n), float64."""

    marginals: torch.Tensor
    conductance: torch.Tensor  # e^(-(d - c) / temperature), c constant or by band
    mesh: Mesh | BandedMesh
    order: Ints | None = None  # of the banded solution
    bands: Bands | None = None

    def tangent(self, direction: torch.Tensor) -> torch.Tensor:
        """The change of mu along a symmetric direction of log w.

        mu is the gradient of log Z in log w, so this Jacobian-vector product is the
        vector-Jacobian product as well.
        """
        if isinstance(self.mesh, Mesh):
            resistance = self.mesh.resistance
            d_resistance = tangent_of(self.mesh, self.conductance * direction)
            relative = direction + d_resistance / resistance
            return (self.marginals * relative).fill_diagonal_(0.0)
        assert self.bands is not None
        index = np.ix_(self.order, self.order)  # type: ignore[arg-type]
        weight = self.conductance.numpy() * direction.numpy()[index]
        d_resistance = np.empty_like(weight)
        d_resistance[index] = tangent_of_banded(self.mesh, weight, self.bands)
        resistance = torch.ones_like(self.marginals)
        resistance.numpy()[index] = self.mesh.resistance
        relative = direction + torch.from_numpy(d_resistance) / resistance
        return (self.marginals * relative).fill_diagonal_(0.0)


def tree_marginals(distances: torch.Tensor, temperature: float) -> TreeMarginals:
    """P(edge in tree) under the Gibbs measure, for (n, n) symmetric distances, float64."""
    n = len(distances)
    off_diagonal = distances + torch.diag(distances.new_full((n,), torch.inf))
    nearest, furthest = float(off_diagonal.min()), float(distances.max())
    if furthest - nearest <= RANGE * temperature:
        return _plain(distances, nearest, temperature)
    order, key = arrivals_of_matrix(distances.numpy())
    if key[1:].max() - key[1:].min() <= RANGE * temperature:
        return _plain(distances, float(key[1:].min()), temperature)
    return _banded(distances.numpy(), order, key, temperature)


def _plain(distances: torch.Tensor, zero: float, temperature: float) -> TreeMarginals:
    exponent = (distances - zero) / temperature
    conductance = torch.exp(-exponent).fill_diagonal_(0.0)
    mesh = solve(conductance.clone())
    # by logarithms: a conductance may be below the range of doubles where its marginal is not
    marginals = torch.exp(torch.log(mesh.resistance) - exponent).fill_diagonal_(0.0)
    return TreeMarginals(marginals, conductance, mesh)


def draw_smoothed_tree(distances: Floats, temperature: float, key: np.uint64) -> Ints:
    """(n - 1, 2): the edges of a random tree from the Gibbs measure, at 0 a shortest one."""
    order, arrivals = arrivals_of_matrix(distances)
    found = _banded(distances, order, arrivals, temperature)
    assert isinstance(found.mesh, BandedMesh)
    assert found.bands is not None
    return order[draw_tree(found.conductance.numpy(), found.mesh, found.bands, key)]


def _banded(distances: Floats, order: Ints, key: Floats, temperature: float) -> TreeMarginals:
    bands = bands_of(key, temperature)
    zero = bands.start[bands.of_pair]
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        above = distances[np.ix_(order, order)] - zero
        if temperature < 1e-8 * bands.start[-1]:  # too cold to tell rounding from a difference
            above[above <= (TIE - 1) * zero] = 0.0
        exponent = np.where(above > 0, above / temperature, 0.0)
        conductance = np.exp(-exponent)
        np.fill_diagonal(conductance, 0.0)
        mesh = solve_banded(conductance.copy(), bands)
        marginals = np.empty_like(conductance)
        marginals[np.ix_(order, order)] = np.exp(np.log(mesh.resistance) - exponent)
    np.fill_diagonal(marginals, 0.0)
    return TreeMarginals(
        torch.from_numpy(marginals), torch.from_numpy(conductance), mesh, order, bands
    )
