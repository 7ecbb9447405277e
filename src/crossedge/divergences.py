"""Estimates of an f-divergence between two distributions, from the cross-edge count."""

from __future__ import annotations

import math
import warnings
from typing import Any

from crossedge.data.distances import Distance, Distances, pooled_distances
from crossedge.data.samples import Samples
from crossedge.null.labellings import observe
from crossedge.runtime.calls import run_usual
from crossedge.weights import GraphWeights, SpanningTree
from crossedge.weights.graphs import check_graph


class Divergence(float):
    """An estimated divergence in [0, 1]: a float with one more attribute.

    Attributes
    ----------
    bayes_error : pair of floats or None
        Lower and upper bound on the error of the best classifier, with the proportions of the
        samples as prior. None unless the weights are a classical tree: smoothing adds a bias.
    """

    bayes_error: tuple[float, float] | None

    def __new__(cls, value: float, bayes_error: tuple[float, float] | None = None) -> Divergence:
        self = super().__new__(cls, value)
        self.bayes_error = bayes_error
        return self


def divergence(
    x: Any, y: Any, weights: GraphWeights | None = None, *, distance: Distance = 2.0
) -> Divergence:
    """Estimate the f-divergence of Henze and Penrose between the distributions of two samples.

    Parameters
    ----------
    x, y : array, tensor, list or frame
        The samples, as in `two_sample`.
    weights : SpanningTree or NearestNeighbours, optional
        The graph whose cross-edge count is used; by default the minimum spanning tree.
    distance : float, callable or "precomputed", optional
        As in `two_sample`.

    Returns
    -------
    Divergence
        A float in [0, 1]. For classical trees its attribute `bayes_error` bounds the error of the
        best classifier between 1/2 - sqrt(u)/2 and 1/2 - u/2, u = 4 p q D + (p - q)^2 [3]_, with
        the estimate for D: where that is too small, in many columns, so may the true error be.

    Raises
    ------
    TypeError
        If the weights are not a graph, or a sample has the wrong type.
    ValueError
        If the samples are invalid, as for `two_sample`.

    See Also
    --------
    effect_size : The same with a confidence interval, and what it means.
    two_sample : Test whether the distributions are equal.

    Notes
    -----
    Let f and g be the densities, and p and q the proportions of the samples. The cross-edge count
    of the minimum spanning tree [1]_ and of k nearest neighbours [2]_ has a limit that depends on

        D = 1 - integral of f g / (p f + q g),

    which is 0 where the distributions are equal and 1 where they do not overlap. The estimate is
    one minus the ratio of the cross-edge count T to its mean over all labellings, which for a tree
    is 1 - T n / (2 n_x n_y). Negative estimates are set to 0. Smoothing adds a bias towards 0.

    References
    ----------
    .. [1] N. Henze and M. Penrose, "On the multivariate runs test", Annals of Statistics, 1999.
    .. [2] N. Henze, "A multivariate two-sample test based on the number of nearest neighbor type
       coincidences", Annals of Statistics, 1988.
    .. [3] V. Berisha and co-authors, "Empirically estimable classification bounds based on a
       nonparametric divergence measure", IEEE Transactions on Signal Processing, 2016.

    Examples
    --------
    >>> import numpy as np
    >>> import crossedge as ce
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(500, 2)), rng.normal(size=(500, 2)) + [2, 0]
    >>> found = ce.divergence(x, y, ce.SpanningTree())
    >>> f"{found:.2f}", [f"{bound:.2f}" for bound in found.bayes_error]
    ('0.56', ['0.13', '0.22'])
    """
    graph = SpanningTree() if weights is None else check_graph(weights)
    samples, distances = run_usual(lambda: pooled_distances(x, y, distance))
    for caution in samples.cautions:
        warnings.warn(caution, UserWarning, stacklevel=2)
    return run_usual(lambda: _divergence(samples, distances, graph))


def _divergence(samples: Samples, distances: Distances, weights: GraphWeights) -> Divergence:
    pairs = weights.pairs(distances)
    within = observe(pairs, samples.in_x)
    n_x, n_y = samples.n_x, samples.n_y
    n = n_x + n_y
    crossing = pairs.total - float(within.x) - float(within.y)
    expected = pairs.total * 2 * n_x * n_y / (n * (n - 1))
    value = min(max(1 - crossing / expected, 0.0), 1.0)
    if not isinstance(weights, SpanningTree) or weights.temperature != 0:
        return Divergence(value)
    return Divergence(value, error_bounds(value, n_x, n_y))


def error_bounds(value: float, n_x: int, n_y: int) -> tuple[float, float]:
    """Return the bounds on the error of the best classifier at a divergence."""
    p, q = n_x / (n_x + n_y), n_y / (n_x + n_y)
    u = 4 * p * q * value + (p - q) ** 2
    return (1 - math.sqrt(u)) / 2, (1 - u) / 2
