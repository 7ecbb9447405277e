"""Points: how far the mix of a point's neighbourhood departs from chance.

For pair weights W and labels z, 1 in y, the score of a point is the sum of W[i, j] z[j] over j.
Over all labellings with n_y ones it has mean p d_i and variance

    p (1 - p) n / (n - 1) (sum of W[i, j]^2 - d_i^2 / n),   p = n_y / n,  d_i = sum of W[i, j],

which is that of sampling without replacement. The statistic of a point is the largest |z-score|
over all sizes of neighbourhood.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from crossedge.data.distances import Distances
from crossedge.runtime.types import Bools, Floats, Ints
from crossedge.weights import EdgeList, NearestNeighbours, Weights

SIZES = (8, 32, 128)  # neighbours
LARGEST_SHARE = 4  # a neighbourhood is at most this part of the pooled sample: n / 4
MOST_WORK = 4e9  # neighbours times labellings, over all points: some seconds
DIGITS = 4  # of a score: scores that differ by rounding errors tie
STEP, STEPS = 0.01, 10_000  # of the histogram of |z-scores|


def default_weights(n: int, labellings: int) -> list[Weights]:
    """Return neighbourhoods of several sizes, chosen by the numbers of points and labellings."""
    few = [k for k in SIZES if k <= n / LARGEST_SHARE]
    while len(few) > 1 and 2.0 * n * sum(few) * labellings > MOST_WORK:
        few.pop()
    return [NearestNeighbours(k) for k in few or [1]]


class Neighbourhoods:
    """The scores of all points under one family of weights.

    Equal points share a row: copies of a point count among its neighbours, itself included.
    """

    def __init__(self, weights: Weights, distances: Distances, in_x: Bools) -> None:
        pairs = weights.pairs(distances)
        n, p = len(in_x), float((~in_x).mean())
        self.atom: Ints = np.arange(n)
        if isinstance(pairs, EdgeList):
            self.atom, m = pairs.atom, len(pairs.sizes)
            off = pairs.i != pairs.j
            i = np.concatenate([pairs.i, pairs.j[off]])
            j = np.concatenate([pairs.j, pairs.i[off]])
            weight = np.concatenate([pairs.weight, pairs.weight[off]]).astype(np.float32)
            self.matrix: Any = sparse.csr_array((weight, (i, j)), shape=(m, m))
        else:
            self.matrix = np.asarray(pairs.dense(), np.float32)
        sizes = np.bincount(self.atom).astype(np.float64)
        self.degree: Floats = np.asarray(self.matrix @ sizes, np.float64)
        squares = np.asarray((self.matrix * self.matrix) @ sizes, np.float64)
        variance = p * (1 - p) * n / (n - 1) * (squares - self.degree**2 / n)
        known = variance > 1e-6 * np.maximum(squares, 1e-300)
        self.scale = np.where(known, 1 / np.sqrt(np.where(known, variance, 1.0)), 0.0)
        self.p = p
        # how many neighbours of equal weight would have the same variance
        self.effective: Floats = self.degree**2 / np.maximum(squares, 1e-300)

    def in_y(self, labels: Any) -> Any:
        """Return the weight of the neighbours in y, (atoms, lanes), of (n, lanes) labels of y."""
        if len(self.degree) < len(self.atom):
            cells = sparse.csr_array(
                (np.ones(len(self.atom), np.float32), (self.atom, np.arange(len(self.atom))))
            )
            labels = cells @ labels
        return self.matrix @ labels

    def zscores(self, labels: Any) -> Any:
        """Return the (atoms, lanes) z-scores, positive where y is over-represented."""
        centred = self.in_y(labels) - (self.p * self.degree)[:, None].astype(np.float32)
        return centred * self.scale[:, None].astype(np.float32)

    def share(self, y: Any) -> Floats:
        """Return the share of y in the neighbourhood of each point, (n,); p if it is empty."""
        found = self.in_y(y[:, None])[:, 0] / np.where(self.degree > 0, self.degree, 1.0)
        return np.where(self.degree > 0, found, self.p)[self.atom].clip(0, 1)

    def excess(self, y: Any) -> Floats:
        """Return the departure of the share of y from p, over the largest one possible: -1 to 1."""
        gap = self.share(y) - self.p
        return np.clip(gap / np.where(gap > 0, 1 - self.p, self.p), -1, 1)

    def zscores_within(self, some: Bools, y: Any) -> Floats:
        """Return the (n,) z-scores of the neighbours among some of the points, 0 without any."""
        kept = some.astype(np.float32)
        sizes = np.bincount(self.atom, kept)
        gap = self.in_y((kept * (y - np.float32(self.p)))[:, None])[:, 0]
        squares = np.asarray((self.matrix * self.matrix) @ sizes, np.float64)
        scale = np.sqrt(self.p * (1 - self.p) * np.where(squares > 0, squares, np.inf))
        return np.asarray(gap / scale, np.float64)[self.atom]


class PointScan:
    """The largest |z-score| of every point over several neighbourhoods, on many labellings."""

    def __init__(self, several: list[Neighbourhoods], in_x: Bools) -> None:
        self.several = several
        self.shared = all(np.array_equal(one.atom, several[0].atom) for one in several)
        y = (~in_x).astype(np.float32)
        scores = np.stack([one.zscores(y[:, None])[one.atom, 0] for one in several])
        self.strongest = np.abs(scores).argmax(0)
        self.observed: Floats = np.abs(scores).max(0).astype(np.float64)
        excess = np.stack([one.excess(y) for one in several])
        self.excess: Floats = np.take_along_axis(excess, self.strongest[None], 0)[0]
        self.counts = np.zeros(STEPS, np.int64)

    def add(self, labels: Any) -> Floats:
        """Take note of (n, lanes) labels of y, and return the largest score of each labelling."""
        best: Any = None
        for one in self.several:
            scores = np.abs(one.zscores(labels))
            scores = scores if self.shared else scores[one.atom]
            best = scores if best is None else np.maximum(best, scores, out=best)
        places = np.minimum((best / STEP).astype(np.int64), STEPS - 1)
        copies = np.bincount(self.several[0].atom) if self.shared else np.ones(len(best), np.int64)
        for copy in np.unique(copies):
            some = places[copies == copy]
            self.counts += copy * np.bincount(some.ravel(), minlength=STEPS)
        largest: Floats = np.round(best.max(0).astype(np.float64), DIGITS)
        return largest

    def pvalues(self) -> Floats:
        """Return for each point the share of all scores on all labellings that are as large.

        Scores are standardised, so those of all points are compared. The shares are rounded up.
        """
        tail = np.cumsum(self.counts[::-1])[::-1]
        places = np.minimum((self.observed / STEP).astype(np.int64) - 1, STEPS - 1)
        found: Floats = np.maximum(tail[np.maximum(places, 0)], 1) / tail[0]
        return found
