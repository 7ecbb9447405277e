"""Pair weights as products of features: the form of smooth kernels for any number of points.

A kernel is approximated by the points' relation to a few of them, the landmarks (Williams and
Seeger, 2001). The energy kernel -d is the same, up to row effects, as

    k(a, b) = mu(a) + mu(b) - d(a, b) - mu,   mu(a) the mean distance of a to the landmarks,

where mu is the mean of mu(a) over the landmarks. Let K have the values of k between landmarks,
K = U S U', and k_a those between a and the landmarks. The features of a are S^(-1/2) U' k_a, and
their products are k itself wherever a landmark takes part. They never exceed k on the diagonal, so
the sum of k(a, a) less that of the squared features bounds what is left out.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from crossedge.data.distances import Distances, RowDistances
from crossedge.runtime.threads import one_blas_thread
from crossedge.runtime.types import Floats, Ints

SMALLEST = 1e-10  # of an eigenvalue that is kept, relative to the largest
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: mixes bits upwards


@dataclass(frozen=True, eq=False)
class LowRankWeights:
    """W[i, j] = unit * (features of i) (features of j)', and 0 on the diagonal."""

    features: Floats  # (n, rank), of the order of 1
    unit: float = 1.0
    left_out: float = 0.0  # the share of the trace of the kernel that the features do not have

    @property
    def n(self) -> int:
        """The number of pooled points."""
        return len(self.features)

    @cached_property
    def squares(self) -> Floats:
        """The squared length of the features of each point, (n,)."""
        found: Floats = np.einsum("ij,ij->i", self.features, self.features)
        return found

    @cached_property
    def degree(self) -> Floats:
        """The row sums of W / unit, (n,)."""
        found: Floats = self.features @ self.features.sum(0) - self.squares
        return found

    @property
    def total(self) -> float:
        """The sum m of the weights over all pairs, over the unit."""
        return float(self.degree.sum()) / 2

    @property
    def step(self) -> float:
        """0: sums of such weights are not multiples of a common step."""
        return 0.0

    @property
    def degree_step(self) -> float:
        """0: differences of degrees are not multiples of a common step."""
        return 0.0

    def dense(self) -> Floats:
        """Return W / unit as an (n, n) matrix."""
        W: Floats = self.features @ self.features.T
        np.fill_diagonal(W, 0.0)
        return W


def energy_features(distances: Distances, rank: int) -> LowRankWeights:
    """Return the energy kernel by at most `rank` landmarks.

    The landmarks are distinct points that look random, chosen by the values of the points alone, or
    drawn at random, with the data as the seed, where only distances are known.
    """
    places, D = _to_landmarks(distances, min(rank, distances.n))
    unit = float(D.max())
    if unit == 0:
        return LowRankWeights(np.zeros((distances.n, 1)))
    D /= unit
    mean = D.mean(1)
    K = mean[:, None] + mean[places] - D - mean[places].mean()
    among = (K[places] + K[places].T) / 2
    with one_blas_thread():
        values, vectors = np.linalg.eigh(among)
    kept = values > SMALLEST * values[-1]
    features = K @ (vectors[:, kept] / np.sqrt(values[kept]))
    trace = float((2 * mean - mean[places].mean()).sum())
    left_out = 1 - float(np.einsum("ij,ij->", features, features)) / trace
    return LowRankWeights(features - features.mean(0), unit, left_out)


def _to_landmarks(distances: Distances, count: int) -> tuple[Ints, Floats]:
    """Return the indices of the landmarks, and (n, count) distances to them."""
    if isinstance(distances, RowDistances):
        random = np.random.default_rng(zlib.crc32(distances.row(0).tobytes()))
        places: Ints = random.choice(distances.n, count, replace=False)
        return places, np.stack([distances.row(place) for place in places], axis=1)
    points = np.ldexp(distances.points, -500)  # of the order of 1, so that powers stay in range
    from scipy.spatial.distance import cdist  # a tenth of a second, for large samples only

    places = np.unique(scrambled(points), return_index=True)[1][:count]
    if np.isinf(distances.p):
        found = cdist(points, points[places], "chebyshev")
    else:
        found = cdist(points, points[places], "minkowski", p=distances.p)
    return places, np.ldexp(found, 500 - distances.exponent)


def scrambled(points: Floats) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Return a number for each point that looks random but depends on its coordinates alone.

    So the landmarks, those with the lowest numbers, depend on the order of the points no more than
    on their labels.
    """
    bits = np.ascontiguousarray(points + 0.0).view(np.uint64)  # -0 becomes 0
    out = np.zeros(len(points), np.uint64)
    for column in bits.T:
        out = (out ^ column) * MULTIPLIER
        out ^= out >> np.uint64(29)
    return out
