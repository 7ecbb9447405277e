"""Edge marginals of the smoothed spanning tree on a sparse graph, exact or by random projections.

The graph is solved in windows of scale (windows.py), so any temperature will do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crossedge.numerics.trees.blocks import balance
from crossedge.numerics.trees.projections import Projector, projector_of
from crossedge.numerics.trees.sparse_star_mesh import SparseMesh, eliminate
from crossedge.numerics.trees.windows import Window, margin_for, windows
from crossedge.runtime.types import Floats, Ints

LARGEST = float(np.finfo(np.float64).max)
EXACT_PRECISION = 1e-16  # of resistances, within which margins of windows are negligible
EXACT_RANGE = 600.0  # temperatures: elimination without subtractions works down to e^-600
# Conjugate gradients lose digits. In a window of C + 2 M temperatures the currents in the strongest
# edges are rounded, and what is lost must flow through the weakest ones. Of 16 digits, those of
# e^((C + 2 M) / 2) = 9e11 are lost there, and those of e^((C + M) / 2) = 4e7 in the core. A margin
# of 20 leaves out e^-20 = 2e-9, times the edges between two parts and the edges of a path: the
# bound of windows.py, with all edges and all vertices in their place, is rarely near.
SAMPLED_CORE, SAMPLED_MARGIN = 15.0, 20.0  # temperatures
EXACT_UP_TO = 256  # vertices of a window: elimination is faster than projections


@dataclass(frozen=True)
class SparseMarginals:
    """P(edge in tree) for the edges of a sparse graph, and what its gradient needs."""

    mu: Floats  # (edges,)
    standard_error: Floats  # (edges,): zeros where mu is exact
    temperature: float
    solved: tuple[tuple[Window, SparseMesh | Projector], ...]

    def pull_back(self, gradient: Floats) -> Floats:
        """Return the gradient in the lengths, given the gradient in mu.

        Since mu is the gradient of log Z in log w = -length / t, its Jacobian J in log w is
        symmetric, and J times the gradient is the change of mu along the gradient. The rows of an
        edge are right in the window whose core has the edge.
        """
        scale = float(np.max(np.abs(gradient), initial=0.0)) or 1.0
        change = np.zeros(len(self.mu))
        for window, model in self.solved:
            g, mu = gradient[window.edges] / scale, self.mu[window.edges]
            if isinstance(model, Projector):
                found = model.jacobian_times(mu, g)
            else:
                found = mu * (g + model.tangent(window.conductance * g) / model.edge_resistance)
            change[window.edges[window.in_core]] = found[window.in_core]
        return change * scale * max(-1.0 / self.temperature, -LARGEST)


def sparse_tree_marginals(
    n: int,
    i: Ints,
    j: Ints,
    length: Floats,
    temperature: float,
    accuracy: float | None = None,
    seed: int = 0,
) -> SparseMarginals:
    """Compute the marginals of a tree that is drawn with odds e^(-total length / temperature).

    Parameters
    ----------
    n : int
        The number of vertices.
    i, j : (edges,) arrays
        The ends of the edges of a connected graph, each pair once.
    length : (edges,) array
        Their lengths, finite and not negative.
    temperature : float
        Any positive number. As it falls to 0, marginals tend to the average over all minimum
        spanning trees.
    accuracy : float, optional
        The relative standard error of each marginal by random projections, such as 0.05. None for
        exact marginals, by elimination.
    seed : int, optional
        The seed of random projections.

    Returns
    -------
    SparseMarginals
        `mu`, its `standard_error`, and `pull_back`.
    """
    core, margin = SAMPLED_CORE, SAMPLED_MARGIN
    if accuracy is None:
        margin = margin_for(n, len(i), EXACT_PRECISION)
        core = EXACT_RANGE - 2 * margin
    mu, variance, rest, solved = np.zeros(len(i)), np.zeros(len(i)), np.zeros(len(i)), []
    for number, window in enumerate(windows(n, i, j, length, temperature, core, margin)):
        network = window.n, window.i, window.j, window.conductance
        model: SparseMesh | Projector
        if accuracy is None or window.n <= EXACT_UP_TO:
            model = eliminate(*network)
            # by logarithms: a conductance may underflow where its marginal does not
            found = np.exp(np.log(model.edge_resistance) - window.exponent)
            spread = np.zeros(len(found))
        else:
            model = projector_of(*network, accuracy, seed + number)
            found, spread = model.marginals()
            # an error of the solves, of random sign, enters mu and 1 - mu by its square
            rest[window.edges[window.in_core]] = model.tolerance**2
        inside = window.edges[window.in_core]
        mu[inside], variance[inside] = found[window.in_core], spread[window.in_core]
        solved.append((window, model))
    if accuracy is not None:
        mu = balance(mu, variance, n, i, j)
    error = np.where(mu < 1.0, np.hypot(np.sqrt(variance), rest * mu), 0.0)
    return SparseMarginals(mu, error, temperature, tuple(solved))
