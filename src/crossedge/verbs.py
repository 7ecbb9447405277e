"""The one verb."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, SupportsIndex

from crossedge.adaptive import adaptive_test
from crossedge.calls import run_usual
from crossedge.distances import Distance, Distances, pooled_distances
from crossedge.null.pvalues import check_null
from crossedge.randomness import Rng, check_rng
from crossedge.result import TwoSampleResult
from crossedge.samples import Samples
from crossedge.single import single_test
from crossedge.statistics import statistic_named
from crossedge.weights import Weights
from crossedge.weights.family import ANY, check_weights

MOST = 10**9  # labellings
CheckedTest = Callable[[Samples, Distances, Rng], TwoSampleResult]


def two_sample(
    x: Any,
    y: Any,
    weights: Weights | Sequence[Weights] | None = None,
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
    weights : SpanningTree, NearestNeighbours, GaussianKernel, ..., or several of them
        Which points of the pooled sample are neighbours, and how much. With several, the adaptive
        test over all; without any, the adaptive test over neighbourhoods from a few points to the
        whole sample, chosen by the pooled sample. Weights other than graphs at temperature 0 need
        the memory of an n x n matrix; above 3,000 points the default does without them.
    statistic : str
        "cross", the default of graphs, is the weight of the edges that join the two samples; few of
        them speak against equality. The others are large where the samples differ. "weighted" is
        the weight of edges inside the samples, fair to samples of unequal size; "generalized" also
        rejects where one sample has too many and the other too few of them, as after a change of
        scale; "max" does so with more power where only one of the two happens; "fisher" adds up the
        evidence of both. "mmd", the default of kernels, is the unbiased estimate of the squared
        MMD; "mmd_ratio" that over its standard deviation; "energy", the default of EnergyKernel,
        the squared energy distance. The adaptive test takes "weighted" and "fisher".
    null : "permutation", "normal" or "pearson3"
        Of a single test; that of an adaptive one is "permutation".
        Relabel the pooled sample at random (or in all ways, if these are no more than n_resamples
        and ten million), or compare with a law that has the exact mean and variance over all
        labellings: the normal (for "generalized", chi-square, which fits classical graphs only), or
        a gamma law with the exact skewness as well ("cross", "weighted" and "mmd", up to 4,000
        points: also the exact fourth moment; up to 2,000, the fifth cumulant). Up to 500 points,
        p-values below 0.25 by "pearson3" are not left to a law, but estimated to a few percent, as
        far as to 1e-6 at least, from labellings tilted towards what was observed, always the same
        ones; with fewer than eight points in a sample, and at temperatures near 0, other p-values
        too. It is no approximation, but the distribution over all labellings, if these are at most
        a million, and for "cross" on classical trees and 1-nearest neighbours without ties, up to
        2,000 points. `method` in the result tells which it was. "generalized" has no
        "pearson3", "fisher" has only that (as chi-square, up to three times too small: take
        permutations), and "mmd_ratio" has neither.
    n_resamples : int
        How many random labellings, if the null is "permutation".
    distance : float, callable or "precomputed"
        p >= 1 (or infinity) for l_p, or a function of two blocks of points, tensors of shape (a, d)
        and (b, d), that returns their (a, b) distances. It is called in another thread, while the
        main thread waits for interrupts.
    rng : int, numpy Generator or torch Generator
        The source of randomness; the same source gives the same answer on any number of threads.
    early_stopping : int
        Stop as soon as so many labellings are no less extreme than the samples. The p-value is then
        their share (Besag and Clifford, 1991): still valid, and soon known where it is large. Only
        for random labellings.

    Returns
    -------
    TwoSampleResult
        Prints as a summary; `.pvalue`, `.statistic`, `.zscore`, and for adaptive tests `.strongest`
        and `.members`.

    Examples
    --------
    >>> import numpy as np
    >>> import crossedge as ce
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(100, 3)), rng.normal(size=(80, 3)) + [1, 0, 0]
    >>> print(f"{ce.two_sample(x, y, rng=1).pvalue:.4f}")
    0.0001
    >>> ce.two_sample(x, y, ce.SpanningTree(), rng=1)
    two-sample test: minimum spanning tree, cross-edge count, 9,999 random labellings
      samples    100 and 80 points
      statistic  77  (if the distributions are equal: 88.8889 ± 6.622)
      z-score    -1.8
      p-value    0.0411
    """
    test = checked_test(
        weights,
        statistic=statistic,
        null=null,
        n_resamples=n_resamples,
        early_stopping=early_stopping,
    )
    check_rng(rng)

    def run() -> TwoSampleResult:
        samples, distances = pooled_distances(x, y, distance)
        return test(samples, distances, rng)

    return run_usual(run)


