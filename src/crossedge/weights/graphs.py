"""What neighbourhood graphs share: a temperature."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from math import prod

import numpy as np
import torch

from crossedge.distances import Distances, distance_matrix, matrix_distances
from crossedge.headroom import check_room
from crossedge.threads import has_compiled_loops
from crossedge.weights.dense import DenseWeights
from crossedge.weights.edge_list import EdgeList, Floats, Ints
from crossedge.weights.family import (
    PairWeights,
    Scale,
    Weights,
    check_scale,
    check_weights,
    flat,
    median_distances,
    show_scale,
)

WHOLE = 1e-9
MOST_EDGES = 100  # a point, as a list


class GraphWeights(Weights):
    """W as a graph on the pooled sample.

    At temperature 0 the classical graph; above it the marginals of the paper's Gibbs measure,
    eq. (2), as differentiable functions of the distances.
    """

    temperature: Scale

    def __post_init__(self) -> None:
        checked = check_scale(self.temperature, "temperature", zero=True)
        object.__setattr__(self, "temperature", checked)

    @property
    def default_statistic(self) -> str:
        return "cross"

    @property
    def is_smooth(self) -> bool:
        values = self.temperature if isinstance(self.temperature, tuple) else (self.temperature,)
        return any(value != 0 for value in values)

    @property
    def warmth(self) -> str:
        """The temperature, in words."""
        return show_scale(self.temperature, "temperature", "temperatures")

    @abstractmethod
    def classical_edges(self, distances: Distances) -> EdgeList:
        """W at temperature 0 as a list of edges, without ever forming an n x n matrix."""

    @abstractmethod
    def smoothed(self, distances: torch.Tensor, temperatures: Sequence[float]) -> torch.Tensor:
        """W at temperatures above 0, one for each of (..., n, n) distances, in float64."""

    @abstractmethod
    def draw(self, distances: torch.Tensor, temperature: float, rng: np.random.Generator) -> Ints:
        """(m, 2): the edges of a random neighbourhood, for (n, n) distances in float64."""

    def temperatures(self, distances: torch.Tensor) -> list[list[float]]:
        """In numbers, each of them for each of (..., n, n) distances.

        The median is that of distances off the diagonal.
        """
        if self.temperature == "median":
            return [median_distances(distances)]
        batch = prod(distances.shape[:-2])
        values = self.temperature if isinstance(self.temperature, tuple) else (self.temperature,)
        return [[float(value)] * batch for value in values]

    def check_values(self, distances: torch.Tensor) -> None:
        if not (self._is_warm and has_compiled_loops(distances)):
            super().check_values(distances)

    @property
    def _is_warm(self) -> bool:
        """Whether smoothed weights are the first to read the distances, as they come."""
        return isinstance(self.temperature, float | int) and self.temperature > 0

    def pairs(self, distances: Distances) -> PairWeights:
        self.check_size(distances.n)
        if not self.is_smooth:
            return self.classical_edges(distances)
        check_room(distances.n, self.peak_matrices)
        return as_edges_if_whole(self.marginals(distance_matrix(distances)))

    def marginals(self, matrix: Floats) -> Floats:
        """W of one matrix of distances, without a gradient."""
        weights: Floats = self.of_matrices(torch.from_numpy(matrix)).detach().numpy()
        return weights

    def of_matrices(self, distances: torch.Tensor) -> torch.Tensor:
        parts = [self._at(level, distances) for level in self.temperatures(distances)]
        return parts[0] if len(parts) == 1 else torch.stack(parts).mean(0)

    def _at(self, temperatures: Sequence[float], distances: torch.Tensor) -> torch.Tensor:
        if min(temperatures) > 0:
            return self.smoothed(distances, temperatures)
        if max(temperatures) == 0:
            # a median of 0: all points are in one place, and the gradient is 0
            return self._classical(distances) + (0 * distances if self.is_smooth else 0.0)
        # medians, some of them 0
        each = zip(temperatures, flat(distances), strict=True)
        parts = [self._at([temperature], matrix) for temperature, matrix in each]
        return torch.stack(parts).reshape(distances.shape)

    def _classical(self, distances: torch.Tensor) -> torch.Tensor:
        if not has_compiled_loops(distances):  # the twins of smoothed weights include their limit
            return self.smoothed(distances.detach(), [0.0] * prod(distances.shape[:-2]))
        matrices = flat(distances.detach()).numpy()
        graphs = [self.classical_edges(matrix_distances(matrix)).dense() for matrix in matrices]
        return torch.stack(graphs).reshape(distances.shape)


def as_edges_if_whole(W: Floats) -> PairWeights:
    """A list of edges where it is so cold that weights are whole numbers, but for rounding.

    The statistic then moves in steps, which smooth laws must know.
    """
    n = len(W)
    few = W[:: max(n // 8, 1)]  # which tell most of the time
    if not np.abs(few - np.rint(few)).max() <= WHOLE:
        return DenseWeights(torch.from_numpy(W))
    whole = np.rint(W)
    if not np.abs(W - whole).max() <= WHOLE or np.count_nonzero(whole) > MOST_EDGES * n:
        return DenseWeights(torch.from_numpy(W))
    i, j = np.nonzero(np.triu(whole))
    return EdgeList(np.arange(n), i, j, whole[i, j])


def check_graph(weights: object) -> GraphWeights:
    """An instance of a family of graphs, or one clear line."""
    known = "give ce.SpanningTree() or ce.NearestNeighbours(k)"
    if not isinstance(check_weights(weights, known), GraphWeights):
        raise TypeError(f"weights is {weights!r}, which is no graph: {known}")
    return weights  # type: ignore[return-value]
