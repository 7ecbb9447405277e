"""Friedman and Rafsky's neighbourhood: the minimum spanning tree of the pooled sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from crossedge.distances import Distances, PointDistances, distance_matrix
from crossedge.numerics.plain_graphs import SMALL
from crossedge.numerics.tied_trees import spanning_tree_of_matrix
from crossedge.randomness import random_key
from crossedge.weights.distinct import distinct
from crossedge.weights.edge_list import EdgeList, Ints
from crossedge.weights.family import Scale
from crossedge.weights.graphs import GraphWeights
from crossedge.weights.smoothed import smoothed_tree


@dataclass(frozen=True)
class SpanningTree(GraphWeights):
    """The minimum spanning tree: W[i, j] is 1 on its edges, and m = n - 1.

    Where distances tie, W is the average over all minimum spanning trees, which is the limit of
    the smoothed tree as its temperature falls to 0.

    Parameters
    ----------
    temperature : float, sequence of floats, or "median"
        0 for the classical tree. Above 0, W[i, j] is the probability of the edge in a random tree,
        drawn with probability proportional to exp(-length / temperature); differentiable.
        For several temperatures, the mean of their weights; for "median", the median distance,
        which derivatives take as given.

    Examples
    --------
    >>> import torch
    >>> import crossedge as ce
    >>> square = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> ce.SpanningTree()(torch.cdist(square, square))
    tensor([[0.0000, 0.7500, 0.7500, 0.0000],
            [0.7500, 0.0000, 0.0000, 0.7500],
            [0.7500, 0.0000, 0.0000, 0.7500],
            [0.0000, 0.7500, 0.7500, 0.0000]])
    """

    temperature: Scale = 0.0

    @property
    def name(self) -> str:
        if self.temperature == 0:
            return "minimum spanning tree"
        return f"smoothed spanning tree ({self.warmth})"

    @property
    def peak_matrices(self) -> float:
        return 10.0

    def check_size(self, n: int) -> None:
        """Two points have a tree."""

    def smoothed(self, distances: torch.Tensor, temperatures: Sequence[float]) -> torch.Tensor:
        return smoothed_tree(distances, temperatures)

    def _classical(self, distances: torch.Tensor) -> torch.Tensor:
        return super()._classical((distances + distances.mT) / 2)

    def draw(self, distances: torch.Tensor, temperature: float, rng: np.random.Generator) -> Ints:
        from crossedge.numerics.tree_marginals import draw_smoothed_tree

        symmetric = ((distances + distances.T) / 2).numpy()
        return draw_smoothed_tree(symmetric, temperature, random_key(rng))

    def classical_edges(self, distances: Distances) -> EdgeList:
        between, atom, copies = distinct(distances)
        if between.n <= SMALL:
            tree = spanning_tree_of_matrix(distance_matrix(between), copies)
        elif isinstance(between, PointDistances):
            from crossedge.numerics.minimum_spanning_tree import spanning_tree_of_points

            tree = spanning_tree_of_points(between.points, between.p, copies)
        else:
            from crossedge.numerics.minimum_spanning_tree import spanning_tree_of_rows

            tree = spanning_tree_of_rows(between.row, copies)
        # the copies of a point are joined first, by any of the trees among them (Cayley)
        twins = np.flatnonzero(copies > 1)
        i, j = np.append(tree.i, twins), np.append(tree.j, twins)
        return EdgeList.from_pairs(atom, i, j, np.append(tree.weight, 2 / copies[twins]))
