"""Nearest neighbours among some of the points, where a search among all would take too long."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crossedge.data.distances import Distances, PointDistances
from crossedge.runtime.progress import stage
from crossedge.weights.distinct import distinct
from crossedge.weights.edge_list import EdgeList
from crossedge.weights.low_rank import scrambled
from crossedge.weights.nearest_neighbours import NearestNeighbours


@dataclass(frozen=True)
class ThinnedNeighbours(NearestNeighbours):
    """The graph of the k nearest neighbours among so many distinct points, and no other edges.

    The points look random, and are chosen by their coordinates alone, so W depends neither on
    labels nor on the order of the points.
    """

    among: int = 50_000

    @property
    def name(self) -> str:
        return f"{self.k}-nearest neighbours among {self.among:,} points"

    def classical_edges(self, distances: Distances) -> EdgeList:
        between, atom, copies = distinct(distances)
        if not isinstance(between, PointDistances) or between.n <= self.among:
            return super().classical_edges(distances)
        from crossedge.numerics.neighbours.nearest import neighbours_of_points

        order = np.argsort(scrambled(between.points), kind="stable")
        chosen = np.sort(order[: self.among])
        with stage(f"{self.k} neighbours of {self.among:,} points"):
            found = neighbours_of_points(between.points[chosen], self.k, between.p, copies[chosen])
        i, j, weight = found
        # i == j stands for the copies of one point, as in NearestNeighbours
        weight = np.where(i == j, 2 * weight, weight)
        return EdgeList.from_pairs(atom, chosen[i], chosen[j], weight)
