"""The single test: one family of weights, one statistic, one null."""

from __future__ import annotations

import math
import sys

import numpy as np

from crossedge.data.distances import Distances
from crossedge.data.samples import Samples
from crossedge.moments import BlockMoments
from crossedge.moments.blocked import MOST_EXACT_POINTS
from crossedge.null import Answer, Law, Normal, Pearson3, Permutation, Problem
from crossedge.null.labellings import moments_of
from crossedge.result import TwoSampleResult
from crossedge.runtime.types import Bools
from crossedge.statistics import Linear, Statistic
from crossedge.statistics.laws import NullMoments, sample_moments
from crossedge.weights import EdgeList, PairWeights, StreamedWeights, Weights


def single_test(
    weights: Weights,
    statistic: Statistic,
    null: Law,
    samples: Samples,
    distances: Distances,
    brief: bool = False,
) -> TwoSampleResult:
    """Run a test with one family of weights, one statistic and one null.

    If `brief`, null_skewness may be NaN where the p-value does not depend on it.
    """
    return pairs_test(weights, weights.pairs(distances), statistic, null, samples, brief)


def pairs_test(
    weights: Weights,
    pairs: PairWeights,
    statistic: Statistic,
    null: Law,
    samples: Samples,
    brief: bool = False,
) -> TwoSampleResult:
    """Run the same test on pair weights that are known."""
    moments = moments_of(pairs, samples)
    problem = Problem(pairs, statistic, samples.in_x, moments=moments)
    if isinstance(moments, BlockMoments) and not (moments.exact or isinstance(null, Permutation)):
        raise ValueError(
            f"null={null.name!r} needs exact moments, which blocks have for at most "
            f"{MOST_EXACT_POINTS:,} points: leave null out"
        )
    if math.isnan(problem.observed):
        raise FloatingPointError("the statistic is not a number: the weights are out of range")
    if not null.applies(problem):
        raise ValueError(f"null={null.name!r} does not go with statistic={statistic.name!r}")
    answer = null.log_pvalue(problem)
    if not isinstance(answer, Answer) or not answer.log_p <= 0:
        raise ValueError(
            f"null={null.name!r} answered {answer!r}: it must be an Answer, log_p <= 0"
        )
    under_null = _null_moments(problem, null, answer, brief)
    unit = problem.weights.unit if problem.is_linear else 1.0
    mean, std, observed = unit * under_null.mean, unit * under_null.std, unit * problem.observed
    values = answer.values
    if values is not None and unit != 1:
        values = unit * values
        values.setflags(write=False)
    return TwoSampleResult(
        statistic=observed,
        pvalue=answer.p or max(math.exp(answer.log_p), sys.float_info.min),
        log_pvalue=answer.log_p,
        zscore=(observed - mean) / std if std else 0.0,
        null_mean=mean,
        null_std=std,
        null_skewness=under_null.skewness,
        null_distribution=values,
        n_x=samples.n_x,
        n_y=samples.n_y,
        weights=weights,
        statistic_name=statistic.name,
        null=null.name,
        law=answer.method,
        n_resamples=0 if values is None else len(values),
        exact=answer.exact,
        left_out=getattr(problem.weights, "left_out", 0.0),
        standard_error=_standard_error(pairs, samples.in_x) if statistic.name == "cross" else 0.0,
        design=None if samples.design is None else samples.design.words,
        level=answer.level,
    )


def _standard_error(pairs: PairWeights, in_x: Bools) -> float:
    """Return the standard error of the cross-edge count where weights are estimates."""
    if isinstance(pairs, StreamedWeights):
        return pairs.error_between(in_x)
    error = getattr(pairs, "error", None)
    if error is None or not isinstance(pairs, EdgeList):
        return 0.0
    crossing = in_x[pairs.i] != in_x[pairs.j]
    return float(np.sqrt((error[crossing] ** 2).sum()))


def _null_moments(problem: Problem, null: Law, answer: Answer, brief: bool) -> NullMoments:
    """Return the exact moments if the statistic is linear, else those of the values or the law."""
    statistic, moments, law = problem.statistic, problem.moments, problem.statistic.law
    if isinstance(law, Linear):
        if brief and answer.values is not None:
            return law.mean_and_std(statistic, moments)
        return law.null_moments(statistic, moments)
    if answer.values is not None and (law is None or not answer.stopped):
        return sample_moments(answer.values)
    assert law is not None
    normal = answer.values is not None or isinstance(null, Normal)
    return law.null_moments(statistic, moments, Normal.log_tail if normal else Pearson3.log_tail)
