"""The one verb."""

from __future__ import annotations

from numbers import Integral
from typing import Any, SupportsIndex

from crossedge.distances import Distance, pooled_distances
from crossedge.null.moments import cross_moments
from crossedge.null.permutations import observe, permute
from crossedge.null.pvalues import normal_pvalue, permutation_pvalue
from crossedge.randomness import Rng, check_rng
from crossedge.result import TwoSampleResult
from crossedge.statistics import statistic_named
from crossedge.weights import GraphWeights
from crossedge.weights.family import check_weights


def two_sample(
    x: Any,
    y: Any,
    weights: GraphWeights | None = None,
    *,
    statistic: str | None = None,
    null: str = "permutation",
    n_resamples: SupportsIndex = 9999,
    distance: Distance = 2.0,
    rng: Rng = None,
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
    statistic : "cross"
        The weight of the edges that join the two samples; few of them speak against equality.
    null : "permutation" or "normal"
        Relabel the pooled sample at random (or in all ways, if these are no more than n_resamples),
        or compare the t-statistic, by the exact mean and variance, with the normal distribution.
    n_resamples : int
        How many random labellings.
    distance : float, callable or "precomputed"
        p >= 1 (or infinity) for l_p, or a function of two blocks of points, tensors of shape (a, d)
        and (b, d), that returns their (a, b) distances.
    rng : int, numpy Generator or torch Generator
        The source of randomness; the same source gives the same answer on any number of threads.

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
    chosen = statistic_named("cross" if statistic is None else statistic)
    if not isinstance(null, str) or null not in ("permutation", "normal"):
        raise ValueError(f"null={null!r} is unknown: choose from 'permutation', 'normal'")
    if isinstance(n_resamples, bool) or not isinstance(n_resamples, Integral):
        raise TypeError(f"n_resamples={n_resamples!r} is not an integer: give a whole number")
    check_rng(rng)
    if n_resamples < 1:
        raise ValueError(f"n_resamples={n_resamples} is too small: give at least 1")

    samples, distances = pooled_distances(x, y, distance)
    graph = weights.edges(distances)
    moments = cross_moments(graph, samples.n_x, samples.n_y)
    observed = observe(graph, chosen, samples.in_x)
    zscore = (observed - moments.mean) / moments.std if moments.std else 0.0
    if null == "permutation":
        drawn = permute(graph, chosen, samples.n_x, int(n_resamples), rng)
        # values that are equal but for rounding must count as equal
        tolerance = max(1e-8 * moments.std, 1e-12 * graph.total)
        pvalue = permutation_pvalue(observed, drawn, tolerance)
        count = f"{len(drawn.values):,}"
        how = f"all {count} labellings" if drawn.exact else f"{count} random labellings"
    else:
        drawn = None
        pvalue = normal_pvalue(zscore) if moments.std else 1.0
        how = "normal approximation"
    return TwoSampleResult(
        statistic=observed,
        pvalue=pvalue,
        zscore=zscore,
        null_mean=moments.mean,
        null_std=moments.std,
        null_skewness=moments.skewness,
        null_distribution=None if drawn is None else drawn.values,
        n_x=samples.n_x,
        n_y=samples.n_y,
        method=f"{weights.name}, {chosen.title}, {how}",
    )
