"""The k nearest neighbours of every point, as in the tests of Schilling and Henze."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crossedge.data.distances import Distances, matrix_distances
from crossedge.numerics.neighbours.plain import softmax_weights
from crossedge.numerics.smoothed import Recipe, neighbours_recipe
from crossedge.runtime.types import Array, Floats, Ints
from crossedge.weights.candidates import Candidates, candidates_of
from crossedge.weights.distinct import distinct
from crossedge.weights.edge_list import EdgeList
from crossedge.weights.graphs import GraphWeights, check_whole
from crossedge.weights.scales import Scale
from crossedge.weights.searches import Search, edges_of_search, search
from crossedge.weights.sparse import SparseNeighbours


@dataclass(frozen=True)
class NearestNeighbours(GraphWeights):
    """The k nearest neighbours of every point, with m = k n edges.

    W[i, j] is 1 if one of i and j is among the k nearest neighbours of the other, and 2 if each is.
    With the statistic "cross" this is the test of Schilling [1]_ and Henze [2]_. Where distances
    tie, W is the average over all equally near sets of neighbours, which is the limit of the
    smoothed weights as their temperature falls to 0.

    Parameters
    ----------
    k : int, optional
        The number of neighbours, from 1 to n - 1.
    temperature : float, sequence of floats, or "median", optional
        0 for the classical graph. Above 0, each point has a random set of k neighbours, drawn with
        probability proportional to exp(-total distance / temperature) [3]_. W[i, j] is the
        probability that j is a neighbour of i plus the probability that i is a neighbour of j, and
        W is differentiable. For several temperatures, W is the mean of their weights. "median" is
        the median distance, which derivatives treat as a constant.
    neighbours : int, optional
        Restrict a smoothed graph to pairs of which one is among so many nearest neighbours of the
        other: each point chooses from these only. Memory then grows like n and not n^2, and the
        result says how much weight is left out at most. "median" is then the median length of these
        pairs.

    Raises
    ------
    TypeError
        If k is not an integer, or a temperature is not a real number.
    ValueError
        If k is below 1, or if a temperature is negative or requires a gradient.

    See Also
    --------
    SpanningTree : The minimum spanning tree.
    sample_edges : Draw random neighbours.

    References
    ----------
    .. [1] M. Schilling, "Multivariate two-sample tests based on nearest neighbors", Journal of the
       American Statistical Association, 1986.
    .. [2] N. Henze, "A multivariate two-sample test based on the number of nearest neighbor type
       coincidences", Annals of Statistics, 1988.
    .. [3] J. Djolonga and A. Krause, "Learning implicit generative models using differentiable
       graph tests", 2017.

    Examples
    --------
    >>> import numpy as np
    >>> import crossedge as ce
    >>> line = np.array([0.0, 1.0, 2.0, 4.0])
    >>> ce.NearestNeighbours(k=1)(np.abs(line[:, None] - line))
    array([[0. , 1.5, 0. , 0. ],
           [1.5, 0. , 1.5, 0. ],
           [0. , 1.5, 0. , 1. ],
           [0. , 0. , 1. , 0. ]])
    """

    k: int = 1
    temperature: Scale = 0.0
    neighbours: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(self.k, "k", "")
        if self.neighbours is not None and self.neighbours < self.k:
            raise ValueError(
                f"neighbours={self.neighbours} leaves less than k={self.k} to choose from: "
                "give more"
            )

    @property
    def name(self) -> str:
        name = f"{self.k}-nearest neighbours"
        return name if not self.is_smooth else f"smoothed {name} ({self.warmth})"

    def check_size(self, n: int) -> None:
        if self.k >= n:
            raise ValueError(
                f"k={self.k} is too large for {n} pooled points: give at most k={n - 1}"
            )

    def candidates(self, distances: Distances) -> Candidates:
        most = min(self.neighbours or distances.n, distances.n - 1)
        return candidates_of(NearestNeighbours(most).classical_edges(distances), distances)

    def sparse_model(self, pairs: Candidates, temperature: float) -> SparseNeighbours:
        return SparseNeighbours(pairs, self.k, temperature)

    def marginals(self, matrix: Floats) -> Floats:
        if self.k > 1:
            return super().marginals(matrix)
        levels = [level for (level,) in self.temperatures(matrix)]
        total = np.zeros_like(matrix)
        for level in levels:
            if level > 0:
                total += softmax_weights(matrix, level)
            else:
                total += self.classical_edges(matrix_distances(matrix)).dense()
        total /= len(levels)
        return total

    def recipe(self, distances: Array, temperatures: Sequence[float]) -> Recipe:
        return neighbours_recipe(distances, self.k, temperatures)

    def draw(self, distances: Floats, temperature: float, rng: np.random.Generator) -> Ints:
        from crossedge.numerics.neighbours.cardinality import draw_neighbours
        from crossedge.numerics.neighbours.marginals import neighbour_model

        found = neighbour_model(distances, self.k, temperature, np.empty(distances.shape))
        uniforms = rng.random(distances.shape)
        return draw_neighbours(found.distances, found.decay, found.kth, self.k, uniforms)

    def search(self, distances: Distances) -> Search:
        """Return the nearest neighbours of each point, from which graphs of fewer are read off."""
        return search(distinct(distances), self.k)

    def edges_from(self, found: Search) -> EdgeList:
        """Return W at temperature 0 from a search for as many neighbours, or for more."""
        return edges_of_search(found, self.k)

    def classical_edges(self, distances: Distances) -> EdgeList:
        return self.edges_from(self.search(distances))
