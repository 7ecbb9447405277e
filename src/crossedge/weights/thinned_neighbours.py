"""Nearest neighbours among some of the points, where a search among all would take too long."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crossedge.data.distances import Distances, PointDistances
from crossedge.weights.distinct import distinct
from crossedge.weights.low_rank import scrambled
from crossedge.weights.nearest_neighbours import NearestNeighbours
from crossedge.weights.searches import Search, search


@dataclass(frozen=True)
class ThinnedNeighbours(NearestNeighbours):
    """The graph of the k nearest neighbours among so many distinct points, and no other edges.

    The points look random, and are chosen by their coordinates alone, to the last digit. So W
    depends neither on labels nor on the order of the points, unless their coordinates do.
    """

    among: int | None = 50_000  # None for all

    @property
    def name(self) -> str:
        return f"{self.k}-nearest neighbours among {self.among:,} points"

    def search(self, distances: Distances) -> Search:
        atoms = distinct(distances)
        between = atoms.distances
        few = self.among is None or between.n <= self.among
        if few or not isinstance(between, PointDistances):
            return search(atoms, self.k)
        order = np.argsort(scrambled(between.points), kind="stable")
        return search(atoms, self.k, np.sort(order[: self.among]))