def checked_test(
    weights: Weights | Sequence[Weights] | None,
    *,
    statistic: str | None = None,
    null: str = "permutation",
    n_resamples: SupportsIndex = 9999,
    early_stopping: SupportsIndex | None = None,
    brief: bool = False,
) -> CheckedTest:
    """The choices of `two_sample`, checked once and ready for any number of samples.

    Brief tests are faster, but null_skewness may be NaN: for who wants p-values only.
    """
    one = several = None
    if isinstance(weights, Sequence) and not isinstance(weights, str):
        several = _check_list(weights)
    elif weights is not None:
        one = check_weights(weights, f"{ANY}, or a list of these")
    if statistic is None and one is not None:
        statistic = one.default_statistic
    chosen = None if statistic is None else statistic_named(statistic)
    if chosen is not None:
        if weights is None and chosen.made_for:
            raise ValueError(
                f"statistic={chosen.name!r} does not go with the default weights, which are "
                f"graphs: leave it out, or give weights={chosen.made_for}"
            )
        for each in several or ([] if one is None else [one]):
            chosen.check_weights(each)
    null = check_null(None if one is None else chosen, null)
    if one is None:
        for argument, value in (("null", null), ("early_stopping", early_stopping)):
            if value not in ("permutation", None):
                raise ValueError(
                    f"{argument}={value!r} does not go with the adaptive test, which must see all "
                    "labellings: leave it out, or give one family of weights"
                )
    resamples = _count(n_resamples, "n_resamples")
    stop = None if early_stopping is None else _count(early_stopping, "early_stopping")
    if stop is not None and null != "permutation":
        raise ValueError(
            f"early_stopping does not go with null={null!r}, which does not stop at any labelling: "
            "leave it out"
        )
    if one is not None and chosen is not None:
        # names that stay what they are, for the function below
        alone, its = one, chosen

        def single(samples: Samples, distances: Distances, rng: Rng) -> TwoSampleResult:
            return single_test(alone, its, null, samples, distances, resamples, rng, stop, brief)

        return single
    if chosen is not None and not chosen.nulls:
        raise ValueError(
            f"statistic={chosen.name!r} does not go with the adaptive test, which compares "
            "statistics by their laws: choose another, or give one family of weights"
        )

    def adaptive(samples: Samples, distances: Distances, rng: Rng) -> TwoSampleResult:
        return adaptive_test(several, chosen, samples, distances, resamples, rng)

    return adaptive


def _check_list(weights: Sequence[Weights]) -> list[Weights]:
    several = [check_weights(each) for each in weights]
    if not several:
        raise ValueError("weights is an empty list: give one at least, or None")
    for place, each in enumerate(several):
        if each in several[:place]:
            raise ValueError(f"weights has {each!r} twice: once is enough")
    return several


def _count(value: SupportsIndex, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name}={value!r} is not an integer: give a whole number")
    if value < 1:
        raise ValueError(f"{name}={value} is too small: give at least 1")
    if int(value) > MOST:
        raise ValueError(f"{name}={value} is too large: give at most a billion")
    return int(value)
