"""The one verb."""

from __future__ import annotations

import math
import sys
from numbers import Integral
from typing import Any, SupportsIndex

from crossedge.distances import Distance, pooled_distances
from crossedge.null.laws import asymptotic_law, exact_law, rounding, sample_law
from crossedge.null.moments import label_moments
from crossedge.null.permutations import observe, permute
from crossedge.null.pvalues import check_null, smooth_pvalue
from crossedge.randomness import Rng, check_rng
from crossedge.result import TwoSampleResult
from crossedge.statistics import statistic_named
from crossedge.weights import Weights
from crossedge.weights.family import check_weights


def two_sample(
    x: Any,
    y: Any,
    weights: Weights | None = None,
    *,
    statistic: str | None = None,
    null: str = "permutation",
    n_resamples: SupportsIndex = 9999,
    distance: Distance = 2.0,
    rng: Rng = None,
    early_stopping: SupportsIndex | None = None,
) -> TwoSampleResult:
    """Do two samples come from the same distribution?

    Parameters
    ----------
    x, y : array, tensor, list or frame
        (n_x, d) and (n_y, d) points, or plain lists of numbers. Frames are matched by the names of
        their columns. With distance="precomputed", x is the (n, n) matrix of distances between all
        points, and y tells which rows are the second sample: their number, if they are the last
        ones, or a boolean mask.
    weights : SpanningTree or NearestNeighbours
        Which points of the pooled sample are neighbours; smoothed if its temperature is above 0,
        which needs the memory of an n x n matrix.
    statistic : "cross", "weighted", "generalized" or "max"
        "cross", the default, is the weight of the edges that join the two samples; few of them
        speak against equality. The others are large where the samples differ. "weighted" is the
        weight of edges inside the samples, fair to samples of unequal size; "generalized" also
        rejects where one sample has too many and the other too few of them, as after a change of
        scale; "max" does so with more power where only one of the two happens.
    null : "permutation", "normal" or "pearson3"
        Relabel the pooled sample at random (or in all ways, if these are no more than n_resamples
        and ten million),
        or compare with a law that has the exact mean and variance over all labellings: the normal
        (for "generalized", chi-square), or a gamma law with the exact skewness as well ("cross", up
        to 4,000 points: also the exact fourth moment).
    n_resamples : int
        How many random labellings, if the null is "permutation".
    distance : float, callable or "precomputed"
        p >= 1 (or infinity) for l_p, or a function of two blocks of points, tensors of shape (a, d)
        and (b, d), that returns their (a, b) distances.
    rng : int, numpy Generator or torch Generator
        The source of randomness; the same source gives the same answer on any number of threads.
    early_stopping : int
        Stop as soon as so many labellings are no less extreme than the samples. The p-value is then
        their share (Besag and Clifford, 1991): still valid, and soon known where it is large. Only
        for random labellings.

    Examples
    --------
    >>> import numpy as np
    >>> import crossedge as ce
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(100, 3)), rng.normal(size=(80, 3)) + [1, 0, 0]
    >>> ce.two_sample(x, y, ce.SpanningTree(), rng=1)
    two-sample test: minimum spanning tree, cross-edge count, 9,999 random labellings
      samples    100 and 80 points
      statistic  77  (if the distributions are equal: 88.8889 ± 6.622)
      z-score    -1.8
      p-value    0.0414
    """
    weights = check_weights(weights)
    chosen = statistic_named(weights.default_statistic if statistic is None else statistic)
    null = check_null(chosen, null)
    if isinstance(n_resamples, bool) or not isinstance(n_resamples, Integral):
        raise TypeError(f"n_resamples={n_resamples!r} is not an integer: give a whole number")
    check_rng(rng)
    if n_resamples < 1:
        raise ValueError(f"n_resamples={n_resamples} is too small: give at least 1")
    if int(n_resamples) > 10**9:
        raise ValueError(f"n_resamples={n_resamples} is too large: give at most a billion")

    if early_stopping is not None:
        if isinstance(early_stopping, bool) or not isinstance(early_stopping, Integral):
            raise TypeError(f"early_stopping={early_stopping!r} is not an integer: give a count")
        if early_stopping < 1:
            raise ValueError(f"early_stopping={early_stopping} is too small: give at least 1")

    samples, distances = pooled_distances(x, y, distance)
    pairs = weights.pairs(distances)
    moments = label_moments(pairs, samples.n_x, samples.n_y, fourth=null == "pearson3")
    within = observe(pairs, samples.in_x, chosen.studentized)
    observed = float(chosen.of(within, moments))
    law = exact_law(chosen, moments)
    drawn = None
    if null == "permutation":
        # values that are equal but for rounding must count as equal
        tolerance = rounding(chosen, moments, observed)
        limit = chosen.sign * observed - tolerance
        stop = None if early_stopping is None else (int(early_stopping), limit)
        drawn = permute(pairs, chosen, moments, int(n_resamples), rng, stop)
        pvalue = drawn.pvalue(observed, chosen.sign, tolerance)
        log_pvalue = math.log(pvalue)
        law = law or (
            asymptotic_law(chosen, "normal", moments) if drawn.stopped else sample_law(drawn.values)
        )
        count = f"{len(drawn.values):,}"
        how = f"all {count} labellings" if drawn.exact else f"{count} random labellings"
        how += ", stopped early" if drawn.stopped else ""
    else:
        log_pvalue = float(smooth_pvalue(chosen, null, within.x, within.y, moments))
        pvalue = max(math.exp(log_pvalue), sys.float_info.min)
        law = law or asymptotic_law(chosen, null, moments)
        how = f"{'chi-square' if chosen.name in ('generalized', 'fisher') else null} approximation"
    mean, std, skewness = (float(value) for value in law)
    return TwoSampleResult(
        statistic=observed,
        pvalue=pvalue,
        log_pvalue=log_pvalue,
        zscore=(observed - mean) / std if std else 0.0,
        null_mean=mean,
        null_std=std,
        null_skewness=skewness,
        null_distribution=None if drawn is None else drawn.values,
        n_x=samples.n_x,
        n_y=samples.n_y,
        method=f"{weights.name}, {chosen.title}, {how}",
    )
