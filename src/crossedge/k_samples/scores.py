"""The evidence that several samples differ, on labellings of the pooled points.

For each family of weights there are two statistics, as in the adaptive test of two samples. Let
C_a be the weight inside the sample a, and D_a the sum of the degrees of its points.

- "weighted" is the sum of C_a / (n_a - 1), which row effects of W do not change. Its evidence is
  minus the logarithm of its p-value by a gamma law.
- "fisher" adds, by Fisher's rule, the evidence of Q, the squared length of (D_a) less its mean in
  units of its covariance, by a chi-square law.

With two samples these are the weighted count, and, up to the skewness of R_x - R_y, "fisher".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import gammaincc, gammaln

from crossedge.adaptive import Evidence, combined
from crossedge.data.designs import Design
from crossedge.moments import LabelMoments
from crossedge.moments.several import count_moments, pairs_of_samples
from crossedge.null.labellings import (
    MOMENT_LABELLINGS,
    MOMENT_SEED,
    Labellings,
    observe,
    relabel,
)
from crossedge.numerics.tails import log_gamma_tail
from crossedge.parts import Part, Views
from crossedge.result import Member
from crossedge.runtime.types import Floats, Ints
from crossedge.statistics.laws import log_chi_square_tail, sample_moments
from crossedge.weights import PairWeights, Weights

NO_VARIATION = 1e-12  # of a statistic: a smaller standard deviation is rounding
LEAST_TAIL = 1e-280  # below, the chi-square tail is replaced by its asymptotic form


class Scorer:
    """The weights of all parts on one pooled sample, ready for any labellings of K samples."""

    def __init__(self, parts: Sequence[Part], sample: Ints, design: Design, views: Views) -> None:
        self.parts, self.sample, self.design = tuple(parts), sample, design
        self.sizes = tuple(np.bincount(sample).tolist())
        self.pairs: dict[tuple[str, Weights], PairWeights] = {
            (view, weights): views.pairs(weights, view)
            for view, weights in dict.fromkeys((part.view, part.weights) for part in parts)
        }
        self.fixed = Labellings(len(sample), self.sizes[0], MOMENT_LABELLINGS, MOMENT_SEED, design)

    def evidence(self, labellings: Labellings) -> Evidence:
        """Return the evidence of each part and of the whole."""
        found = {each: self._of_weights(pairs, labellings) for each, pairs in self.pairs.items()}
        names = [part.statistic.name for part in self.parts]
        chosen = [
            found[part.view, part.weights][name == "fisher"]
            for part, name in zip(self.parts, names, strict=True)
        ]
        return combined(
            self.parts, [values for values, _ in chosen], [error for _, error in chosen]
        )

    def _of_weights(self, pairs: PairWeights, labellings: Labellings) -> list[tuple[Floats, float]]:
        """Return the evidence of "weighted" and of "fisher", and their rounding errors."""
        inside, degrees = self._sums(pairs, labellings, True)
        fixed_inside, fixed_degrees = self._sums(pairs, self.fixed, False)
        share = 1 / np.maximum(self.design.mean_rows - 1, 1.0)
        value, fixed = share @ inside, share @ fixed_inside
        _, fixed_std, skewness = sample_moments(fixed)
        if self.design.words:
            mean, std, covariance = fixed.mean(), fixed_std, np.cov(fixed_degrees, bias=True)
            centre = fixed_degrees.mean(1, keepdims=True)
        else:
            sizes, n = np.array(self.sizes), len(self.sample)
            second = LabelMoments(pairs, self.sizes[0], n - self.sizes[0]).second
            means, covariances = count_moments(second, self.sizes)
            own = [a == b for a, b in pairs_of_samples(len(sizes))]
            mean = share @ means[own]
            std = math.sqrt(max(float(share @ covariances[np.ix_(own, own)] @ share), 0.0))
            unit = float(second.degree2) / (n - 1)
            covariance = unit * (np.diag(sizes) - np.outer(sizes, sizes) / n)
            centre = 2 * float(second.total) * sizes[:, None] / n - float(second.total)
        scale = abs(float(pairs.total))
        varies = std > NO_VARIATION * scale * share.mean() and fixed_std > 0
        z = (value - mean) / std if varies else np.zeros(len(value))
        together = -log_gamma_tail(z, np.float64(skewness)) if varies else z
        apart, rank = _squared_length(degrees - centre, covariance, NO_VARIATION * scale)
        of_degrees = -_log_chi_square_tail(apart, rank)
        both = -log_chi_square_tail(2 * (together + of_degrees), 2 * (int(varies) + (rank > 0)))
        rounding = max(1e-8, 1e-14 * scale * share.mean() / std) if varies else 1e-8
        return [
            (each, rounding * (1 + math.sqrt(2 * max(float(each[0]), 0.0))))
            for each in (together, both)
        ]

    def _sums(
        self, pairs: PairWeights, labellings: Labellings, observed: bool
    ) -> tuple[Floats, Floats]:
        """Return the weights inside all samples, and sums of degrees less m, on each labelling.

        With `observed`, the samples as given come first.
        """
        inside, degrees = [], []
        for sample in range(len(self.sizes)):
            own = relabel(pairs, labellings.of([sample]), range(labellings.blocks))
            x, y = own.x[: labellings.count], own.y[: labellings.count]
            if observed:
                seen = observe(pairs, self.sample == sample, design=self.design, samples=[sample])
                x, y = np.append(seen.x, x), np.append(seen.y, y)
            inside.append(x)
            degrees.append(x - y)
        return np.stack(inside), np.stack(degrees)

    def crossings(self, member: Member) -> tuple[Floats, Floats, Floats]:
        """Return the weights between all pairs of samples, their means and covariances."""
        pairs, count = self.pairs[member.view, member.weights], len(self.sizes)
        places = list(combinations(range(count), 2))

        def between(sums: dict[tuple[int, ...], Any]) -> Any:
            return np.stack([sums[a, b] - sums[a,] - sums[b,] for a, b in places])

        unions = [*((a,) for a in range(count)), *places]
        seen = {
            union: observe(pairs, np.isin(self.sample, union), design=self.design, samples=union).x
            for union in unions
        }
        unit = pairs.unit
        if self.design.words:
            blocks = range(self.fixed.blocks)
            drawn = between(
                {union: relabel(pairs, self.fixed.of(union), blocks).x for union in unions}
            )[:, : self.fixed.count]
            mean, covariance = drawn.mean(1), np.atleast_2d(np.cov(drawn, bias=True))
        else:
            second = LabelMoments(pairs, self.sizes[0], sum(self.sizes[1:])).second
            means, covariances = count_moments(second, self.sizes)
            apart = [a < b for a, b in pairs_of_samples(count)]
            mean, covariance = means[apart], covariances[np.ix_(apart, apart)]
        return unit * between(seen), unit * mean, unit**2 * covariance


def _squared_length(vectors: Floats, covariance: Floats, noise: float) -> tuple[Floats, int]:
    """Return the squared lengths of columns in units of a covariance, and the rank of this."""
    values, axes = np.linalg.eigh(covariance)
    kept = values > max(1e-10 * float(values[-1]), noise**2)
    along = (axes[:, kept].T @ vectors) / np.sqrt(values[kept])[:, None]
    return (along**2).sum(0), int(kept.sum())


def _log_chi_square_tail(value: Floats, degrees: int) -> Floats:
    """Return log P(X >= value) for a chi-square variable X with any degrees of freedom."""
    if not degrees:
        return np.zeros(len(value))
    half, shape = value / 2, degrees / 2
    tail = gammaincc(shape, half)
    far = (shape - 1) * np.log(np.maximum(half, 1.0)) - half - gammaln(shape)
    found: Floats = np.where(tail > LEAST_TAIL, np.log(np.maximum(tail, LEAST_TAIL)), far)
    return found
