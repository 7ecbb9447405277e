"""Draw a neighbourhood at random."""

from __future__ import annotations

import numpy as np
import torch

from crossedge.calls import run_usual
from crossedge.distances import check_values
from crossedge.randomness import Rng, random_key
from crossedge.weights.graphs import GraphWeights, check_graph

FEW = 300  # points, for which no interrupt has to wait


def sample_edges(weights: GraphWeights, distances: torch.Tensor, rng: Rng = None) -> torch.Tensor:
    """Draw a random neighbourhood from the Gibbs measure whose marginals the weights are.

    Parameters
    ----------
    weights : SpanningTree or NearestNeighbours
        With several temperatures, one of them is drawn first. At temperature 0, a uniformly chosen
        shortest tree, or set of nearest neighbours.
    distances : tensor
        (n, n) distances.
    rng : int, numpy Generator or torch Generator
        The source of randomness.

    Returns
    -------
    tensor
        (m, 2) pairs of points: the n - 1 edges of a tree, or for each point i the k pairs i, j with
        its neighbours j.

    Examples
    --------
    >>> import torch
    >>> import crossedge as ce
    >>> line = torch.tensor([[0.0], [1.0], [2.0], [4.0]])
    >>> edges = ce.sample_edges(ce.SpanningTree(), torch.cdist(line, line))
    >>> sorted(sorted(edge) for edge in edges.tolist())
    [[0, 1], [1, 2], [2, 3]]
    """
    weights = check_graph(weights)
    weights.check_distances(distances)
    check_values(distances)
    if distances.ndim != 2:
        raise ValueError(f"distances has shape {tuple(distances.shape)}: give one matrix, (n, n)")
    matrix = distances.detach().to("cpu", torch.float64).contiguous()
    source = np.random.default_rng(int(random_key(rng)))
    (temperature,) = source.choice(weights.temperatures(matrix))
    if len(matrix) <= FEW:
        return torch.from_numpy(weights.draw(matrix, float(temperature), source))
    return torch.from_numpy(run_usual(lambda: weights.draw(matrix, float(temperature), source)))
