"""Kernel matrices as weights, for the maximum mean discrepancy and the energy distance.

Kernel tests differ from graph tests in W only, so the same nulls serve them. The diagonal of W is
zero: the unbiased estimate does not use it, and for the energy kernel it is 0 anyway.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import prod
from numbers import Integral
from typing import ClassVar

import numpy as np

from crossedge.data.distances import Distances, matrix_distances
from crossedge.runtime.arrays import clear_diagonal, constants, fixed, is_tensor, namespace
from crossedge.runtime.types import Array
from crossedge.weights.family import PairWeights, Weights
from crossedge.weights.low_rank import energy_features
from crossedge.weights.scales import (
    Scale,
    check_positive,
    check_scale,
    learns,
    median_distances,
    scale_values,
    show_scale,
)

# Distances are cut off at this many bandwidths: every kernel has vanished there, and the square of
# the ratio is still finite.
LARGEST_RATIO = 1e150


class KernelWeights(Weights):
    """Base class of weights that are a kernel: W[i, j] is a function of the distance of i and j.

    The default statistic "mmd" is the unbiased estimate of the squared MMD.

    See Also
    --------
    GaussianKernel, LaplaceKernel, InverseMultiquadricKernel, EnergyKernel, LinearKernel,
    QuadraticKernel :
        The kernels.
    """

    compiled_profile: ClassVar[str] = ""  # its name in `numerics.pairs.kernels`, if it has one
    degree: ClassVar[int] = 0  # c times the distances have c^degree times the weights; 0: not so

    @property
    def default_statistic(self) -> str:
        return "mmd"

    @property
    def is_smooth(self) -> bool:
        return True

    def check_size(self, n: int) -> None:
        """Accept any n: two points are enough."""


class BandwidthKernel(KernelWeights):
    """Base class of kernels that are a function of distance / bandwidth, or a mean of these."""

    bandwidth: Scale

    def __post_init__(self) -> None:
        object.__setattr__(self, "bandwidth", check_scale(self.bandwidth, "bandwidth", zero=False))

    @property
    @abstractmethod
    def title(self) -> str:
        """The name of the kernel without its bandwidth."""

    @abstractmethod
    def profile(self, ratio: Array) -> Array:
        """Return the kernel as a function of distance / bandwidth."""

    @property
    def name(self) -> str:
        return f"{self.title} kernel ({show_scale(self.bandwidth, 'bandwidth', 'bandwidths')})"

    def of_matrices(self, distances: Array) -> Array:
        xp, batch = namespace(distances), distances.shape[:-2]
        if learns(self.bandwidth) and is_tensor(distances):
            check_positive(scale_values(self.bandwidth), "bandwidth")
            levels = list(self.bandwidth.reshape(-1).to(distances))  # type: ignore[union-attr]
        else:
            values = self.bandwidths(distances)
            levels = [constants(h, distances).reshape(*batch, 1, 1) for h in values]
        total = 0.0
        for h in levels:
            total = total + self.profile(xp.clip(distances / h, max=LARGEST_RATIO))
        return symmetric_without_diagonal(total / len(levels))

    def bandwidths(self, distances: Array) -> list[list[float]]:
        """Return, for each bandwidth, a list of its values for each of (..., n, n) distances."""
        if isinstance(self.bandwidth, str):
            return [[median or 1.0 for median in median_distances(distances)]]
        values = scale_values(self.bandwidth)
        return [[value] * prod(distances.shape[:-2]) for value in values]


@dataclass(frozen=True)
class GaussianKernel(BandwidthKernel):
    """The Gaussian kernel exp(-d^2 / (2 h^2)), for the maximum mean discrepancy (MMD) [1]_.

    Parameters
    ----------
    bandwidth : float, sequence of floats, or "median", optional
        The bandwidth h; for several, W is the mean of their kernels. "median" is the median
        distance between pooled points (if that is 0, between points that differ), which
        derivatives treat as a constant.

    Raises
    ------
    TypeError
        If a bandwidth is not a real number.
    ValueError
        If a bandwidth is not positive, or requires a gradient.

    See Also
    --------
    LaplaceKernel, InverseMultiquadricKernel, EnergyKernel : Other kernels.

    Notes
    -----
    The statistic "mmd" is the unbiased estimate xx + yy - 2 xy of the squared MMD, with the means
    of the kernel over distinct pairs inside x, inside y and between them. It may be negative. A
    sample of one point has no distinct pairs: its mean is left out, which makes a bias.

    References
    ----------
    .. [1] A. Gretton and co-authors, "A kernel two-sample test", Journal of Machine Learning
       Research, 2012.

    Examples
    --------
    >>> import numpy as np
    >>> import crossedge as ce
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(100, 3)), rng.normal(size=(80, 3)) + [0.3, 0, 0]
    >>> ce.two_sample(x, y, ce.GaussianKernel(2.0), rng=0)
    two-sample test: Gaussian kernel (bandwidth 2), unbiased squared MMD, 9,999 random labellings
      samples    100 and 80 points
      statistic  0.0123967  (if the distributions are equal: 0 ± 0.005803)
      z-score    2.14
      p-value    0.04
    """

    bandwidth: Scale = "median"
    compiled_profile: ClassVar = "gaussian"

    @property
    def title(self) -> str:
        return "Gaussian"

    def profile(self, ratio: Array) -> Array:
        return namespace(ratio).exp(-(ratio**2) / 2)


@dataclass(frozen=True)
class LaplaceKernel(BandwidthKernel):
    """The Laplace kernel exp(-d / h), a product over coordinates with distance=1.

    Parameters
    ----------
    bandwidth : float, sequence of floats, or "median", optional
        The bandwidth h, as for `GaussianKernel`.

    Raises
    ------
    TypeError
        If a bandwidth is not a real number.
    ValueError
        If a bandwidth is not positive, or requires a gradient.

    See Also
    --------
    GaussianKernel : A kernel that falls off faster.
    """

    bandwidth: Scale = "median"
    compiled_profile: ClassVar = "laplace"

    @property
    def title(self) -> str:
        return "Laplace"

    def profile(self, ratio: Array) -> Array:
        return namespace(ratio).exp(-ratio)


@dataclass(frozen=True)
class InverseMultiquadricKernel(BandwidthKernel):
    """The inverse multiquadric kernel 1 / sqrt(1 + d^2 / h^2), which falls off slowly.

    Parameters
    ----------
    bandwidth : float, sequence of floats, or "median", optional
        The bandwidth h, as for `GaussianKernel`.

    Raises
    ------
    TypeError
        If a bandwidth is not a real number.
    ValueError
        If a bandwidth is not positive, or requires a gradient.

    See Also
    --------
    GaussianKernel : A kernel that falls off faster.
    """

    bandwidth: Scale = "median"
    compiled_profile: ClassVar = "inverse multiquadric"

    @property
    def title(self) -> str:
        return "inverse multiquadric"

    def profile(self, ratio: Array) -> Array:
        return 1 / namespace(ratio).sqrt(1 + ratio**2)


@dataclass(frozen=True)
class EnergyKernel(KernelWeights):
    """The energy kernel, minus the distance, for the energy distance [1]_.

    Parameters
    ----------
    rank : int, optional
        Approximate the kernel by so many landmarks, points that are drawn from the pooled sample.
        Memory and time then grow with n rather than with its square, and there is no gradient.
        The p-value stays valid, since landmarks are drawn without looking at labels. The default
        statistic is then "mmd", since the kernel of a point and itself is not 0 any more.

    Raises
    ------
    TypeError
        If the rank is not an integer.
    ValueError
        If the rank is not positive.

    See Also
    --------
    GaussianKernel : A kernel with a bandwidth.

    Notes
    -----
    The statistic "energy" is 2 E|X - Y| - E|X - X'| - E|Y - Y'|, with means over all pairs,
    including those of a point and itself. This is the squared energy distance between the two
    samples, which is never negative; in one dimension it is the square of
    `scipy.stats.energy_distance`. The statistic "mmd" excludes pairs of a point and itself, and is
    unbiased.

    References
    ----------
    .. [1] G. Szekely and M. Rizzo, "Testing for equal distributions in high dimension", InterStat,
       2004.

    Examples
    --------
    >>> import crossedge as ce
    >>> found = ce.two_sample([0.0, 1.0, 2.0], [3.0, 5.0], ce.EnergyKernel())
    >>> f"{found.statistic:.4f}"
    '4.1111'
    """

    rank: int | None = None
    compiled_profile: ClassVar = "energy"
    degree: ClassVar = 1

    def __post_init__(self) -> None:
        if self.rank is None:
            return
        if isinstance(self.rank, bool) or not isinstance(self.rank, Integral):
            raise TypeError(f"rank={self.rank!r} is not an integer: give a positive one, or None")
        if self.rank < 1:
            raise ValueError(f"rank={self.rank} is not positive: give a number of landmarks")

    @property
    def name(self) -> str:
        return "energy kernel" if self.rank is None else f"energy kernel ({self.rank} landmarks)"

    @property
    def is_smooth(self) -> bool:
        return self.rank is None

    @property
    def default_statistic(self) -> str:
        return "energy" if self.rank is None else "mmd"

    @property
    def peak_matrices(self) -> float:
        return super().peak_matrices if self.rank is None else 0.0

    def of_matrices(self, distances: Array) -> Array:
        if self.rank is None:
            return symmetric_without_diagonal(-distances)
        matrices = np.asarray(fixed(distances)).reshape(-1, *distances.shape[-2:])
        each = [energy_features(matrix_distances(one), self.rank) for one in matrices]
        dense = np.stack([one.unit * one.dense() for one in each])
        return constants(dense.reshape(distances.shape), distances)

    def pairs(self, distances: Distances) -> PairWeights:
        if self.rank is None:
            return super().pairs(distances)
        return energy_features(distances, self.rank)


def symmetric_without_diagonal(matrices: Array) -> Array:
    """Return the means of entries above and below the diagonal, which is cleared."""
    symmetric = matrices / 2 + matrices.mT / 2  # halves first, since the sum may overflow
    if symmetric.ndim == 2:
        return clear_diagonal(symmetric)
    return symmetric * constants(1 - np.eye(matrices.shape[-1]), matrices)
