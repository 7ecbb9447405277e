"""The neighbourhood of Schilling and Henze: every point is joined to its k nearest."""

from __future__ import annotations

from dataclasses import dataclass
from operator import index

import numpy as np

from crossedge.distances import Distances, PointDistances
from crossedge.numerics.nearest_neighbours import neighbours_of_points, neighbours_of_rows
from crossedge.weights.edge_list import EdgeList
from crossedge.weights.family import GraphWeights, atoms_of


@dataclass(frozen=True)
class NearestNeighbours(GraphWeights):
    """The k nearest neighbours: W[i, j] counts i among j's and j among i's, and m = k n.

    Where distances tie, W is the average over all equally near sets of neighbours, which is the
    limit of the smoothed neighbourhood as its temperature falls to 0.

    Parameters
    ----------
    k : int
        How many neighbours, from 1 to n - 1.
    temperature : float
        0, the classical neighbourhood.

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
    temperature: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            k = index(self.k)
        except TypeError:
            raise TypeError(
                f"k={self.k!r} is not an integer: give a number of neighbours"
            ) from None
        if k < 1:
            raise ValueError(f"k={k} is too small: give at least 1 neighbour")

    @property
    def name(self) -> str:
        return f"{self.k}-nearest neighbours"

    def edges(self, distances: Distances) -> EdgeList:
        if self.k >= distances.n:
            raise ValueError(
                f"k={self.k} is too large for {distances.n} pooled points: "
                f"give at most k={distances.n - 1}"
            )
        if isinstance(distances, PointDistances):
            points, atom, sizes = atoms_of(distances.points)
            near = neighbours_of_points(points, self.k, distances.p, sizes)
            twins = near.i == near.j  # copies of a point are each other's neighbours, both ways
            weight = np.where(twins, 2 * near.weight, near.weight)
            return EdgeList.from_pairs(atom, near.i, near.j, weight)
        near = neighbours_of_rows(distances.row, distances.n, self.k)
        return EdgeList.from_pairs(np.arange(distances.n), *near)
