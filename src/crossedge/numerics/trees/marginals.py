"""Edge marginals of the smoothed spanning tree, and their gradient, at any temperature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crossedge.numerics.exponential import LOG2_E, half_to
from crossedge.numerics.extent import INFINITE_BITS, MAGNITUDE_BITS, largest_of
from crossedge.numerics.mirror import SIDE, add_mirror, reflect, team_for
from crossedge.numerics.neighbours.cardinality import LARGEST, LEAST_POSITIVE
from crossedge.numerics.tolerances import COLD, TIE
from crossedge.numerics.trees.banded_star_mesh import (
    BandedMesh,
    Bands,
    bands_of,
    solve_banded,
    tangent_of_banded,
)
from crossedge.numerics.trees.minimum import arrivals_of_matrix
from crossedge.numerics.trees.random_trees import draw_tree
from crossedge.numerics.trees.star_mesh import PANEL, Mesh, empty_padded, padded, solve, tangent_of
from crossedge.runtime.compiled import compiled, compiled_fused
from crossedge.runtime.team import in_team
from crossedge.runtime.types import Floats, Ints

PLAIN_RANGE = 600.0  # temperatures: conductances down to e^-600 are safe as plain doubles


@dataclass(frozen=True)
class PlainTree:
    """The model of a tree whose conductances fit into doubles."""

    temperature: float
    mesh: Mesh

    def pull_back(self, gradient: Floats, weights: Floats, out: Floats) -> None:
        """Write the gradient in the distances, given the gradient G in W = mu.

        With log w_ij = -(d_ij + d_ji) / (2 temperature), it is -1 / (2 temperature) times the
        change of mu along G + G': mu is the gradient of log Z in log w, so its Jacobian is
        symmetric.
        """
        n, r = len(out), self.mesh.padded_resistance
        scale, dw, threads = _scale(gradient), empty_padded(n), team_for(n)
        _changes(threads, gradient, weights, r, scale, dw, out)
        dr = tangent_of(self.mesh, dw)
        _chain(threads, weights, r, dr, scale, _per(self.temperature), out)


@dataclass(frozen=True)
class BandedTree:
    """The model of a tree with a scale for every pair; points are in the order of arrival."""

    temperature: float
    conductance: Floats
    mesh: BandedMesh
    order: Ints
    bands: Bands

    def pull_back(self, gradient: Floats, weights: Floats, out: Floats) -> None:
        """Write the gradient in the distances, as in PlainTree."""
        index = np.ix_(self.order, self.order)
        scale = _scale(gradient)
        direction = (gradient + gradient.T)[index] / scale
        np.fill_diagonal(direction, 0.0)
        d_resistance = tangent_of_banded(self.mesh, self.conductance * direction, self.bands)
        mu = weights[index]
        with np.errstate(invalid="ignore"):  # 0 / 0 on the diagonal
            change = mu * (direction + d_resistance / self.mesh.resistance) * scale
        change *= _per(self.temperature)
        np.fill_diagonal(change, 0.0)
        out[index] = change


def _per(temperature: float) -> float:
    """Return the derivative of log w in d_ij, or minus the largest double."""
    return max(-0.5 / max(temperature, LEAST_POSITIVE), -LARGEST)


@compiled
def _scale(gradient: Floats) -> float:
    """Return a power of two near the largest entry: products with e^-600 need the whole range."""
    bits, largest = gradient.ravel().view(np.int64), np.int64(0)
    for j in range(len(bits)):
        largest = max(largest, bits[j] & MAGNITUDE_BITS)
    if largest == 0 or largest >= INFINITE_BITS:
        return 1.0
    exponent = float(largest >> np.int64(52)) - 1022.0
    power: float = 2.0 ** min(exponent, 1023.0)
    return power


def tree_marginals(
    distances: Floats, out: Floats, _: Floats, temperature: float, *, panel: int = PANEL
) -> PlainTree | BandedTree:
    """Write P(edge in tree) under the Gibbs measure of (d + d') / 2; return the model.

    Distances are (n, n) and contiguous.
    """
    if largest_of(distances) <= min(PLAIN_RANGE * temperature, LARGEST / 2):
        n, per = len(distances), min(0.5 / temperature * LOG2_E, LARGEST)
        w, threads = empty_padded(n), team_for(n)
        _conductances(threads, distances, per, w, out)
        mesh = solve(w, panel)
        _marginals(threads, mesh.padded_resistance, out)
        return PlainTree(temperature, mesh)
    symmetric = distances / 2 + distances.T / 2
    order, key = arrivals_of_matrix(symmetric)
    if key[1:].max() - key[1:].min() <= PLAIN_RANGE * temperature:
        return _plain(symmetric, float(key[1:].min()), temperature, out, panel)
    return _banded(symmetric, order, key, temperature, out)


def _plain(
    distances: Floats, zero: float, temperature: float, out: Floats, panel: int = PANEL
) -> PlainTree:
    with np.errstate(over="ignore"):
        exponent = (zero - distances) / temperature
    np.fill_diagonal(exponent, 0.0)
    weight = padded(np.exp(exponent))
    np.fill_diagonal(weight, 0.0)
    mesh = solve(weight, panel)
    # by logarithms: a conductance may underflow where its marginal does not
    with np.errstate(divide="ignore"):  # log 0 on the diagonal
        np.exp(np.log(mesh.resistance) + exponent, out=out)
    np.fill_diagonal(out, 0.0)
    return PlainTree(temperature, mesh)


def draw_smoothed_tree(distances: Floats, temperature: float, key: np.uint64) -> Ints:
    """Draw (n - 1, 2) edges of a tree from the Gibbs measure; at temperature 0, a minimum tree."""
    order, arrivals = arrivals_of_matrix(distances)
    found = _banded(distances, order, arrivals, temperature, np.empty(distances.shape))
    return order[draw_tree(found.conductance, found.mesh, found.bands, key)]


def _banded(
    distances: Floats, order: Ints, key: Floats, temperature: float, out: Floats
) -> BandedTree:
    bands = bands_of(key, temperature)
    zero = bands.start[bands.of_pair]
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        above = distances[np.ix_(order, order)] - zero
        # too cold to tell rounding from a difference: near-ties count as ties
        above[(above <= (TIE - 1) * zero) & (temperature <= COLD * zero)] = 0.0
        exponent = np.where(above > 0, above / temperature, 0.0)
        conductance = np.exp(-exponent)
        np.fill_diagonal(conductance, 0.0)
        mesh = solve_banded(conductance.copy(), bands)
        out[np.ix_(order, order)] = np.exp(np.log(mesh.resistance) - exponent)
    np.fill_diagonal(out, 0.0)
    return BandedTree(temperature, conductance, mesh, order, bands)


# the loops below work left of the diagonal; scratch matrices are left as they are right of it


@compiled
def _conductances(threads: int, distances: Floats, per: float, weight: Floats, out: Floats) -> None:
    """Write w = 2^(-(d + d') per) to both `weight` and `out`."""
    in_team(threads, _conductances_of_rows, len(out), SIDE, (distances, per, weight, out))


@compiled_fused
def _conductances_of_rows(
    first: int, last: int, distances: Floats, per: float, weight: Floats, out: Floats
) -> None:
    for top in range(first, last, SIDE):
        bottom = min(top + SIDE, last)
        double = out[top:bottom, :bottom]
        add_mirror(distances, top, bottom, double)
        for i in range(top, bottom):
            target, copy = out[i, :i], weight[i, :i]
            for j in range(len(target)):
                target[j] = half_to(target[j] * per)
                copy[j] = target[j]


@compiled
def _marginals(threads: int, resistance: Floats, out: Floats) -> None:
    """Turn w into mu = w R, on both sides of the diagonal."""
    in_team(threads, _marginals_of_rows, len(out), SIDE, (resistance, out))


@compiled
def _marginals_of_rows(first: int, last: int, resistance: Floats, out: Floats) -> None:
    for i in range(first, last):
        target, r = out[i, :i], resistance[i, :i]
        for j in range(len(target)):
            target[j] *= r[j]
        out[i, i] = 0.0
    reflect(out, first, last)


@compiled
def _changes(
    threads: int,
    gradient: Floats,
    mu: Floats,
    resistance: Floats,
    scale: float,
    out: Floats,
    direction: Floats,
) -> None:
    """Write g + g' to `direction` and dw = w (g + g') / scale to `out`, where w = mu / R."""
    given = gradient, mu, resistance, scale, out, direction
    in_team(threads, _changes_of_rows, len(mu), SIDE, given)


@compiled
def _changes_of_rows(
    first: int,
    last: int,
    gradient: Floats,
    mu: Floats,
    resistance: Floats,
    scale: float,
    out: Floats,
    direction: Floats,
) -> None:
    unscaled = 1.0 / scale  # a power of two
    add_mirror(gradient, first, last, direction[first:last, :last])
    for i in range(first, last):
        target, c, m, r = out[i, :i], direction[i, :i], mu[i, :i], resistance[i, :i]
        for j in range(len(target)):
            target[j] = c[j] * unscaled * m[j] / r[j]


@compiled
def _chain(
    threads: int,
    mu: Floats,
    resistance: Floats,
    d_resistance: Floats,
    scale: float,
    factor: float,
    out: Floats,
) -> None:
    """Turn g + g' into factor mu (g + g' + scale dR / R), since mu = w R, on both sides."""
    given = mu, resistance, d_resistance, scale, factor, out
    in_team(threads, _chain_of_rows, len(mu), SIDE, given)


@compiled
def _chain_of_rows(
    first: int,
    last: int,
    mu: Floats,
    resistance: Floats,
    d_resistance: Floats,
    scale: float,
    factor: float,
    out: Floats,
) -> None:
    for i in range(first, last):
        target, m, r, dr = out[i, :i], mu[i, :i], resistance[i, :i], d_resistance[i, :i]
        for j in range(len(target)):
            target[j] = factor * m[j] * (target[j] + scale * (dr[j] / r[j]))
        out[i, i] = 0.0
    reflect(out, first, last)
