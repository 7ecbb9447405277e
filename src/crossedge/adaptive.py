"""The adaptive test: many weights and several statistics, one calibrated p-value.

Each part of the test, some weights with one statistic, has its evidence: minus the logarithm of its
p-value by a smooth law. The statistic of the whole is the soft maximum of these: a part with a
tenth of the prior weight of another one needs a p-value that is smaller by 10^(1 / SHARPNESS). The
same labellings of the pooled sample give the null distribution of each part and of the whole, so no
data is set aside. The parts, and how they are chosen, depend on the pooled sample only (`parts`),
so the p-value is valid at every sample size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from crossedge.data.distances import Distances
from crossedge.data.samples import Samples
from crossedge.null import Pearson3, Permutation
from crossedge.null.labellings import (
    Labellings,
    PermutationNull,
    moments_of,
    observe,
    relabel,
    visit,
)
from crossedge.null.permutation import labellings_in_words
from crossedge.null.stopping import rule_of
from crossedge.parts import DEFAULT_STATISTICS, Part, Views, all_parts, default_parts, sparse_parts
from crossedge.result import Member, TwoSampleResult
from crossedge.runtime.randomness import Rng
from crossedge.runtime.types import Bools, Floats
from crossedge.statistics import Statistic
from crossedge.statistics.laws import sample_moments
from crossedge.weights import Weights

# Sharpness of the soft maximum: 1 is the harmonic mean of p-values, infinity the smallest p-value.
SHARPNESS = 2.0
MOST_DENSE_POINTS = 3000  # up to this many pooled points, the default uses smoothed weights
# Up to this many points skewness is exact. An error makes no p-value invalid: it only shifts weight
# between the parts, and one of 0.01 hardly that.
MOST_EXACT_POINTS = 1000


class Evidence(NamedTuple):
    """The evidence of the samples as given, followed by that of relabelled samples."""

    parts: Floats  # (parts, 1 + labellings)
    whole: Floats  # (1 + labellings,), the soft maximum of the parts
    tolerances: Floats  # (parts,) rounding errors of the evidence as given
    tolerance: float  # the same of the whole


class Scorer:
    """The weights of all parts on one pooled sample, ready for any labellings."""

    def __init__(self, parts: Sequence[Part], samples: Samples, views: Views) -> None:
        self.parts, self.in_x, self.design = tuple(parts), samples.in_x, samples.design
        self.groups = []
        for (view, one), group in groupby(parts, key=lambda part: (part.view, part.weights)):
            pairs = views.pairs(one, view)
            moments = moments_of(pairs, samples, nearly=pairs.n > MOST_EXACT_POINTS)
            self.groups.append((pairs, moments, tuple(part.statistic for part in group)))

    def evidence(self, labellings: Labellings, blocks: range | None = None) -> Evidence:
        """Return the evidence of each part and of the whole, on some blocks of labellings or all.

        That of a labelling does not depend on the others, so one may stop at any of them.
        """
        blocks = range(labellings.blocks) if blocks is None else blocks
        left = labellings.count - blocks.start * labellings.lanes
        table, rounding = [], []
        for pairs, moments, statistics in self.groups:
            seen = observe(pairs, self.in_x, design=self.design)
            drawn = relabel(pairs, labellings, blocks)
            x, y = np.append(seen.x, drawn.x[:left]), np.append(seen.y, drawn.y[:left])
            for statistic in statistics:
                law = statistic.law
                assert law is not None
                log_p = law.log_pvalue(statistic, x, y, moments, Pearson3.log_tail)
                table.append(-log_p)
                # evidence is about z^2 / 2, so a rounding error of z is multiplied by z
                z = math.sqrt(2 * max(table[-1][0], 0.0))
                rounding.append(moments.score_rounding() * (1 + z))
        return combined(self.parts, table, rounding)


def combined(parts: Sequence[Part], table: Sequence[Floats], rounding: Sequence[float]) -> Evidence:
    """Return the evidence of the parts, and its soft maximum."""
    values, tolerances = np.stack(table), np.array(rounding)
    priors = np.array([part.prior for part in parts])
    prior = np.log(priors)[:, None] - math.log(priors.sum())
    whole = np.logaddexp.reduce(SHARPNESS * values + prior, axis=0) / SHARPNESS
    shares = np.exp(SHARPNESS * (values[:, 0] - whole[0]) + prior[:, 0])
    return Evidence(values, whole, tolerances, float(shares @ tolerances))


def adaptive_test(
    weights: Sequence[Weights] | None,
    statistic: Statistic | None,
    samples: Samples,
    distances: Distances,
    n_resamples: int,
    rng: Rng,
    early_stopping: float | None = None,
) -> TwoSampleResult:
    """Run the adaptive test, with weights chosen by the pooled sample if none are given."""
    names = DEFAULT_STATISTICS if statistic is None else (statistic.name,)
    parts, views = parts_of(weights, names, distances)
    labellings = Labellings(distances.n, samples.n_x, n_resamples, rng, samples.design)
    scorer = Scorer(parts, samples, views)
    rounds: list[Evidence] = []

    def score(blocks: range) -> Floats:
        rounds.append(scorer.evidence(labellings, blocks))
        return rounds[-1].whole[1:]

    def is_extreme(values: Floats) -> Bools:
        extreme: Bools = values >= rounds[0].whole[0] - rounds[0].tolerance
        return extreme

    null = visit(labellings, score, is_extreme, rule_of(early_stopping))
    seen = np.concatenate([rounds[0].parts, *(found.parts[:, 1:] for found in rounds[1:])], axis=1)
    found = rounds[0]._replace(parts=seen[:, : 1 + len(null.values)])
    members = members_of(parts, found, labellings)
    p = null.pvalue(found.whole[0], 1, found.tolerance)
    mean, std, skewness = sample_moments(null.values)
    observed = float(found.whole[0])
    return TwoSampleResult(
        statistic=observed,
        pvalue=p,
        log_pvalue=math.log(p),
        zscore=(observed - mean) / std if std else 0.0,
        null_mean=mean,
        null_std=std,
        null_skewness=skewness,
        null_distribution=null.values,
        n_x=samples.n_x,
        n_y=samples.n_y,
        weights=tuple(dict.fromkeys(part.weights for part in parts)),
        statistic_name="adaptive",
        null=Permutation.name,
        law=labellings_in_words(len(null.values), null.exact, null.stopped, null.level),
        n_resamples=len(null.values),
        exact=labellings.exact,
        members=members,
        design=None if samples.design is None else samples.design.words,
        level=null.level,
    )


def parts_of(
    weights: Sequence[Weights] | None, names: Sequence[str], distances: Distances
) -> tuple[list[Part], Views]:
    """Return the parts of the test, and the views, with matrices if any part needs these."""
    dense = (
        any(one.peak_matrices > 0 for one in weights)
        if weights
        else distances.n <= MOST_DENSE_POINTS
    )
    views = Views(distances, dense=dense)
    if weights is not None:
        return all_parts(weights, names), views
    return default_parts(views, names) if dense else sparse_parts(views, names), views


def rank_of(values: Floats, labellings: Labellings, tolerance: float) -> float:
    """Return the p-value of the first of these values, by those of the labellings."""
    return PermutationNull(values[1:], labellings.exact).pvalue(values[0], 1, tolerance)


def members_of(
    parts: Sequence[Part], found: Evidence, labellings: Labellings
) -> tuple[Member, ...]:
    """Return the parts with their evidence and p-values."""
    return tuple(
        Member(
            part.weights,
            part.statistic.name,
            float(values[0]),
            rank_of(values, labellings, error),
            part.view,
        )
        for part, values, error in zip(parts, found.parts, found.tolerances, strict=True)
    )
