"""Exact moments of the within-sums over all labellings, on which statistics and laws rely.

Labels are s = +-1, n_x of them +1. Let R be the sum of W_uv s_u s_v over pairs, and L the sum of
deg_u s_u over points. Then R_x = (m + R + L) / 4 and R_y = (m + R - L) / 4.

Up to a constant, R = T + c L with c = (n_x - n_y) / (n - 2). Here T is the sum of V_uv s_u s_v over
pairs, where V_uv = W_uv - a_u - a_v are the weights without row effects: the a_u are such that all
row sums of V are 0. T and L are uncorrelated. (T is the cross-edge count in the paper, not here.)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import NamedTuple, cast

import numpy as np

from crossedge.data.designs import Design
from crossedge.moments.centred import (
    Centred,
    SecondSums,
    ThirdSums,
    second_sums,
    third_sums,
)
from crossedge.moments.edges import EdgeSums
from crossedge.moments.fourth import fourth_moment
from crossedge.moments.label_products import mean_label_product
from crossedge.moments.low_rank import LowRankSums
from crossedge.moments.streamed import StreamedSums
from crossedge.numerics.row_effects import without_row_effects
from crossedge.runtime.arrays import fixed, is_tensor, namespace
from crossedge.runtime.types import Array
from crossedge.weights import EdgeList, LowRankWeights, PairWeights, StreamedWeights

MOST_FOR_FOURTH = 4000  # points; beyond, the matrix product of the fourth moment takes too long
# Relative rounding error of a sum of squares and of the total m, in units of the last place: less
# variation is none.
ROUNDING_NOISE = 450.0
EPSILON = 2.0**-52


class Form(NamedTuple):
    """The linear function a R + b L of the within-sums."""

    a: float
    b: float


class LabelMoments:
    """Moments of the within-sums of these weights over all labellings.

    Each moment is computed when it is first used. The first and second cost a pass over W, the
    third and fourth a product of matrices. For tensors, moments up to the third are differentiable.
    With `nearly`, third moments are estimated, at little more than the cost of a pass.
    Second and higher moments are about the mean.
    """

    _third_sums: Callable[[], ThirdSums] | None = None
    design: Design | None = None  # which labels may be exchanged; None for all

    def __init__(self, weights: PairWeights, n_x: int, n_y: int, *, nearly: bool = False) -> None:
        self.weights, self.n_x, self.n_y, self.nearly = weights, n_x, n_y, nearly
        self._e = _mean_label_products(n_x, n_y)

    @classmethod
    def from_sums(
        cls,
        second: SecondSums,
        n_x: int,
        n_y: int,
        third: Callable[[], ThirdSums] | None = None,
    ) -> LabelMoments:
        """Return moments of known sums; `third` is called when third moments are first asked for.

        Only moments up to the third are available.
        """
        found = cls(cast(PairWeights, None), n_x, n_y)
        found._second, found._third_sums = second, third
        return found

    @cached_property
    def centred(self) -> Centred:
        """The weights V without row effects, and the centred degrees."""
        return Centred(*without_row_effects(self.weights.dense()))

    @cached_property
    def _edges(self) -> EdgeSums:
        return EdgeSums(cast(EdgeList, self.weights))

    @cached_property
    def _low_rank(self) -> LowRankSums:
        return LowRankSums(cast(LowRankWeights, self.weights))

    @cached_property
    def _streamed(self) -> StreamedSums:
        return StreamedSums(cast(StreamedWeights, self.weights))

    @cached_property
    def _second(self) -> SecondSums:
        if isinstance(self.weights, EdgeList):
            return self._edges.second()
        if isinstance(self.weights, LowRankWeights):
            return self._low_rank.second()
        if isinstance(self.weights, StreamedWeights):
            return self._streamed.second()
        return second_sums(self.weights.matrix, self.centred)

    @cached_property
    def _third(self) -> ThirdSums:
        if self._third_sums is not None:
            return self._third_sums()
        if isinstance(self.weights, EdgeList):
            return self._edges.third(nearly=self.nearly)
        if isinstance(self.weights, LowRankWeights):
            return self._low_rank.third()
        if isinstance(self.weights, StreamedWeights):
            return self._streamed.third()
        return third_sums(self.centred, nearly=self.nearly)

    @property
    def second(self) -> SecondSums:
        """The sums over the weights that variances need."""
        return self._second

    @property
    def total(self) -> Array:
        """The sum m of W over all pairs."""
        return self._second.total

    @cached_property
    def tt(self) -> Array:
        """The variance of T: theorem 3 of the paper, for weights without row effects."""
        _, _, e2, _, e4, *_ = self._e
        return (1 - 2 * e2 + e4) * self._second.squares

    @cached_property
    def ll(self) -> Array:
        """The variance of L."""
        return (1 - self._e[2]) * self._second.degree2

    @cached_property
    def third(self) -> tuple[Array, Array, Array, Array]:
        """The means of T^3, T^2 L, T L^2 and L^3."""
        s, factors = self._third, self._third_factors
        return (
            factors.triangles * s.triangles + factors.cubes * s.cubes,
            factors.degree_squares * s.degree_squares,
            factors.degree_degree * s.degree_degree,
            factors.degree3 * s.degree3,
        )

    @property
    def _third_factors(self) -> ThirdSums:
        """The factors of the sums in the means of T^3 (two of them), T^2 L, T L^2 and L^3."""
        _, e1, e2, e3, e4, e5, e6, *_ = self._e
        return ThirdSums(
            cubes=4 * (e2 - 2 * e4 + e6),
            triangles=1 - 3 * e2 + 3 * e4 - e6,
            degree3=2 * (e3 - e1),
            degree_squares=-2 * (e1 - 2 * e3 + e5),
            degree_degree=1 - 2 * e2 + e4,
        )

    def third_factors(self, form: Form) -> ThirdSums:
        """Return the factors of the sums in the third moment of a form."""
        (a, b), factors = self.in_t_and_l(form), self._third_factors
        return ThirdSums(
            cubes=a**3 * factors.cubes,
            triangles=a**3 * factors.triangles,
            degree3=b**3 * factors.degree3,
            degree_squares=3 * a**2 * b * factors.degree_squares,
            degree_degree=3 * a * b**2 * factors.degree_degree,
        )

    @cached_property
    def tttt(self) -> float:
        """The mean of T^4."""
        return fourth_moment(self.centred.V, self._e)

    @cached_property
    def rrrr(self) -> float:
        """The mean of (R - E R)^4."""
        if self.n_x == self.n_y:
            return self.tttt
        W = self.weights.dense()
        shifted = W - W.sum() / (len(W) * (len(W) - 1))
        np.fill_diagonal(shifted, 0.0)
        return fourth_moment(shifted, self._e)

    @property
    def slope(self) -> float:
        """The slope c of R in L."""
        n = self.n_x + self.n_y
        return (self.n_x - self.n_y) / (n - 2) if n > 2 else 0.0

    @property
    def difference(self) -> Form:
        """The form of R_x - R_y."""
        return Form(0.0, 0.5)

    @property
    def weighted(self) -> Form:
        """The form of q R_x + p R_y, with p = (n_x - 1) / (n - 2) and q = 1 - p.

        It is uncorrelated with the difference R_x - R_y for all weights.
        """
        n = self.n_x + self.n_y
        p = (self.n_x - 1) / (n - 2) if n > 2 else 0.5
        return Form(0.25, (1 - 2 * p) / 4)

    def in_t_and_l(self, form: Form) -> Form:
        """Return the coefficients of T and L in a R + b L."""
        b = form.b + form.a * self.slope
        return Form(form.a, b if abs(b) > 1e-12 * abs(form.b) else 0.0)

    def mean(self, form: Form) -> Array:
        """Return the mean of a R + b L."""
        return (form.a * self._e[2] + 2 * form.b * self._e[1]) * self.total

    def varies(self, form: Form) -> Array:
        """Return whether a form varies over labellings by more than rounding errors."""
        a, b = self.in_t_and_l(form)
        s = self._second
        rounding = ROUNDING_NOISE * _epsilon(s.squares)
        noise = rounding * fixed(s.squares) + (rounding * fixed(s.total)) ** 2
        return fixed(self._variance(form)) > (a**2 + b**2) * noise

    def std(self, form: Form) -> Array:
        """Return the standard deviation of a form; 0 if it cannot vary."""
        xp, varies, variance = namespace(self.tt), self.varies(form), self._variance(form)
        return xp.where(varies, xp.sqrt(xp.where(varies, variance, 1.0)), 0.0)

    def skewness(self, form: Form) -> Array:
        """Return the skewness of a form; 0 if it cannot vary."""
        xp, varies, (a, b) = namespace(self.tt), self.varies(form), self.in_t_and_l(form)
        ttt, ttl, tll, lll = self.third
        third = a**3 * ttt + 3 * a**2 * b * ttl + 3 * a * b**2 * tll + b**3 * lll
        return xp.where(varies, third / xp.where(varies, self._variance(form), 1.0) ** 1.5, 0.0)

    def excess(self, form: Form) -> float | None:
        """Return the excess kurtosis of a form of T alone or of R alone; None for all others.

        It is None also above `MOST_FOR_FOURTH` points, where it would take too long.
        """
        a, b = self.in_t_and_l(form)
        if self.weights.n > MOST_FOR_FOURTH or (b != 0 and form.b != 0):
            return None
        if not self.varies(form):
            return 0.0
        fourth = self.tttt if b == 0 else self.rrrr
        return float(fourth / (self.tt + (b / a) ** 2 * self.ll) ** 2 - 3)

    def zscore(self, x: Array, y: Array, form: Form) -> Array:
        """Return the z-score of a form at within-sums R_x and R_y; 0 if it cannot vary."""
        xp, varies = namespace(self.tt), self.varies(form)
        value = form.a * (2 * (x + y) - self.total) + form.b * 2 * (x - y)
        score = (value - self.mean(form)) / xp.where(varies, self.std(form), 1.0)
        return xp.where(varies, score, 0.0 * score)

    def step(self, form: Form) -> float:
        """Return the step of the lattice of a form of R alone or of L alone; 0 if there is none."""
        if form.a and form.b:
            return 0.0
        return 2 * (abs(form.a) * self.weights.step + abs(form.b) * self.weights.degree_step)

    def rounding(self, form: Form) -> float:
        """Return the tolerance within which two values of a form count as equal."""
        noise = ROUNDING_NOISE * EPSILON * abs(float(self.total)) * (abs(form.a) + abs(form.b))
        return max(1e-8 * float(self.std(form)), noise)

    def score_rounding(self) -> float:
        """Return the tolerance within which two z-scores count as equal."""
        stds = [float(self.std(form)) for form in (self.weighted, self.difference)]
        smallest = min([std for std in stds if std > 0], default=1.0)
        return max(1e-8, 1e-14 * abs(float(self.total)) / smallest)

    def _variance(self, form: Form) -> Array:
        a, b = self.in_t_and_l(form)
        return a**2 * self.tt + b**2 * self.ll

    def second_factors(self, form: Form) -> SecondSums:
        """Return the factor of the total in the mean of a form, and those of its variance."""
        _, e1, e2, _, e4, *_ = self._e
        a, b = self.in_t_and_l(form)
        return SecondSums(
            total=form.a * e2 + 2 * form.b * e1,
            squares=a**2 * (1 - 2 * e2 + e4),
            degree2=b**2 * (1 - e2),
        )


def _epsilon(value: Array) -> float:
    """Return the spacing of numbers at 1, of the type of a tensor or of float64."""
    return float(namespace(value).finfo(value.dtype).eps) if is_tensor(value) else EPSILON


@lru_cache(maxsize=64)
def _mean_label_products(n_x: int, n_y: int) -> list[float]:
    """Return the mean of a product of k distinct labels, for k up to 8."""
    return [mean_label_product(k, n_x, n_y) for k in range(9)]
