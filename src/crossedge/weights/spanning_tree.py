"""Friedman and Rafsky's neighbourhood: the minimum spanning tree of the pooled sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crossedge.distances import Distances, PointDistances
from crossedge.numerics.minimum_spanning_tree import (
    spanning_tree_of_points,
    spanning_tree_of_rows,
)
from crossedge.weights.edge_list import EdgeList
from crossedge.weights.family import GraphWeights, distinct


@dataclass(frozen=True)
class SpanningTree(GraphWeights):
    """The minimum spanning tree: W[i, j] is 1 on its edges, and m = n - 1.

    Where distances tie, W is the average over all minimum spanning trees, which is the limit of
    the smoothed tree as its temperature falls to 0.

    Parameters
    ----------
    temperature : float
        0, the classical tree.

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

    temperature: float = 0.0

    @property
    def name(self) -> str:
        return "minimum spanning tree"

    def edges(self, distances: Distances) -> EdgeList:
        between, atom, copies = distinct(distances)
        if isinstance(between, PointDistances):
            tree = spanning_tree_of_points(between.points, between.p, copies)
        else:
            tree = spanning_tree_of_rows(between.row, copies)
        # the copies of a point are joined first, by any of the trees among them (Cayley)
        twins = np.flatnonzero(copies > 1)
        i, j = np.append(tree.i, twins), np.append(tree.j, twins)
        return EdgeList.from_pairs(atom, i, j, np.append(tree.weight, 2 / copies[twins]))
