"""The null of points that fall into few kinds: exact in how many of each kind are in x.

Where W has blocks, as for clusters far apart, or where one point decides, a hub or a far outlier,
the statistic is nearly a function of how many points of each block are in x. Its null is then in
lumps, which no number of moments describes. Given these counts, labels are independent from block
to block; mean and variance of a T + b L are known, and the rest is nearly normal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import takewhile

import numpy as np
import numpy.typing as npt
import torch
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.interpolate import CubicSpline
from scipy.spatial.distance import squareform
from scipy.special import gammaln

from crossedge.null.moments import unit_of, without_row_effects
from crossedge.numerics.saddlepoint import log_five_cumulant_tail
from crossedge.numerics.tails import log_four_moment_tail
from crossedge.statistics.label_moments import Form, LabelMoments, mean_label_product
from crossedge.weights import PairWeights

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MOST_KINDS, MOST_POINTS = 16, 2000
MOST_COUNTS = 20_000  # ways to divide n_x among the kinds
EXPLAINED, HALF = 0.3, 0.5  # of the variance: from where on counts matter, and rule
MISS = 0.08  # of the fourth moment, up to which given the counts a gamma law is near enough
APART = 1.0  # from the fifth cumulant of a gamma law, up to which it is believed
MORE = 0.5  # excess than that of a gamma law, or less, that is believed
SURE, FAR, MESH = -40.0, 40.0, 0.25  # standard deviations
SHARP = 0.01  # of what rounding may do, the least standard deviation


@dataclass(frozen=True)
class Strata:
    """All counts that are possible; T and L are those of `LabelMoments`, about their means."""

    log_probability: Floats
    mean_t: Floats
    mean_l: Floats
    variance_t: Floats
    covariance: Floats
    variance_l: Floats

    @property
    def lists_all(self) -> bool:
        """Every labelling, because every point is a kind of its own."""
        return not (self.variance_t.any() or self.variance_l.any())

    def mean(self, a: float, b: float) -> Floats:
        """Of a T + b L."""
        return a * self.mean_t + b * self.mean_l

    def variance(self, a: float, b: float) -> Floats:
        square = a * a * self.variance_t + 2 * a * b * self.covariance + b * b * self.variance_l
        return np.maximum(square, 0.0)


class Stratifications:
    """Of the same points, by the most kinds of which the counts can be listed, and by fewer.

    Points are of a kind if their rows of V, the weights without row effects, and their degrees are
    alike (Ward's clusters). Fewer kinds explain less, and are seldom asked for.
    """

    def __init__(self, weights: PairWeights, n_x: int) -> None:
        W = weights.dense().detach() / unit_of(weights)
        self.V, self.degree = (part.numpy() for part in without_row_effects(W))
        self.n_x, self.found = n_x, dict[int, Strata]()
        products = self.V @ self.V + np.outer(self.degree, self.degree) / weights.n
        own = np.diag(products)
        apart = np.sqrt(np.maximum(own[:, None] + own - 2 * products, 0.0))
        self.tree = linkage(squareform(apart, checks=False), "ward")

    def __iter__(self) -> Iterator[Strata]:
        for most in range(min(MOST_KINDS, len(self.V)), 1, -1):
            if most not in self.found:
                kind = fcluster(self.tree, most, "maxclust") - 1
                sizes = np.bincount(kind)
                if len(sizes) < most or _ways(sizes, self.n_x) > MOST_COUNTS:
                    continue
                counts = _counts(sizes, self.n_x)
                self.found[most] = stratified(self.V, self.degree, kind, counts)
            yield self.found[most]


def strata_of(weights: PairWeights, n_x: int) -> Iterable[Strata]:
    return Stratifications(weights, n_x) if 4 <= weights.n <= MOST_POINTS else ()


def log_mixture_tail(
    z: torch.Tensor, strata: Iterable[Strata], moments: LabelMoments, form: Form, sign: int
) -> torch.Tensor | None:
    """The logarithm of P(sign Z >= z), for a form Z of mean 0 and variance 1.

    A mixture over the counts of laws that differ in mean and variance only. What is left of the
    known cumulants of Z is theirs: all five where counts explain less than half of the variance, or
    the fifth is near that of a gamma law; else three or four moments. None where counts explain
    little, or what is left is far from a gamma law.
    """
    if not strata:
        return None
    law, excess, fifth = moments.law(form), moments.excess(form), moments.fifth_cumulant(form)
    std, finest = float(law.std), next(iter(strata), None)
    if finest is None or not std > 0:
        return None
    given = moments.in_t_and_l(form), sign, std / moments.unit
    if finest.lists_all:
        best: _Mixture | None = _fit(finest, *given, 0.0, 0.0, 0.0)
    elif excess is None or fifth is None:
        return None
    else:
        cumulants = sign * float(law.skewness), float(excess), sign * float(fifth)
        fits = (_fit(one, *given, *cumulants) for one in strata)
        telling = takewhile(lambda fit: fit.explained > EXPLAINED, fits)
        best = next((fit for fit in telling if fit.miss < MISS), None)
    if best is None:
        return None
    # values that are equal but for rounding count
    rounding = max(1e-6, 4e-14 * abs(float(moments.total)) * (abs(form.a) + abs(form.b)) / std)
    gaps = float(z) - moments.step(form) / std / 2 - rounding - best.mean
    gaps = gaps / np.maximum(best.std, SHARP * rounding)
    tails = best.log_tails(gaps) + best.log_probability
    return torch.logsumexp(torch.from_numpy(tails), 0).clamp(max=0.0)


@dataclass(frozen=True)
class _Mixture:
    """Laws given the counts; means and standard deviations in those of the whole."""

    log_probability: Floats
    mean: Floats
    std: Floats
    skewness: float
    excess: float
    fifth: float
    explained: float
    miss: float

    def log_tails(self, z: Floats) -> Floats:
        """Interpolated, since the logarithm of a tail bends slowly; 0 and -inf beyond all doubt."""
        low, high = max(z.min(), SURE), max(z.min(), 0.0) + FAR
        mesh = np.linspace(low, high, 2 + int((high - low) / MESH))
        points = torch.from_numpy(mesh)
        third, fourth, fifth = torch.tensor([self.skewness, self.excess, self.fifth]).double()
        if self.explained < HALF or abs(self.fifth - 3 * self.skewness**3) < APART:
            tails = log_five_cumulant_tail(points, third, fourth, fifth)
        else:
            tails = log_four_moment_tail(points, third, fourth)
        within: Floats = CubicSpline(mesh, tails.numpy())(np.clip(z, low, high))
        return np.where(z > high, -np.inf, within)


def _fit(
    one: Strata, form: Form, sign: int, std: float, skewness: float, excess: float, fifth: float
) -> _Mixture:
    """From the moments of d + s X, where counts decide on d and s, to those of X."""
    p = np.exp(one.log_probability)
    d, s = sign * one.mean(*form) / std, np.sqrt(one.variance(*form)) / std
    d, s = d - p @ d, np.maximum(s, 1e-9)
    g = float(np.clip((skewness - p @ (d**3 + 3 * d * s**2)) / (p @ s**3), -2.0, 2.0))
    gamma = p @ (d**4 + 6 * d**2 * s**2 + 4 * g * d * s**3 + (3 + 1.5 * g**2) * s**4)
    miss = excess + 3 - float(gamma)
    x = 1.5 * g**2 + float(np.clip(miss / (p @ s**4), -MORE, MORE))
    rest = d**5 + 10 * d**3 * s**2 + 10 * g * d**2 * s**3 + 5 * (x + 3) * d * s**4
    y = (fifth + 10 * skewness - p @ rest) / (p @ s**5) - 10 * g
    return _Mixture(one.log_probability, d, s, g, x, float(y), float(p @ d**2), abs(miss))


def _ways(sizes: Ints, n_x: int) -> float:
    """To divide n_x among the kinds."""
    return float(reduce(np.convolve, [np.ones(size + 1) for size in sizes])[n_x])


def _counts(sizes: Ints, n_x: int) -> Ints:
    """(ways, kinds): how many of each kind are in x, in all ways."""
    ways, left = np.zeros((1, 0), np.int64), np.array([n_x])
    for place, size in enumerate(sizes):
        after = sizes[place + 1 :].sum()
        low, high = np.maximum(0, left - after), np.minimum(size, left)
        many = high - low + 1
        row = np.repeat(np.arange(len(ways)), many)
        first = np.repeat(np.cumsum(many) - many, many)
        count = low[row] + np.arange(len(row)) - first
        ways, left = np.column_stack([ways[row], count]), left[row] - count
    return ways


def stratified(V: Floats, degree: Floats, kind: Ints, counts: Ints) -> Strata:
    """Means and variances given the counts.

    With labels s_u = m_c + e_u, where m_c is the mean label of u's kind c, sums of e over a kind
    are 0. So row effects inside a block of V vanish, but for those of a kind with itself, which
    add to what is linear in e, since e^2 = 1 - m^2 - 2 m e; and the parts that are linear and
    quadratic in e are not correlated.
    """
    sizes, n, n_x = np.bincount(kind), len(V), counts[0].sum()
    belongs = np.eye(len(sizes))[kind]
    toward = V @ belongs
    blocks = belongs.T @ toward
    m = 2 * counts / sizes - 1
    spread = (1 - m**2) / np.maximum(sizes - 1, 1)  # minus the covariance of two labels of a kind
    mean_t = (m @ blocks * m).sum(1) / 2 - spread @ np.diag(blocks) / 2
    variance_t, covariance, variance_l = np.zeros((3, len(counts)))
    scale, squares = spread * sizes, np.zeros_like(blocks)
    for c, size in enumerate(sizes):
        if size == 1:
            continue
        own = kind == c
        rows, degrees = toward[own] - toward[own].mean(0), degree[own] - degree[own].mean()
        rows[:, c] *= size / (size - 2) if size > 2 else 0.0
        variance_t += scale[:, c] * (m @ (rows.T @ rows) * m).sum(1)
        covariance += scale[:, c] * (m @ (rows.T @ degrees))
        variance_l += scale[:, c] * (degrees @ degrees)
        for d in range(c):
            squares[c, d] = (_centred(V[np.ix_(own, kind == d)]) ** 2).sum()
        if size > 3:
            block = without_row_effects(torch.from_numpy(V[np.ix_(own, own)]))[0].numpy()
            variance_t += _factors(int(size))[counts[:, c]] * (block**2).sum() / 2
    variance_t += (scale @ squares * scale).sum(1)
    log_ways = (gammaln(sizes + 1) - gammaln(counts + 1) - gammaln(sizes - counts + 1)).sum(1)
    log_all = gammaln(n + 1) - gammaln(n_x + 1) - gammaln(n - n_x + 1)
    return Strata(
        log_probability=log_ways - log_all,
        mean_t=mean_t,
        mean_l=m @ (belongs.T @ degree),
        variance_t=variance_t,
        covariance=covariance,
        variance_l=variance_l,
    )


def _centred(block: Floats) -> Floats:
    centred: Floats = block - block.mean(0) - block.mean(1)[:, None] + block.mean()
    return centred


def _factors(size: int) -> Floats:
    """The variance of a sum over pairs, over that of squared weights, for each count of a kind."""
    products = [
        [mean_label_product(k, count, size - count) for k in (2, 4)] for count in range(size + 1)
    ]
    return np.array([1 - 2 * two + four for two, four in products])
