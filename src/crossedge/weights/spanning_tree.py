"""The minimum spanning tree of the pooled sample, as in the test of Friedman and Rafsky."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crossedge.data.distances import Distances, PointDistances, distance_matrix
from crossedge.numerics import SMALL
from crossedge.numerics.smoothed import Recipe, tree_recipe
from crossedge.numerics.trees.tied import spanning_tree_of_matrix
from crossedge.runtime.randomness import random_key
from crossedge.runtime.types import Array, Floats, Ints
from crossedge.weights.distinct import distinct
from crossedge.weights.edge_list import EdgeList
from crossedge.weights.graphs import GraphWeights
from crossedge.weights.scales import Scale


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

    @property
    def name(self) -> str:
        if not self.is_smooth:
            return "minimum spanning tree"
        return f"smoothed spanning tree ({self.warmth})"

    @property
    def peak_matrices(self) -> float:
        return 10.0

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

            tree = spanning_tree_of_points(between.points, between.p, copies)
        else:
            from crossedge.numerics.trees.minimum import spanning_tree_of_rows

            tree = spanning_tree_of_rows(between.row, copies)
        # The copies of a point are joined first, by any of the c^(c-2) trees on c copies (Cayley):
        # an edge is in a fraction 2 / c of them.
        twins = np.flatnonzero(copies > 1)
        i, j = np.append(tree.i, twins), np.append(tree.j, twins)
        return EdgeList.from_pairs(atom, i, j, np.append(tree.weight, 2 / copies[twins]))
