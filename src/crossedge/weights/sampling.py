"""Random graphs from the Gibbs measure of smoothed weights."""

from __future__ import annotations

import numpy as np

from crossedge.numerics.checks import check_values
from crossedge.runtime.arrays import is_tensor, to_tensor
from crossedge.runtime.calls import run_usual
from crossedge.runtime.randomness import Rng, random_key
from crossedge.runtime.types import Array, Ints
from crossedge.weights.graphs import GraphWeights, check_graph

QUICK_POINTS = 300  # up to this many points a draw is so fast that it need not be interruptible


def sample_edges(weights: GraphWeights, distances: Array, rng: Rng = None) -> Array:
    """Draw a random graph from the Gibbs measure whose edge probabilities are the weights W.

    Parameters
    ----------
    weights : SpanningTree or NearestNeighbours
        The family of graphs. With several temperatures, one of them is drawn first. At temperature
        0 the draw is uniform over all minimum spanning trees, or over all nearest sets.
    distances : array or tensor
        (n, n) distances.
    rng : int, numpy Generator or torch Generator, optional
        The source of randomness.

    Returns
    -------
    array or tensor
        (m, 2) indices of points, a tensor if the distances are one: the n - 1 edges of a tree, or
        for each point i the k pairs (i, j) with its neighbours j.

    Raises
    ------
    TypeError
        If the weights are not a graph, or `distances` is not an array of floating point numbers.
    ValueError
        If `distances` is not one square matrix of valid distances.

    See Also
    --------
    SpanningTree, NearestNeighbours : Calling these returns the edge probabilities themselves.

    Examples
    --------
    >>> import numpy as np
    >>> import crossedge as ce
    >>> line = np.array([0.0, 1.0, 2.0, 4.0])
    >>> edges = ce.sample_edges(ce.SpanningTree(), np.abs(line[:, None] - line))
    >>> sorted(sorted(edge) for edge in edges.tolist())
    [[0, 1], [1, 2], [2, 3]]
    """
    weights = check_graph(weights)
    weights.check_distances(distances)
    check_values(distances)
    if distances.ndim != 2:
        raise ValueError(f"distances has shape {tuple(distances.shape)}: give one matrix, (n, n)")
    given = distances.detach().cpu().numpy() if is_tensor(distances) else distances
    matrix = np.ascontiguousarray(given, dtype=np.float64)
    source = np.random.default_rng(int(random_key(rng)))
    (temperature,) = source.choice(weights.temperatures(matrix))

    def draw() -> Ints:
        return weights.draw(matrix, float(temperature), source)

    edges = draw() if len(matrix) <= QUICK_POINTS else run_usual(draw)
    return to_tensor(edges) if is_tensor(distances) else edges
