"""The base class of neighbourhood graphs: classical at temperature 0, smoothed above it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from math import prod

import numpy as np

from crossedge.data.distances import Distances, distance_matrix, matrix_distances
from crossedge.numerics.smoothed import Recipe, flat
from crossedge.runtime.arrays import fixed, is_tensor, namespace, to_tensor
from crossedge.runtime.headroom import check_room
from crossedge.runtime.threads import has_compiled_loops
from crossedge.runtime.types import Array, Floats, Ints
from crossedge.weights.dense import DenseWeights
from crossedge.weights.edge_list import EdgeList
from crossedge.weights.family import (
    PairWeights,
    Weights,
    check_weights,
)
from crossedge.weights.scales import (
    Scale,
    check_positive,
    check_scale,
    learns,
    median_distances,
    scale_values,
    show_scale,
)
from crossedge.weights.smoothed import smoothed

WHOLE_TOLERANCE = 1e-9  # weights this close to an integer differ from it by rounding only
MOST_EDGES_PER_POINT = 100  # a graph with more edges than this is kept as a matrix


class GraphWeights(Weights):
    """Base class of weights that are a graph on the pooled sample.

    At temperature 0, W is the classical graph. Above 0, W holds the marginals of the paper's Gibbs
    measure, eq. (2), as differentiable functions of the distances.

    Attributes
    ----------
    temperature : float, tuple of floats, or "median"
        The temperature; for several, W is the mean of their weights.

    See Also
    --------
    SpanningTree, NearestNeighbours : The graphs.
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
        """Whether any temperature is above 0, so that W is differentiable."""
        return isinstance(self.temperature, str) or any(scale_values(self.temperature))

    @property
    def warmth(self) -> str:
        """The temperature, in words."""
        return show_scale(self.temperature, "temperature", "temperatures")

    @abstractmethod
    def classical_edges(self, distances: Distances) -> EdgeList:
        """Return W at temperature 0 as a list of edges, without an n x n matrix where possible."""

    @abstractmethod
    def recipe(self, distances: Array, temperatures: Sequence[float]) -> Recipe:
        """Return how to compute W of (..., n, n) distances, with a temperature for each matrix."""

    @abstractmethod
    def draw(self, distances: Array, temperature: float, rng: np.random.Generator) -> Ints:
        """Return the (m, 2) edges of a random graph, for (n, n) distances in float64."""

    def temperatures(self, distances: Array) -> list[list[float]]:
        """Return, for each temperature, a list of its values for each of (..., n, n) distances.

        "median" is the median of the distances off the diagonal of each matrix.
        """
        if isinstance(self.temperature, str):
            return [median_distances(distances)]
        values = scale_values(self.temperature)
        if learns(self.temperature):  # an optimizer may have moved it
            check_positive(values, "temperature")
        return [[value] * prod(distances.shape[:-2]) for value in values]

    def check_values(self, distances: Array) -> None:
        if not (self._is_warm and has_compiled_loops(distances)):
            super().check_values(distances)

    @property
    def _is_warm(self) -> bool:
        """Whether compiled loops of smoothed weights are the first to read the distances."""
        return isinstance(self.temperature, float | int) and self.temperature > 0

    def pairs(self, distances: Distances) -> PairWeights:
        self.check_size(distances.n)
        if not self.is_smooth:
            return self.classical_edges(distances)
        check_room(distances.n, self.peak_matrices)
        return as_edges_if_whole(self.marginals(distance_matrix(distances)))

    def marginals(self, matrix: Floats) -> Floats:
        """Return W of one matrix of distances, without a gradient."""
        weights: Floats = self.of_matrices(matrix)
        return weights

    def of_matrices(self, distances: Array) -> Array:
        levels = self.temperatures(distances)
        given = [distances] * len(levels)
        if learns(self.temperature) and is_tensor(distances):
            # W depends on d / t alone, so a factor t / t carries the derivative in t
            ratios = fixed(self.temperature) / self.temperature
            given = [distances * ratio for ratio in ratios.reshape(-1).to(distances)]
        parts = [self._at(level, one) for level, one in zip(levels, given, strict=True)]
        return parts[0] if len(parts) == 1 else namespace(distances).stack(parts).mean(0)

    def _at(self, temperatures: Sequence[float], distances: Array) -> Array:
        if min(temperatures) > 0:
            return smoothed(distances, self.recipe(distances, temperatures))
        if max(temperatures) == 0:
            # a median of 0 means that all points are equal: the gradient is 0
            return self._classical(distances) + (0 * distances if self.is_smooth else 0.0)
        # some medians of a batch are 0: one matrix at a time
        each = zip(temperatures, flat(distances), strict=True)
        parts = [self._at([temperature], matrix) for temperature, matrix in each]
        return namespace(distances).stack(parts).reshape(distances.shape)

    def _classical(self, distances: Array) -> Array:
        given = fixed(distances)
        if not has_compiled_loops(given):  # the torch code of smoothed weights serves 0 as well
            return smoothed(given, self.recipe(given, [0.0] * prod(given.shape[:-2])))
        matrices = flat(given.numpy() if is_tensor(given) else given)
        graphs = [self.classical_edges(matrix_distances(matrix)).dense() for matrix in matrices]
        found = np.stack(graphs).reshape(distances.shape)
        return to_tensor(found) if is_tensor(given) else found


def as_edges_if_whole(W: Floats) -> PairWeights:
    """Return a list of edges if all weights are integers up to rounding, as at low temperature.

    The statistic then moves in steps, which smooth laws must take into account.
    """
    n = len(W)
    few = W[:: max(n // 8, 1)]  # a few rows decide most cases quickly
    if not np.abs(few - np.rint(few)).max() <= WHOLE_TOLERANCE:
        return DenseWeights(W)
    whole = np.rint(W)
    if (
        not np.abs(W - whole).max() <= WHOLE_TOLERANCE
        or np.count_nonzero(whole) > MOST_EDGES_PER_POINT * n
    ):
        return DenseWeights(W)
    i, j = np.nonzero(np.triu(whole))
    return EdgeList(np.arange(n), i, j, whole[i, j])


def check_graph(weights: object) -> GraphWeights:
    """Return the weights, or raise TypeError unless they are an instance of a graph."""
    known = "give ce.SpanningTree() or ce.NearestNeighbours(k)"
    if not isinstance(check_weights(weights, known), GraphWeights):
        raise TypeError(f"weights is {weights!r}, which is no graph: {known}")
    return weights  # type: ignore[return-value]
