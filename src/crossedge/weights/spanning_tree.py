"""The minimum spanning tree of the pooled sample, as in the test of Friedman and Rafsky."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Real

import numpy as np

from crossedge.data.distances import Distances, PointDistances, distance_matrix
from crossedge.numerics import SMALL
from crossedge.numerics.smoothed import Recipe, tree_recipe
from crossedge.numerics.trees.tied import spanning_tree_of_matrix
from crossedge.runtime.progress import stage
from crossedge.runtime.randomness import random_key
from crossedge.runtime.types import Array, Floats, Ints
from crossedge.weights.candidates import Candidates, candidates_of
from crossedge.weights.distinct import distinct
from crossedge.weights.edge_list import EdgeList
from crossedge.weights.family import PairWeights
from crossedge.weights.graphs import GraphWeights
from crossedge.weights.scales import Scale, scale_values
from crossedge.weights.sparse import SparseTree
from crossedge.weights.streamed import StreamedWeights

MOST_EXACT_POINTS = 3000  # with `neighbours`; beyond, elimination takes more than a few seconds
USUAL_ACCURACY = 0.05  # of random projections for more points
MOST_TEMPERATURES = 30.0  # of the longest tree edge, for trees of all pairs by projections
ESTIMATES = 8  # independent ones, by an eighth of the projections each, which tell their error
GUIDING_NEIGHBOURS = 8  # of each point, in the graph that guides the solver for all pairs


@dataclass(frozen=True)
class SpanningTree(GraphWeights):
    """The minimum spanning tree: W[i, j] is 1 on its edges, and their number is m = n - 1.

    With the statistic "cross" this is the test of Friedman and Rafsky [1]_. Where distances tie, W
    is the average over all minimum spanning trees, which is the limit of the smoothed tree as its
    temperature falls to 0.

    Parameters
    ----------
    temperature : float, sequence of floats, or "median", optional
        0 for the classical tree. Above 0, W[i, j] is the probability of the edge in a random tree
        that is drawn with probability proportional to exp(-length / temperature) [2]_, and W is
        differentiable. For several temperatures, W is the mean of their weights. "median" is the
        median distance, which derivatives treat as a constant.
    neighbours : int, optional
        Restrict a smoothed tree to the edges between each point and so many of its nearest
        neighbours, joined with the minimum spanning tree. Memory then grows like n and not n^2, and
        the result says how much weight is left out at most. "median" is then the median length of
        these edges.
    accuracy : float, optional
        The relative standard error of weights by random projections [3]_, for one temperature. With
        `neighbours`, weights are exact by default up to 3,000 points, and have an accuracy of 0.05
        above. Without, the tree of all pairs is computed in blocks of rows, with memory for
        2 n / accuracy^2 numbers and no matrix, for distinct points and temperatures of at least a
        thirtieth of the longest edge of the minimum spanning tree.

    Raises
    ------
    TypeError
        If a temperature is not a real number.
    ValueError
        If a temperature is negative, or requires a gradient.

    See Also
    --------
    NearestNeighbours : The k nearest neighbours of every point.
    sample_edges : Draw a random tree.

    References
    ----------
    .. [1] J. Friedman and L. Rafsky, "Multivariate generalizations of the Wald-Wolfowitz and
       Smirnov two-sample tests", Annals of Statistics, 1979.
    .. [2] J. Djolonga and A. Krause, "Learning implicit generative models using differentiable
       graph tests", 2017.
    .. [3] D. Spielman and N. Srivastava, "Graph sparsification by effective resistances", SIAM
       Journal on Computing, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> import crossedge as ce
    >>> square = np.array([0, 1, 1j, 1 + 1j])
    >>> ce.SpanningTree()(np.abs(square[:, None] - square))
    array([[0.  , 0.75, 0.75, 0.  ],
           [0.75, 0.  , 0.  , 0.75],
           [0.75, 0.  , 0.  , 0.75],
           [0.  , 0.75, 0.75, 0.  ]])
    """

    temperature: Scale = 0.0
    neighbours: int | None = None
    accuracy: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.accuracy is None:
            return
        if isinstance(self.accuracy, bool) or not isinstance(self.accuracy, Real):
            raise TypeError(f"accuracy={self.accuracy!r} is not a real number: give one, as 0.05")
        if not 1e-3 <= self.accuracy <= 0.5:
            raise ValueError(f"accuracy={self.accuracy} is not between 0.001 and 0.5: give 0.05")
        if len(scale_values(self.temperature)) != 1 or not self.is_smooth:
            raise ValueError("accuracy needs one temperature above 0: give a number")

    @property
    def is_sparse(self) -> bool:
        """Whether no (n, n) matrix is needed."""
        return super().is_sparse or self.accuracy is not None

    def pairs(self, distances: Distances) -> PairWeights:
        if self.accuracy is None or self.neighbours is not None:
            return super().pairs(distances)
        if not isinstance(distances, PointDistances) or distances.p != 2:
            raise ValueError("accuracy without neighbours needs Euclidean distances of points")
        return self._streamed(distances)

    def _streamed(self, distances: PointDistances) -> StreamedWeights:
        """Return W of all pairs by random projections, in blocks of rows.

        A sparse graph serves to solve the equations faster; it does not change their solution.
        """
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import minimum_spanning_tree
        from scipy.spatial.distance import cdist

        from crossedge.numerics.trees.streamed import streamed_tree_potentials

        assert self.accuracy is not None
        if len(np.unique(distances.points, axis=0)) < distances.n:
            raise ValueError("accuracy without neighbours needs distinct points: give neighbours")
        # in an order that the points decide on, so that random signs do not depend on their order
        order = np.lexsort(distances.points.T)
        sorted_points = replace(distances, points=distances.points[order])
        near = replace(self, neighbours=GUIDING_NEIGHBOURS).candidates(sorted_points)
        graph = coo_array((near.length, (near.i, near.j)), (near.n, near.n))
        longest, (given,) = minimum_spanning_tree(graph).data.max(), scale_values(self.temperature)
        if longest > MOST_TEMPERATURES * given:
            raise ValueError(
                f"temperature={given:g} is too low for accuracy without neighbours: "
                f"give at least {longest / MOST_TEMPERATURES:.2g}, or neighbours"
            )
        # points and temperature of the order of 1, so that squares stay in range
        points = np.ldexp(distances.points, -500)
        temperature = math.ldexp(given, distances.exponent - 500)
        probes = -(-int(2 / self.accuracy**2) // ESTIMATES) * ESTIMATES
        Z = np.empty((len(points), probes))
        Z[order] = streamed_tree_potentials(points[order], temperature, near.i, near.j, probes)

        def rows(first: int, last: int) -> Floats:
            W: Floats = np.exp(cdist(points[first:last], points) / -temperature)
            W *= cdist(Z[first:last], Z, "sqeuclidean")
            return W

        def estimates(first: int, last: int) -> Iterator[Floats]:
            kernel: Floats = np.exp(cdist(points[first:last], points) / -temperature)
            for own in np.split(Z, ESTIMATES, axis=1):  # the signs of probes are independent
                yield kernel * cdist(own[first:last], own, "sqeuclidean")

        found = StreamedWeights(distances.n, rows, estimates)
        return found.with_total(distances.n - 1, 5 * self.accuracy)

    def candidates(self, distances: Distances) -> Candidates:
        from crossedge.weights.nearest_neighbours import NearestNeighbours

        most = min(self.neighbours or distances.n, distances.n - 1)
        near = NearestNeighbours(most).classical_edges(distances)
        tree = self.classical_edges(distances)
        i, j = np.append(near.i, tree.i), np.append(near.j, tree.j)
        return candidates_of(EdgeList.from_pairs(near.atom, i, j, np.ones(len(i))), distances)

    def sparse_model(self, pairs: Candidates, temperature: float) -> SparseTree:
        many = self.accuracy is None and pairs.n > MOST_EXACT_POINTS
        return SparseTree(pairs, temperature, USUAL_ACCURACY if many else self.accuracy)

    @property
    def name(self) -> str:
        if not self.is_smooth:
            return "minimum spanning tree"
        accuracy = "" if self.accuracy is None else f", accuracy {self.accuracy:g}"
        return f"smoothed spanning tree ({self.warmth}{accuracy})"

    @property
    def peak_matrices(self) -> float:
        return 0.0 if self.is_sparse else 10.0

    def check_size(self, n: int) -> None:
        """Accept any n: two points already have a tree."""

    def recipe(self, distances: Array, temperatures: Sequence[float]) -> Recipe:
        return tree_recipe(distances, temperatures)

    def _classical(self, distances: Array) -> Array:
        return super()._classical((distances + distances.mT) / 2)

    def draw(self, distances: Floats, temperature: float, rng: np.random.Generator) -> Ints:
        from crossedge.numerics.trees.marginals import draw_smoothed_tree

        return draw_smoothed_tree((distances + distances.T) / 2, temperature, random_key(rng))

    def classical_edges(self, distances: Distances) -> EdgeList:
        between, atom, copies = distinct(distances)
        if between.n <= SMALL:
            tree = spanning_tree_of_matrix(distance_matrix(between), copies)
        elif isinstance(between, PointDistances):
            from crossedge.numerics.trees.minimum import spanning_tree_of_points

            with stage(f"tree of {between.n:,} points"):
                tree = spanning_tree_of_points(between.points, between.p, copies)
        else:
            from crossedge.numerics.trees.minimum import spanning_tree_of_rows

            tree = spanning_tree_of_rows(between.row, copies)
        # The copies of a point are joined first, by any of the c^(c-2) trees on c copies (Cayley):
        # an edge is in a fraction 2 / c of them.
        twins = np.flatnonzero(copies > 1)
        i, j = np.append(tree.i, twins), np.append(tree.j, twins)
        return EdgeList.from_pairs(atom, i, j, np.append(tree.weight, 2 / copies[twins]))
