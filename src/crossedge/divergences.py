"""How far apart two distributions are, from the edges that join their samples."""

from __future__ import annotations

import math
from typing import Any

from crossedge.calls import run_usual
from crossedge.distances import Distance, pooled_distances
from crossedge.null.permutations import observe
from crossedge.weights import GraphWeights, SpanningTree
from crossedge.weights.graphs import check_graph


class Divergence(float):
    """An estimate in [0, 1], a float with one more attribute.

    Attributes
    ----------
    bayes_error : pair of floats or None
        Bounds on the error of the best classifier, at the proportions of the samples; for classical
        trees, since a smoothed one has a bias.
    """

    bayes_error: tuple[float, float] | None

    def __new__(cls, value: float, bayes_error: tuple[float, float] | None = None) -> Divergence:
        self = super().__new__(cls, value)
        self.bayes_error = bayes_error
        return self


def divergence(x: Any, y: Any, weights: GraphWeights, *, distance: Distance = 2.0) -> Divergence:
    """The f-divergence that the cross-edge count estimates.

    With p and q the shares of the samples, the cross count of the minimum spanning tree (Henze and
    Penrose, 1999) and of k nearest neighbours (Henze, 1988) has a limit that depends on

        D = 1 - integral of f g / (p f + q g),

    which is 0 where the distributions are equal and 1 where they do not overlap. The estimate is
    one less the ratio of the cross count to its mean over all labellings, which for a tree is
    1 - T n / (2 n_x n_y); below 0 it is cut off. Smoothing adds a bias towards 0.

    Parameters
    ----------
    x, y, weights, distance
        As in `two_sample`.

    Returns
    -------
    Divergence
        A float. For classical trees its `bayes_error` bounds the error of the best classifier
        between 1/2 - sqrt(u)/2 and 1/2 - u/2, u = 4 p q D + (p - q)^2 (Berisha and co-authors,
        2016).

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
    weights = check_graph(weights)
    return run_usual(lambda: _divergence(x, y, weights, distance))


def _divergence(x: Any, y: Any, weights: GraphWeights, distance: Distance) -> Divergence:
    samples, distances = pooled_distances(x, y, distance)
    pairs = weights.pairs(distances)
    within = observe(pairs, samples.in_x)
    n_x, n_y = samples.n_x, samples.n_y
    n = n_x + n_y
    crossing = pairs.total - float(within.x) - float(within.y)
    expected = pairs.total * 2 * n_x * n_y / (n * (n - 1))
    value = min(max(1 - crossing / expected, 0.0), 1.0)
    if not isinstance(weights, SpanningTree) or weights.temperature != 0:
        return Divergence(value)
    p, q = n_x / n, n_y / n
    u = 4 * p * q * value + (p - q) ** 2
    return Divergence(value, ((1 - math.sqrt(u)) / 2, (1 - u) / 2))
