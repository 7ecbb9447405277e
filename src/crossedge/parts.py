"""The parts of an adaptive test: what the default looks at, chosen by the pooled sample alone.

Differences show in different views of the points. So the default has parts on

- the points as they are: neighbourhoods of all sizes, and a global part, close to the energy test;
- whitened points, on which a shift shows that is small against other, correlated columns;
- the ranks of all columns, which no outlier and no unit of a column can blind;
- the squares of these ranks, which see changes of spread in a few of many columns;
- second moments, by the quadratic kernel: covariances in many columns.

A view is a map of the pooled points that is learned from them alone, so the p-value stays valid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from crossedge.data.distances import (
    Distances,
    PointDistances,
    RowDistances,
    distance_matrix,
    euclidean_points,
    matrix_distances,
    point_distances,
)
from crossedge.data.representations import in_own_order, principal, ranks, squares, whitened
from crossedge.numerics.tolerances import TIE
from crossedge.runtime.threads import in_threads
from crossedge.runtime.types import Floats
from crossedge.statistics import Statistic, statistic_named
from crossedge.weights import (
    EnergyKernel,
    LinearKernel,
    NearestNeighbours,
    PairWeights,
    QuadraticKernel,
    Weights,
)
from crossedge.weights.rounded_neighbours import RoundedNeighbours
from crossedge.weights.searches import Search
from crossedge.weights.thinned_neighbours import ThinnedNeighbours

DEFAULT_STATISTICS = ("weighted", "fisher")
MOST_EDGES = 12 * 10**6  # in a classical graph of the default for many points
# An energy kernel by so many landmarks is as powerful as that of all pairs, where columns are few.
LANDMARKS, FEW_COLUMNS = 128, 32
MANY_POINTS = 1000  # from here on, landmarks save time
MANY_LANDMARKS, LEAST_LANDMARKS = 512, 32  # in more columns, and for very many points
MOST_FEATURES = 8 * 10**6  # of all points, in a part of a view: labellings take time like that
MOST_LINEAR = 32 * 10**6  # of these in a part that needs no distances
MANY_COORDINATES = 12  # beyond, finding neighbours takes time like n^2
MOST_WIDE_POINTS = 50_000  # whose neighbours are found then, in seconds
SIZE_RATIO = 4  # the ratio of one size of neighbourhood to the next
OF_VIEW = 16  # the size of the neighbourhoods of whitened points
COMPONENTS, RANK_COMPONENTS = "principal components", "principal components of ranks"
BLOCK_ROWS = 128  # rows of a matrix in a block, the unit of work of a thread
WHITENED, RANKS, SQUARED_RANKS = "whitened", "ranks", "squared ranks"
# Prior weights of all parts of a kind. They were chosen on simulated alternatives, low and high
# dimensional: local and global parts are what most differences need.
LOCAL, GLOBAL, QUADRATIC = 6.0, 7.0, 2.0
OF_WHITENED, OF_RANKS, OF_SQUARED_RANKS = 1.4, 2.0, 0.7


class Part(NamedTuple):
    """One part of an adaptive test, and its prior weight in the soft maximum."""

    weights: Weights
    statistic: Statistic
    prior: float
    view: str = ""  # a name in VIEWS; "" for the points as they are


def all_parts(
    weights: Sequence[Weights], names: Sequence[str], prior: float = 1.0, view: str = ""
) -> list[Part]:
    """Return all combinations of weights and statistics, with equal shares of the prior weight."""
    each = prior / max(len(weights) * len(names), 1)
    return [Part(one, statistic_named(name), each, view) for one in weights for name in names]


VIEWS: dict[str, Callable[[Floats], Floats]] = {
    WHITENED: whitened,
    RANKS: ranks,
    SQUARED_RANKS: lambda points: squares(ranks(points)),
    COMPONENTS: lambda points: principal(points, components(len(points))),
    RANK_COMPONENTS: lambda points: principal(ranks(points), components(len(points))),
}


class Views:
    """The distances of the pooled points in all views, computed when a part first asks."""

    def __init__(self, distances: Distances, *, dense: bool) -> None:
        self.dense = dense
        self.points = euclidean_points(distances)
        self._known = {"": with_matrix(distances) if dense else distances}
        self._searches: dict[tuple[str, int | None], Search] = {}

    @property
    def columns(self) -> int:
        """The number of columns of points that have views; 0 if only distances are known."""
        return 0 if self.points is None else self.points.points.shape[1]

    def distances(self, view: str) -> Distances:
        """Return the distances in a view."""
        if view not in self._known:
            assert self.points is not None
            found: Distances = point_distances(in_own_order(VIEWS[view], self.points.points), 2.0)
            self._known[view] = with_matrix(found) if self.dense else found
        return self._known[view]

    def pairs(self, weights: Weights, view: str) -> PairWeights:
        """Return W in a view; graphs of fewer neighbours are read off the search of one of more."""
        distances = self.distances(view)
        if self.dense or not isinstance(weights, NearestNeighbours) or weights.is_smooth:
            return weights.pairs(distances)
        weights.check_size(distances.n)
        kind = view, getattr(weights, "among", None)
        if kind not in self._searches or self._searches[kind].k < weights.k:
            self._searches[kind] = weights.search(distances)
        return weights.edges_from(self._searches[kind])


def with_matrix(distances: Distances) -> Distances:
    """Return the distances with their matrix, so that it is computed once for all weights."""
    if isinstance(distances, RowDistances) and distances.matrix is not None:
        return distances
    points = distances if isinstance(distances, PointDistances) else None
    return matrix_distances(distance_matrix(distances), points)


def default_parts(views: Views, names: Sequence[str]) -> list[Part]:
    """Return the default parts of up to some thousand points, which need matrices of all pairs.

    - Local parts: smoothed nearest neighbours, at temperatures where 4, 16, 64, ... points share
      the choice of a neighbour, and a classical graph, which depends on ranks of distances only.
    - Global parts: smoothed nearest neighbours at the gap to the farthest point, where the weighted
      count is close to the energy distance; for many points in few columns, that by landmarks.
    """
    distances = views.distances("")
    n = distances.n
    sizes = [SIZE_RATIO**step for step in range(1, 12) if SIZE_RATIO**step <= n / 3]
    local, whole = _smoothed(distances, sizes)
    classical = NearestNeighbours(min(max(n // 8, 1), n - 1))
    by_landmarks = n > MANY_POINTS and 0 < views.columns <= FEW_COLUMNS
    energy: list[Weights] = [EnergyKernel(rank=LANDMARKS)]
    parts = all_parts([*local, classical], names, LOCAL)
    parts += all_parts(energy if by_landmarks else whole, names[:1], GLOBAL)
    for view, prior in _views_of(views):
        sizes = [OF_VIEW] if view == WHITENED and n >= 3 * OF_VIEW else []
        if sizes or not by_landmarks:
            local, whole = _smoothed(views.distances(view), sizes)
            parts += all_parts(local, names[-1:], prior, view)
        parts += all_parts(energy if by_landmarks else whole, names[:1], prior, view)
    return parts + _quadratic_parts(views, names)


def sparse_parts(views: Views, names: Sequence[str]) -> list[Part]:
    """Return the default parts for many points, which need no matrix.

    - Local parts: the classical graph of as many nearest neighbours as there is time for, up to
      256, and smoothed neighbours at the scales of 4, 16 and 64 points, in whole units. The larger
      ones see what is spread over many points, as a change of scale is, and the smaller ones what
      is local. In many dimensions, where no search is faster than n^2, at most 50,000 points are
      searched.
    - Global parts: the energy kernel by landmarks. In so many columns that these are too few to
      span them, the linear kernel, to which it is close on shifts.
    - Second moments: of so many principal components as there is time for.
    """
    total = views.distances("").n
    n = min(total, MOST_WIDE_POINTS) if views.columns > MANY_COORDINATES else total
    sizes = [SIZE_RATIO**step for step in range(1, 5)]
    few = [k for k in reversed(sizes) if n * k <= MOST_EDGES and k < n / 4]  # one search for all
    among = n if n < total else None
    largest = few[0] if few else 1
    graphs: list[Weights] = [
        NearestNeighbours(largest) if among is None else ThinnedNeighbours(largest, among=among)
    ]
    graphs += [RoundedNeighbours(largest, among=among, size=size) for size in few[1:]]
    parts = all_parts(graphs, names, LOCAL)
    most = LANDMARKS if views.columns <= FEW_COLUMNS else MANY_LANDMARKS
    rank = max(min(MOST_FEATURES // total, most), LEAST_LANDMARKS)
    linear = rank < 2 * views.columns and total * views.columns <= MOST_LINEAR
    whole: Weights = LinearKernel() if linear else EnergyKernel(rank=max(rank, LANDMARKS))
    parts += all_parts([whole], names[:1], GLOBAL)
    of_view: Weights = LinearKernel() if linear else EnergyKernel(rank=rank)
    for view, prior in _views_of(views):
        parts += all_parts([of_view], names[:1], prior, view)
    return parts + _quadratic_parts(views, names)


def _views_of(views: Views) -> list[tuple[str, float]]:
    """Return the views that show something else than the points do, with their prior weights."""
    if not views.columns:
        return []
    found = [(RANKS, OF_RANKS), (SQUARED_RANKS, OF_SQUARED_RANKS)]
    return found if views.columns == 1 else [(WHITENED, OF_WHITENED), *found]


def _quadratic_parts(views: Views, names: Sequence[str]) -> list[Part]:
    """Return the parts on second moments; in one column squared ranks see the same."""
    if views.columns < 2:
        return []
    few = views.dense or views.columns <= components(views.distances("").n)
    kernel = [QuadraticKernel()]
    parts = all_parts(kernel, names, QUADRATIC, "" if few else COMPONENTS)
    of_ranks = RANKS if few else RANK_COMPONENTS
    return parts + all_parts(kernel, names[-1:], QUADRATIC / 4, of_ranks)


def components(n: int) -> int:
    """Return the number of principal components whose second moments there is time for."""
    return max(int(math.sqrt(2 * MOST_FEATURES / n)), 2)


def _smoothed(distances: Distances, sizes: list[int]) -> tuple[list[Weights], list[Weights]]:
    """Return smoothed neighbours at the scales of neighbourhoods of these sizes, and of all points.

    The temperature is the median, over points, of the gap between the distances to the nearest and
    to the 4th, 16th, 64th, ... nearest neighbour. Gaps mean the same in any dimension.
    """
    *gaps, farthest = _median_gaps(distance_matrix(distances), [*sizes, distances.n - 1])
    temperatures = sorted({gap for gap in gaps if gap > 0} - {farthest})
    local: list[Weights] = [NearestNeighbours(1, temperature) for temperature in temperatures]
    return local, [NearestNeighbours(1, farthest)] if farthest > 0 else []


def _median_gaps(matrix: Floats, sizes: list[int]) -> list[float]:
    """Return the median gap between the nearest and the size-th nearest distance, for each size."""
    n = len(matrix)
    places = [0, *(size - 1 for size in sizes)]

    def of_rows(first: int) -> Floats:
        rows = matrix[first : first + BLOCK_ROWS].copy()
        each = np.arange(len(rows))
        rows[each, first + each] = np.inf  # a point is not its own neighbour
        return np.partition(rows, places, axis=1)[:, places]

    ordered = np.concatenate(in_threads(of_rows, range(0, n, BLOCK_ROWS)))
    gaps = ordered[:, 1:] - ordered[:, :1]
    gaps[gaps <= (TIE - 1) * ordered[:, 1:]] = 0.0  # the distances tie
    return [float(gap) for gap in np.median(gaps, axis=0)]
