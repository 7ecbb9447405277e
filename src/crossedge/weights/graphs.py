"""The base class of neighbourhood graphs: classical at temperature 0, smoothed above it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from math import prod
from numbers import Integral

import numpy as np

from crossedge.data.distances import Distances, distance_matrix, matrix_distances
from crossedge.numerics.smoothed import Recipe, flat
from crossedge.runtime.arrays import fixed, is_tensor, namespace, to_tensor
from crossedge.runtime.headroom import check_room
from crossedge.runtime.threads import has_compiled_loops
from crossedge.runtime.types import Array, Floats, Ints
from crossedge.weights.candidates import Candidates
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
from crossedge.weights.sparse import SparseModel

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
    neighbours : int or None
        The number of nearest neighbours of each point to which a smoothed graph is restricted.

    See Also
    --------
    SpanningTree, NearestNeighbours : The graphs.
    """

    temperature: Scale
    neighbours: int | None = None

    def __post_init__(self) -> None:
        checked = check_scale(self.temperature, "temperature", zero=True)
        object.__setattr__(self, "temperature", checked)
        if self.neighbours is not None:
            check_whole(self.neighbours, "neighbours", "of each point that are kept")
            if 0 in scale_values(self.temperature):
                raise ValueError(
                    "neighbours has no meaning at temperature 0, where graphs are sparse: "
                    "leave it out, or give temperatures above 0"
                )

    @property
    def default_statistic(self) -> str:
        return "cross"

    @property
    def is_smooth(self) -> bool:
        """Whether any temperature is above 0, so that W is differentiable."""
        return isinstance(self.temperature, str) or any(scale_values(self.temperature))

    @property
    def warmth(self) -> str:
        """The temperature, and the neighbours that are kept, in words."""
        words = show_scale(self.temperature, "temperature", "temperatures")
        return words if self.neighbours is None else f"{words}, among {self.neighbours} neighbours"

    @property
    def peak_matrices(self) -> float:
        return 0.0 if self.is_sparse else super().peak_matrices

    @property
    def is_sparse(self) -> bool:
        """Whether no (n, n) matrix is needed."""
        return self.neighbours is not None or not self.is_smooth

    @abstractmethod
    def classical_edges(self, distances: Distances) -> EdgeList:
        """Return W at temperature 0 as a list of edges, without an n x n matrix where possible."""

    @abstractmethod
    def recipe(self, distances: Array, temperatures: Sequence[float]) -> Recipe:
        """Return how to compute W of (..., n, n) distances, with a temperature for each matrix."""

    @abstractmethod
    def draw(self, distances: Array, temperature: float, rng: np.random.Generator) -> Ints:
        """Return the (m, 2) edges of a random graph, for (n, n) distances in float64."""

    def candidates(self, distances: Distances) -> Candidates:
        """Return the pairs to which `neighbours` restricts the graph."""
        raise NotImplementedError(f"{type(self).__name__} has no sparse form")

    def sparse_model(self, pairs: Candidates, temperature: float) -> SparseModel:
        """Return W on these pairs."""
        raise NotImplementedError(f"{type(self).__name__} has no sparse form")

    def sparse_temperatures(self, pairs: Candidates) -> tuple[float, ...]:
        """Return the temperatures; "median" is the median distance of the candidate pairs."""
        if not isinstance(self.temperature, str):
            return scale_values(self.temperature)
        positive = pairs.length[pairs.length > 0]
        return (float(np.median(positive)) if len(positive) else 1.0,)

    def sparse_pairs(self, distances: Distances) -> EdgeList:
        """Return W on the candidate pairs as a list of edges."""
        pairs = self.candidates(distances)
        models = [self.sparse_model(pairs, level) for level in self.sparse_temperatures(pairs)]
        weight: Floats = sum(model.weight for model in models) / len(models)  # type: ignore[assignment]
        assert self.neighbours is not None
        kept = min(self.neighbours, pairs.n - 1)
        bounds = [model.left_out(kept) for model in models]
        errors = [getattr(model, "standard_error", None) for model in models]
        error = None if errors[0] is None or len(errors) > 1 else errors[0]
        return EdgeList(
            np.arange(pairs.n),
            pairs.i,
            pairs.j,
            weight,
            sum(bounds) / len(bounds),
            error=error if error is not None and error.any() else None,
        )

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
        one = isinstance(self.temperature, float | int) and self.temperature > 0
        return one and self.neighbours is None

    def pairs(self, distances: Distances) -> PairWeights:
        self.check_size(distances.n)
        if not self.is_smooth:
            return self.classical_edges(distances)
        if self.neighbours is not None:
            return self.sparse_pairs(distances)
        check_room(distances.n, self.peak_matrices)
        return as_edges_if_whole(self.marginals(distance_matrix(distances)))

    def marginals(self, matrix: Floats) -> Floats:
        """Return W of one matrix of distances, without a gradient."""
        weights: Floats = self.of_matrices(matrix)
        return weights

    def of_matrices(self, distances: Array) -> Array:
        if self.neighbours is not None:
            return self._sparse_matrices(distances)
        levels = self.temperatures(distances)
        given = [distances] * len(levels)
        if learns(self.temperature) and is_tensor(distances):
            # W depends on d / t alone, so a factor t / t carries the derivative in t
            ratios = fixed(self.temperature) / self.temperature
            given = [distances * ratio for ratio in ratios.reshape(-1).to(distances)]
        parts = [self._at(level, one) for level, one in zip(levels, given, strict=True)]
        return parts[0] if len(parts) == 1 else namespace(distances).stack(parts).mean(0)

    def _sparse_matrices(self, distances: Array) -> Array:
        """Return W of matrices, restricted to candidate pairs; without a gradient."""
        if is_tensor(distances) and distances.requires_grad:
            raise ValueError(
                "weights with neighbours have no gradient in a matrix of distances: "
                "give the points to TwoSampleLoss, or leave out neighbours"
            )
        found = [
            self.sparse_pairs(matrix_distances((one + one.T) / 2)).dense()
            for one in flat(distances.numpy() if is_tensor(distances) else distances)
        ]
        together = np.stack(found).reshape(distances.shape)
        return to_tensor(together) if is_tensor(distances) else together

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


def check_whole(value: object, name: str, what: str) -> None:
    """Raise TypeError or ValueError unless a number of neighbours is an integer of at least 1."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name}={value!r} is not an integer: give a whole number of neighbours")
    if value < 1:
        raise ValueError(f"{name}={value} is too small: give at least 1 neighbour {what}".rstrip())


def check_graph(weights: object) -> GraphWeights:
    """Return the weights, or raise TypeError unless they are an instance of a graph."""
    known = "give ce.SpanningTree() or ce.NearestNeighbours(k)"
    if not isinstance(check_weights(weights, known), GraphWeights):
        raise TypeError(f"weights is {weights!r}, which is no graph: {known}")
    return weights  # type: ignore[return-value]
