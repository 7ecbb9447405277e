"""Searches for nearest neighbours, which serve graphs of several sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crossedge.data.distances import PointDistances, rows_of
from crossedge.numerics import SMALL
from crossedge.numerics.neighbours.plain import nearest_in_rows
from crossedge.runtime.progress import stage
from crossedge.runtime.types import Ints
from crossedge.weights.distinct import Distinct
from crossedge.weights.edge_list import EdgeList

if TYPE_CHECKING:
    from crossedge.numerics.neighbours.nearest import Nearest


class Search(NamedTuple):
    """The nearest neighbours of some or all atoms, which are the distinct points."""

    k: int  # serves all numbers of neighbours up to this
    atoms: Distinct
    chosen: Ints | None  # the atoms that were searched; None for all
    nearest: Nearest | None  # None for a matrix and for few points, where a search costs little


def search(atoms: Distinct, k: int, chosen: Ints | None = None) -> Search:
    """Find the k nearest neighbours among the chosen atoms, or among all."""
    between, copies = atoms.distances, atoms.copies
    if not isinstance(between, PointDistances) or (chosen is None and between.n <= SMALL):
        return Search(k, atoms, None, None)
    from crossedge.numerics.neighbours.nearest import nearest_of_points

    points = between.points
    if chosen is not None:
        points, copies = points[chosen], copies[chosen]
    with stage(f"{k} neighbours of {len(points):,} points"):
        return Search(k, atoms, chosen, nearest_of_points(points, k, between.p, copies))


def edges_of_search(found: Search, k: int) -> EdgeList:
    """Return the graph of the k nearest neighbours, for any k up to the one of the search."""
    _, atoms, chosen, nearest = found
    if nearest is None:
        i, j, weight = nearest_in_rows(rows_of(atoms.distances), k, atoms.copies)
    else:
        from crossedge.numerics.neighbours.nearest import edges_of

        i, j, weight = edges_of(nearest, k)
    if chosen is not None:
        i, j = chosen[i], chosen[j]
    # i == j stands for the copies of one point, which are neighbours of each other both ways
    return EdgeList.from_pairs(atoms.atom, i, j, np.where(i == j, 2 * weight, weight))
