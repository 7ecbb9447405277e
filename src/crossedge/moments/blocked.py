"""Moments of the within-sums where labels are exchanged between units within strata only.

Let B be W, less its mean over pairs, summed over the rows of units. A unit a of the stratum s has
the label mu_s + tau_a, where mu_s is the mean label of the stratum, so the tau of a stratum add up
to 0. Hence R is a constant plus three kinds of terms, which are uncorrelated:

- a linear one, the sum of g_a tau_a, where g_a collects B_ab mu_b over all other units b;
- T_s, the sum of V_ab tau_a tau_b over pairs in s, where V is B of the stratum without row effects
  (these only add to g);
- X_st, the sum of C_ab tau_a tau_b over a in s and b in t, where C is the block of B with row and
  column means removed.

L is linear, the sum of d_a tau_a. A linear term has the variance v_s |g|^2, for centred g, with
v_s = 1 - e_2; T_s has (1 - 2 e_2 + e_4) times the sum of V^2 over pairs, as in label_moments.py;
and X_st has v_s v_t |C|^2. Here e_k is the mean of a product of k distinct labels of a stratum.

If clusters have unequal sizes, labellings differ in the numbers of rows. Their within-sums are made
comparable first: less the mean of W times the pairs that a sample has beyond its mean number.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from crossedge.data.designs import Design
from crossedge.moments.label_moments import EPSILON, ROUNDING_NOISE, Form, LabelMoments
from crossedge.moments.label_products import mean_label_product
from crossedge.numerics.row_effects import without_row_effects
from crossedge.runtime.types import Array, Floats
from crossedge.weights import PairWeights, StreamedWeights

MOST_EXACT_POINTS = 4000  # beyond, n x n matrices take too long: labellings estimate the moments
LEAST_QUADRATIC = 4  # units in a stratum: with fewer, row effects explain all of W


def evened(
    x: Floats, y: Floats, n_x: Array, mean_n_x: float, n: int, total: float
) -> tuple[Floats, Floats]:
    """Return the within-sums less the mean weight times the pairs in excess of their mean."""
    mean = total / _pairs(n)
    return (
        x - mean * (_pairs(n_x) - _pairs(mean_n_x)),
        y - mean * (_pairs(n - n_x) - _pairs(n - mean_n_x)),
    )


def _pairs(rows: Array) -> Array:
    return rows * (rows - 1.0) / 2


class BlockMoments(LabelMoments):
    """Moments of the within-sums, evened, over the labellings of a design.

    Means and covariances are exact up to `MOST_EXACT_POINTS`. Beyond, they are those of labellings
    that are always the same, as the skewness is: `drawn` returns within-sums (R_x, R_y) of these.
    """

    def __init__(
        self, weights: PairWeights, design: Design, drawn: Callable[[], tuple[Floats, Floats]]
    ) -> None:
        self.weights, self.design, self._labellings = weights, design, drawn
        self._blocks = design
        self.n_x, self.n_y = design.mean_rows.tolist()
        streamed = isinstance(weights, StreamedWeights)
        self.exact = weights.n <= MOST_EXACT_POINTS and not streamed

    @property
    def total(self) -> float:
        """The sum m of W over all pairs."""
        return float(self.weights.total)

    @cached_property
    def _drawn(self) -> tuple[Floats, Floats]:
        """R and L of labellings that depend on the design only."""
        x, y = self._labellings()
        return 2 * (x + y) - self.total, 2 * (x - y)

    @cached_property
    def _first(self) -> tuple[float, float]:
        """The means of R and L."""
        R, L = self._drawn if not self.exact else self._exact[0]
        return float(np.mean(R)), float(np.mean(L))

    @cached_property
    def _covariance(self) -> Floats:
        """The (2, 2) covariance of R and L."""
        if self.exact:
            return self._exact[1]
        found: Floats = np.cov(np.stack(self._drawn), bias=True)
        return found

    @cached_property
    def _exact(self) -> tuple[tuple[float, float], Floats, float]:
        """The means, the covariance, and a sum of squares to compare rounding errors with."""
        design, W = self._blocks, self.weights.dense()
        n = len(W)
        mean = self.total / _pairs(n)
        W = W - mean
        np.fill_diagonal(W, 0.0)
        degree = W.sum(1)
        by_unit = np.argsort(design.stratum[design.unit] * len(design.rows) + design.unit)
        order = np.argsort(design.stratum, kind="stable")
        rows = design.rows[order]
        starts = np.cumsum(rows) - rows
        B = np.add.reduceat(
            np.add.reduceat(W[np.ix_(by_unit, by_unit)], starts, axis=0), starts, axis=1
        )
        d = np.add.reduceat(degree[by_unit], starts)
        own = float(np.trace(B)) / 2  # of pairs inside units, which no labelling parts
        np.fill_diagonal(B, 0.0)

        sizes, in_x = design.sizes, design.counts[:, 0]
        firsts = np.cumsum(sizes) - sizes
        e1, e2, e4 = (
            np.array([mean_label_product(k, x, m - x) for x, m in zip(in_x, sizes, strict=True)])
            for k in (1, 2, 4)
        )

        def of_units(values: Array) -> Array:
            return np.repeat(values, sizes)

        def centred(values: Array) -> Array:
            means = np.add.reduceat(values, firsts) / sizes
            return values - of_units(means)

        v, mu = of_units(1 - e2), of_units(e1)
        sums = np.add.reduceat(B, firsts, axis=1)  # over the units of each stratum
        blocks = np.add.reduceat(sums, firsts, axis=0)
        inside = np.diagonal(blocks)
        linear, quadratic = sums @ e1, 0.0
        for s in np.flatnonzero(sizes > 2):
            some = slice(firsts[s], firsts[s] + sizes[s])
            linear[some] += 2 * e1[s] * sums[some, s] / (sizes[s] - 2)
            if sizes[s] >= LEAST_QUADRATIC:
                V, _ = without_row_effects(B[some, some])
                quadratic += (1 - 2 * e2[s] + e4[s]) * float((V * V).sum()) / 2
        linear, d = centred(linear), centred(d)
        squares = float((B * B).sum()) / 2 + float(d @ d)

        mean_r = own + (float(e1 @ blocks @ e1) + float(inside @ (e2 - e1**2))) / 2
        mean_l = float(mu @ np.add.reduceat(degree[by_unit], starts))
        # blocks between strata, without their row and column means
        B -= np.repeat(sums / sizes, sizes, axis=1)
        B -= np.repeat(np.add.reduceat(B, firsts, axis=0) / sizes[:, None], sizes, axis=0)
        B *= np.repeat(np.arange(len(sizes)), sizes) != of_units(np.arange(len(sizes)))[:, None]
        crossed = float(v @ (B * B) @ v) / 2

        rr = float(v @ linear**2) + quadratic + crossed
        rl, ll = float(v @ (linear * d)), float(v @ d**2)
        # from the sums of W less its mean to those of W: the constants of evened within-sums
        n_x, n_y = design.mean_rows
        mean_r += 2 * mean * (_pairs(n_x) + _pairs(n_y)) - self.total
        mean_l += 2 * mean * (_pairs(n_x) - _pairs(n_y))
        return (mean_r, mean_l), np.array([[rr, rl], [rl, ll]]), squares

    @property
    def tt(self) -> Array:
        """The variance of R, whose place T has in `in_t_and_l`."""
        return self._covariance[0, 0]

    @property
    def ll(self) -> Array:
        """The variance of L."""
        return self._covariance[1, 1]

    @cached_property
    def weighted(self) -> Form:
        """The form of q R_x + p R_y, p + q = 1, that is uncorrelated with R_x - R_y."""
        (_, rl), (_, ll) = self._covariance.tolist()
        if not self.varies(self.difference):
            return Form(0.25, 0.0)
        return Form(0.25, -0.25 * rl / ll)

    def in_t_and_l(self, form: Form) -> Form:
        """Return the form itself: moments here are those of R and L."""
        return form

    def mean(self, form: Form) -> float:
        """Return the mean of a R + b L."""
        return form.a * self._first[0] + form.b * self._first[1]

    def varies(self, form: Form) -> bool:
        """Return whether a form varies over labellings by more than rounding errors."""
        squares = self._exact[2] if self.exact else abs(self.total)
        rounding = ROUNDING_NOISE * EPSILON
        noise = rounding * squares + (rounding * self.total) ** 2
        return bool(self._variance(form) > (form.a**2 + form.b**2) * noise)

    def skewness(self, form: Form) -> Array:
        """Return the skewness of a form over the labellings drawn; 0 if it cannot vary."""
        R, L = self._drawn
        values = form.a * R + form.b * L
        values = values - values.mean()
        std = float(values.std())
        return np.float64((values**3).mean() / std**3 if self.varies(form) and std > 0 else 0.0)

    def _variance(self, form: Form) -> Array:
        weights = np.array(form)
        return weights @ self._covariance @ weights
