"""Kernels that compare moments: means by the linear kernel, second moments by the quadratic one."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crossedge.data.distances import Distances, distance_matrix, euclidean_points
from crossedge.runtime.headroom import check_room
from crossedge.runtime.types import Array, Floats
from crossedge.weights.dense import DenseWeights
from crossedge.weights.family import PairWeights
from crossedge.weights.kernels import KernelWeights, symmetric_without_diagonal
from crossedge.weights.low_rank import LowRankWeights

MANY_POINTS = 1000  # from here on, features replace the matrix of all pairs if they are few enough
USUAL_EXPONENT = 190  # below 2^190 sums of fourth powers of weights are in the range of doubles
FEW_FEATURES = 0.25  # as a fraction of the number of points


class MomentKernel(KernelWeights):
    """Base class of powers of the inner products of centred points.

    The statistic is in powers of the unit of the points. Where those leave the range of doubles, it
    is printed in the nearest unit that is in it, and z-scores and p-values are those of any scale.

    They need the Euclidean distance; for another one, products are those of the points that
    classical scaling gives these distances.
    """

    order: ClassVar[int]  # the power

    @staticmethod
    @abstractmethod
    def count(columns: int) -> int:
        """Return the number of features of points with so many columns."""

    @staticmethod
    @abstractmethod
    def features(points: Floats) -> Floats:
        """Return features whose inner products are the kernel."""

    def of_matrices(self, distances: Array) -> Array:
        squared = (distances / 2 + distances.mT / 2) ** 2
        rows = squared.mean(-1, keepdims=True)
        # -2 a'b, by centring the squared distances twice
        products = squared - rows - rows.mT + rows.mean(-2, keepdims=True)
        return symmetric_without_diagonal((products / -2) ** self.order)

    def pairs(self, distances: Distances) -> PairWeights:
        """Return W of the pooled sample, as products of features where these are few."""
        self.check_size(distances.n)
        euclidean = euclidean_points(distances)
        if euclidean is not None:
            points = np.ldexp(euclidean.points, -500)  # of the order of 1
            points -= points.mean(0)
            exponent = self.degree * (500 - euclidean.exponent)
            if distances.n > MANY_POINTS and self._are_few(points):
                return LowRankWeights(self.features(points), _power(exponent))
            check_room(distances.n, self.peak_matrices)
            W: Floats = (points @ points.T) ** self.order
            np.fill_diagonal(W, 0.0)
            return _in_unit(W, exponent)
        check_room(distances.n, self.peak_matrices)
        matrix = distance_matrix(distances)
        largest = int(np.frexp(matrix.max())[1])
        return _in_unit(self.of_matrices(np.ldexp(matrix, -largest)), self.degree * largest)

    def _are_few(self, points: Floats) -> bool:
        return self.count(points.shape[1]) <= FEW_FEATURES * len(points)


@dataclass(frozen=True)
class LinearKernel(MomentKernel):
    """The kernel a'b of centred points, which compares means.

    Its statistic "mmd" estimates the squared distance of the means of both samples, and sees
    nothing else. With many columns it is close to the energy kernel on shifts, and needs no
    distances. For another distance than the Euclidean one, a'b is that of the points that classical
    scaling gives these distances.

    See Also
    --------
    QuadraticKernel : A kernel that sees second moments.
    EnergyKernel : A kernel that sees all differences.

    Examples
    --------
    >>> import numpy as np
    >>> import crossedge as ce
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(100, 300)), rng.normal(size=(100, 300)) + 0.1
    >>> ce.two_sample(x, y, ce.LinearKernel(), rng=0).pvalue
    0.0001
    >>> ce.two_sample(x, 2 * (y - 0.1), ce.LinearKernel(), rng=0).pvalue > 0.05
    True
    """

    degree: ClassVar[int] = 2
    order: ClassVar[int] = 1

    @property
    def name(self) -> str:
        return "linear kernel"

    @staticmethod
    def count(columns: int) -> int:
        return columns

    @staticmethod
    def features(points: Floats) -> Floats:
        return points

    def _are_few(self, points: Floats) -> bool:
        # they take no more memory than the points do
        return bool(points.shape[1] <= len(points))


@dataclass(frozen=True)
class QuadraticKernel(MomentKernel):
    """The kernel (a'b)^2 of centred points, which compares second moments.

    Its statistic "mmd" estimates the squared Frobenius distance of the second moments of both
    samples about the mean of the pooled points: without bias for a fixed centre. It sees changes of
    covariance in many columns that distances do not, and nothing of a shift that is small against
    the spread. It needs the Euclidean distance; for another one, (a'b)^2 is that of the points
    that classical scaling gives these distances. The statistic is in the fourth power of the unit
    of the points: beyond about 1e-77 and 1e77 that is no double, and the statistic is given in
    the nearest unit that is one. Its z-score and p-value are right at any scale.

    See Also
    --------
    LinearKernel : A kernel that sees means.
    EnergyKernel : A kernel that sees shifts.

    Examples
    --------
    >>> import numpy as np
    >>> import crossedge as ce
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(100, 300)), rng.normal(size=(100, 300))
    >>> y[:, -5:] = 3**0.5 * rng.normal(size=(100, 1))  # five columns are one
    >>> ce.two_sample(x, y, ce.QuadraticKernel(), rng=0).pvalue
    0.0001
    >>> ce.two_sample(x, y, ce.EnergyKernel(), rng=0).pvalue > 0.05
    True
    """

    degree: ClassVar[int] = 4
    order: ClassVar[int] = 2

    @property
    def name(self) -> str:
        return "quadratic kernel"

    @staticmethod
    def count(columns: int) -> int:
        return columns * (columns + 1) // 2

    @staticmethod
    def features(points: Floats) -> Floats:
        i, j = np.triu_indices(points.shape[1])
        found: Floats = points[:, i] * points[:, j]
        found[:, i != j] *= math.sqrt(2)
        return found


def _in_unit(W: Floats, exponent: int) -> DenseWeights:
    """Return weights of the order of 1, times 2^exponent."""
    if abs(exponent) < USUAL_EXPONENT:
        return DenseWeights.in_range(np.ldexp(W, exponent))
    return DenseWeights(W, _power(exponent))


def _power(exponent: int) -> float:
    """Return 2^exponent, or the nearest power of two in the range of doubles.

    So statistics beyond that range are neither 0 nor infinite, but in another unit.
    """
    return math.ldexp(1.0, min(max(exponent, -1021), 1023))
