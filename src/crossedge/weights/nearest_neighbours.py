"""The neighbourhood of Schilling and Henze: every point is joined to its k nearest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral

import numpy as np
import torch

from crossedge.distances import Distances, PointDistances, matrix_distances, rows_of
from crossedge.numerics.plain_graphs import SMALL, nearest_in_rows, softmax_weights
from crossedge.weights.distinct import distinct
from crossedge.weights.edge_list import EdgeList, Floats, Ints
from crossedge.weights.family import Scale
from crossedge.weights.graphs import GraphWeights
from crossedge.weights.smoothed import smoothed_neighbours


@dataclass(frozen=True)
class NearestNeighbours(GraphWeights):
    """The k nearest neighbours: W[i, j] counts i among j's and j among i's, and m = k n.

    Where distances tie, W is the average over all equally near sets of neighbours, which is the
    limit of the smoothed neighbourhood as its temperature falls to 0.

    Parameters
    ----------
    k : int
        How many neighbours, from 1 to n - 1.
    temperature : float, sequence of floats, or "median"
        0 for the classical neighbourhood. Above 0, each point has a random set of k neighbours,
        drawn with probability proportional to exp(-total distance / temperature), and W[i, j] is
        the probability of j being one of i's plus that of i being one of j's; differentiable.
        For several temperatures, the mean of their weights; for "median", the median distance,
        which derivatives take as given.

    Examples
    --------
    >>> import torch
    >>> import crossedge as ce
    >>> line = torch.tensor([[0.0], [1.0], [2.0], [4.0]])
    >>> ce.NearestNeighbours(k=1)(torch.cdist(line, line))
    tensor([[0.0000, 1.5000, 0.0000, 0.0000],
            [1.5000, 0.0000, 1.5000, 0.0000],
            [0.0000, 1.5000, 0.0000, 1.0000],
            [0.0000, 0.0000, 1.0000, 0.0000]])
    """

    k: int = 1
    temperature: Scale = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.k, bool) or not isinstance(self.k, Integral):
            raise TypeError(f"k={self.k!r} is not an integer: give a whole number of neighbours")
        if self.k < 1:
            raise ValueError(f"k={self.k} is too small: give at least 1 neighbour")

    @property
    def name(self) -> str:
        name = f"{self.k}-nearest neighbours"
        return name if self.temperature == 0 else f"smoothed {name} ({self.warmth})"

    def check_size(self, n: int) -> None:
        if self.k >= n:
            raise ValueError(
                f"k={self.k} is too large for {n} pooled points: give at most k={n - 1}"
            )

    def marginals(self, matrix: Floats) -> Floats:
        if self.k > 1:
            return super().marginals(matrix)
        levels = [level for (level,) in self.temperatures(torch.from_numpy(matrix))]
        total = np.zeros_like(matrix)
        for level in levels:
            if level > 0:
                total += softmax_weights(matrix, level)
            else:
                total += self.classical_edges(matrix_distances(matrix)).dense().numpy()
        total /= len(levels)
        return total

    def smoothed(self, distances: torch.Tensor, temperatures: Sequence[float]) -> torch.Tensor:
        return smoothed_neighbours(distances, self.k, temperatures)

    def draw(self, distances: torch.Tensor, temperature: float, rng: np.random.Generator) -> Ints:
        from crossedge.numerics.cardinality import draw_neighbours
        from crossedge.numerics.neighbour_marginals import neighbour_model

        found = neighbour_model(distances.numpy(), self.k, temperature, np.empty(distances.shape))
        uniforms = rng.random(distances.shape)
        return draw_neighbours(found.distances, found.decay, found.kth, self.k, uniforms)

    def classical_edges(self, distances: Distances) -> EdgeList:
        between, atom, copies = distinct(distances)
        if isinstance(between, PointDistances) and between.n > SMALL:
            from crossedge.numerics.nearest_neighbours import neighbours_of_points

            i, j, weight = neighbours_of_points(between.points, self.k, between.p, copies)
        else:
            i, j, weight = nearest_in_rows(rows_of(between), self.k, copies)
        # copies of a point are neighbours of each other, both ways
        return EdgeList.from_pairs(atom, i, j, np.where(i == j, 2 * weight, weight))
