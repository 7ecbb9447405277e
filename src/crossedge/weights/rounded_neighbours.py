"""Smoothed nearest neighbours in whole units, for many points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crossedge.runtime.types import Floats, Ints
from crossedge.weights.edge_list import EdgeList
from crossedge.weights.searches import Search, edges_of_search
from crossedge.weights.thinned_neighbours import ThinnedNeighbours

if TYPE_CHECKING:
    from crossedge.numerics.neighbours.nearest import Nearest

UNITS_PER_POINT, LEAST_UNITS = 16, 128  # the weights of a point add up to the first, times size


@dataclass(frozen=True)
class RoundedNeighbours(ThinnedNeighbours):
    """Smoothed 1-nearest neighbours, where about `size` points share the choice of each point.

    Each point chooses among its k nearest, with probabilities proportional to exp(-d / t). The
    temperature t is the median gap between the distances to the nearest and to the size-th nearest
    point. Probabilities are rounded to multiples of a unit, so that labellings can count bits.
    """

    among: int | None = None
    size: int = 16

    @property
    def name(self) -> str:
        among = f" among {self.among:,} points" if self.among else ""
        return f"smoothed neighbours at the scale of {self.size} points{among}"

    def edges_from(self, found: Search) -> EdgeList:
        classical = edges_of_search(found, min(self.size, found.k))
        if found.nearest is None or found.nearest.distance.shape[2] < self.size:
            return classical
        own, near, distance = _without_ties(found.nearest)
        gaps = distance[:, self.size - 1] - distance[:, 0]
        gaps = gaps[np.isfinite(gaps)]
        temperature = float(np.median(gaps)) if len(gaps) else 0.0
        if temperature <= 0:  # points on a grid, most of which have ties
            return classical
        copies = found.nearest.copies
        units = max(UNITS_PER_POINT * self.size, LEAST_UNITS)
        to_others, to_twins = _choices(distance, near, own, copies, temperature)
        weight, among_twins = np.rint(to_others * units), np.rint(to_twins * units)
        kept, several = weight > 0, among_twins > 0
        i = np.append(np.repeat(own, kept.sum(1)), own[several])
        j = np.append(near[kept], own[several])
        # twins choose each other both ways
        weight = np.append(weight[kept], 2 * among_twins[several])
        if found.chosen is not None:
            i, j = found.chosen[i], found.chosen[j]
        return EdgeList.from_pairs(found.atoms.atom, i, j, weight)


def _without_ties(lists: Nearest) -> tuple[Ints, Ints, Floats]:
    """Return points, their neighbours and distances, which are infinite where an entry is missing.

    Equally far points at the end of a list are in it by chance, so none of them is in.
    """
    rows = lists.leaves.ids >= 0
    distance = lists.distance[rows]
    last = distance[:, -1:]
    is_crowded = lists.turned_away[rows][:, None] <= last * lists.tie
    distance[is_crowded & (distance * lists.tie >= last)] = np.inf
    return lists.leaves.ids[rows], lists.ids[rows], lists.lengths(distance)


def _choices(
    distance: Floats, near: Ints, own: Ints, copies: Ints, temperature: float
) -> tuple[Floats, Floats]:
    """Return the probability of each point in the lists, and that of each twin of a point."""
    has_twins = copies[own] > 1
    first = np.where(has_twins | np.isinf(distance[:, 0]), 0.0, distance[:, 0])
    chance = np.exp((first[:, None] - distance) / temperature)
    total = (chance * copies[near]).sum(1) + has_twins * (copies[own] - 1)
    total[total == 0] = 1.0  # a point that has no neighbours but ties
    return chance / total[:, None], has_twins / total
