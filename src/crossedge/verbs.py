"""The function `two_sample`: check the arguments, then run a single or an adaptive test."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, SupportsIndex

import numpy as np

from crossedge.adaptive import adaptive_test
from crossedge.clusters import cluster_test, is_elsewhere
from crossedge.data.cautions import DEPENDENT
from crossedge.data.columns import check_scale
from crossedge.data.designs import Blocks, check_blocks, design_of, taken_out
from crossedge.data.distances import Distance, Distances, no_distances, pooled_distances
from crossedge.data.representations import Transform, check_transform
from crossedge.data.samples import Samples, thinned
from crossedge.null import Law, Permutation, null_named
from crossedge.null.stopping import AtLevel
from crossedge.result import TwoSampleResult
from crossedge.runtime.calls import run_usual
from crossedge.runtime.counts import count_of
from crossedge.runtime.randomness import Rng, check_rng, random_key
from crossedge.single import single_test
from crossedge.statistics import statistic_named
from crossedge.weights import EnergyKernel, Graph, LinearKernel, QuadraticKernel, Weights
from crossedge.weights.choice import check_choice

CheckedTest = Callable[[Samples, Distances, Rng], TwoSampleResult]


def two_sample(
    x: Any,
    y: Any,
    weights: Weights | Sequence[Weights] | None = None,
    *,
    statistic: str | None = None,
    null: str | Law = "permutation",
    n_resamples: SupportsIndex = 9999,
    distance: Distance = 2.0,
    transform: Transform | None = None,
    scale: str | None = None,
    blocks: Blocks | None = None,
    rng: Rng = None,
    early_stopping: SupportsIndex | float | None = None,
    max_points: SupportsIndex | None = None,
) -> TwoSampleResult:
    """Test whether two samples come from the same distribution.

    Parameters
    ----------
    x, y : array, tensor, list or frame
        (n_x, d) and (n_y, d) points, or plain lists of numbers. Frames are matched by the names of
        their columns, which may hold numbers, dates, booleans, categories and missing values: see
        docs/tables.md. With distance="precomputed", x is the (n, n) matrix of distances between all
        points. y then selects the rows of the second sample: their number, if they are the last
        rows, or a boolean mask. With a `Graph` of points that are elsewhere, x is None, and y is a
        boolean mask of the points of the second sample. Dask arrays, or folders of parquet files,
        may be larger than memory: see docs/large.md.
    weights : Weights or sequence of Weights, optional
        Which points of the pooled sample are neighbours, and how strongly: `SpanningTree`,
        `NearestNeighbours`, `GaussianKernel` and so on. A sequence selects the adaptive test over
        its members. By default the test is adaptive over neighbourhoods from a few points to the
        whole sample, whitened points, ranks and second moments, chosen by the pooled sample. All
        weights need memory for n x n matrices but graphs at temperature 0 and
        `EnergyKernel(rank=...)`. The default does not above 3,000.
    statistic : str, optional
        "cross", the default of graphs, is the weight of the edges that join the two samples, and
        small values are evidence against equality. All other statistics are large where the samples
        differ. "weighted" is the weight of the edges inside the samples, fair to samples of unequal
        size. "generalized" also rejects where one sample has too many such edges and the other too
        few, as after a change of scale. "max" has more power where only one of the two happens, and
        "fisher" adds up the evidence of both. "mmd", the default of kernels, is the unbiased
        estimate of the squared MMD, and "mmd_ratio" is the same over its standard deviation.
        "energy", the default of `EnergyKernel`, is the squared energy distance. The adaptive test
        uses "weighted" and "fisher" by default.
    null : {"permutation", "normal", "pearson3", "tail"} or law, optional
        "permutation" compares the statistic with its values on relabelled samples: on all
        labellings if there are at most `n_resamples`, otherwise on random ones. "normal" and
        "pearson3" are smooth laws with exact moments, and "tail" is the most accurate p-value that
        is affordable (see `Tail`). The adaptive test requires "permutation". docs/method.md shows
        how accurate each null is.
    n_resamples : int, optional
        The number of random labellings for null="permutation"; other nulls do not use it. A
        `Permutation` object brings its own.
    distance : float, callable or "precomputed", optional
        p >= 1 (or infinity) for the l_p distance, or a function of two blocks of points, of shape
        (a, d) and (b, d), that returns their (a, b) distances. The blocks are tensors if the
        samples are, or if the function accepts nothing else. The function is called in another
        thread, while the main thread waits for interrupts.
    transform : {"standardize", "whiten", "rank", "squares"} or callable, optional
        A map by name (see docs/guide.md), or a function from the (n, d) pooled points to (n, e)
        points, on which the test then runs, such as a layer of a network. It sees the pooled points
        only, in one call, so the p-value stays valid with any map that treats all rows alike. The
        rows of x come first, so a running mean would know the labels. It receives a tensor, without
        a gradient, if the samples are tensors or if it is a torch module, and otherwise an array.
    scale : {"robust", "std", "rank", "none"}, optional
        How numbers are scaled, by the pooled sample: "robust" centres each column at its median
        and divides it by its interquartile range, "std" by its standard deviation, "rank" takes
        ranks. By default it is "robust" for frames, whose columns have names, and "none" for all
        other samples.
    blocks : "pairs", Strata or Clusters, optional
        Which labels may be exchanged, if not all: see docs/designs.md. With "pairs", row i of x
        and row i of y are a pair, and labels are exchanged within pairs. `Strata(labels)` exchanges
        within strata, such as days or sites. `Clusters(labels)` relabels whole clusters, such as
        subjects or trajectories; the p-value is then for as many clusters of each label, and
        within-sums are corrected for their numbers of rows. "pearson3" and "tail" are for
        exchangeable rows only.
    rng : int, numpy Generator or torch Generator, optional
        The source of randomness. The same source gives the same answer on any number of threads.
    early_stopping : int or float, optional
        Stop at this number of labellings that are at least as extreme as the samples. The p-value
        is then the fraction of extreme labellings [1]_, which is valid and takes little time where
        it is large. Or a level, such as 0.05: stop where a bet [2]_ on a p-value below it has won
        or lost, often after some fifty labellings. The p-value is then that of the bet, which is
        valid wherever it stops, and hardly below the level; p-values of all labellings between 0.8
        and 1 times the level are often missed. Only for random labellings. The p-values of
        `members` are then those of the labellings that were visited, which is approximate.
    max_points : int, optional
        Take at most so many points, random ones of both samples in the same proportion, drawn by
        `rng`. The result has the numbers of points that were taken.

    Returns
    -------
    TwoSampleResult
        The p-value, the statistic, its z-score and how they were found. Printing it shows a
        summary.

    Raises
    ------
    TypeError
        If an argument has the wrong type, or a sample has values that are not real numbers.
    ValueError
        If a sample is empty, ragged or not finite, if the samples have different columns, if a name
        is unknown, or if the statistic does not go with the weights or with the null.
    MemoryError
        If the weights need more memory than is free.

    Warns
    -----
    UserWarning
        For frames: columns that are left out, rows that stand in both samples, fewer than 20 rows,
        rows in an order that independent rows do not have, and a column that drowns all others.
        With blocks: if no labels can be exchanged.

    See Also
    --------
    divergence : Estimate how far apart the two distributions are.
    TwoSampleLoss : The same tests as differentiable losses.
    power_study : Estimate the power of tests against alternatives.

    References
    ----------
    .. [1] J. Besag and P. Clifford, "Sequential Monte Carlo p-values", Biometrika, 1991.
    .. [2] L. Fischer and A. Ramdas, "Sequential permutation testing by betting", 2024.

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
    check_blocks(blocks)
    named = null if isinstance(null, str) else getattr(null, "name", None)
    if blocks is not None and named in ("pearson3", "tail"):
        raise ValueError(
            f"null={named!r} needs the skewness over all labellings, which is not known with "
            "blocks: leave null out, or choose null='normal'"
        )
    check_rng(rng)
    check_transform(transform)
    check_scale(scale)
    most = None if max_points is None else count_of(max_points, "max_points")
    known = isinstance(weights, Graph) or isinstance(distance, str)
    if most is not None and (most < 2 or known or is_elsewhere(x)):
        raise ValueError(
            f"max_points={most} needs at least 2, and arrays of points to choose from: leave it out"
        )

    if blocks is not None and (most is not None or is_elsewhere(x)):
        raise ValueError(
            "blocks needs all rows, in memory: leave out max_points, and give arrays or frames"
        )
    if is_elsewhere(x) or is_elsewhere(y):
        if not isinstance(weights, Weights) or transform is not None or scale is not None:
            raise ValueError(
                "samples on a cluster need weights=ce.NearestNeighbours(k), and no transform "
                "or scale"
            )
        chosen = statistic_named(statistic or weights.default_statistic)
        law = null_named(null, chosen)
        if isinstance(law, Permutation) and not isinstance(null, Permutation):
            stop = stop_of(early_stopping)
            law = Permutation(count_of(n_resamples, "n_resamples"), rng, stop)
        return run_usual(lambda: cluster_test(x, y, weights, chosen, law, distance))

    def thin(samples: Samples) -> Samples:
        if most is None or len(samples.in_x) <= most:
            return samples
        return thinned(samples, most, np.random.default_rng(int(random_key(rng))))

    def run() -> tuple[TwoSampleResult, tuple[str, ...]]:
        own_x, own_y, own_blocks = x, y, blocks
        if blocks is not None:
            (own_x, own_y), own_blocks = taken_out((x, y), blocks)
        if x is None and isinstance(weights, Graph):
            samples, distances = no_distances(y)
        else:
            samples, distances = pooled_distances(own_x, own_y, distance, transform, scale, thin)
        cautions = cautions_of(samples, weights, has_blocks=blocks is not None)
        if own_blocks is not None:
            design = design_of(own_blocks, (~samples.in_x).astype(np.int64))
            samples = replace(samples, design=design)
            if not design.is_free.any():
                cautions += (
                    "every block holds one sample only: no labels can be exchanged, and p = 1",
                )
        found = test(samples, distances, rng)
        return replace(found, columns=samples.made) if samples.made else found, cautions

    result, cautions = run_usual(run)
    for caution in cautions:
        warnings.warn(caution, UserWarning, stacklevel=2)
    return result


def cautions_of(samples: Samples, weights: Any, has_blocks: bool = False) -> tuple[str, ...]:
    """Return what the user should know of the samples, if they are tested with these weights.

    A test can be told which rows belong together, which other verbs cannot.
    """
    grows = isinstance(weights, EnergyKernel | LinearKernel | QuadraticKernel)
    remedy = (
        ", unless they are in one block"
        if has_blocks
        else ": say which belong together by --pairs, --strata or --clusters (in Python, by blocks)"
    )
    lines = (f"{line}{remedy * line.endswith(DEPENDENT)}" for line in samples.cautions)
    return (*lines, *(samples.far if grows else ()))


def checked_test(
    weights: Weights | Sequence[Weights] | None,
    *,
    statistic: str | None = None,
    null: str | Law = "permutation",
    n_resamples: SupportsIndex = 9999,
    early_stopping: SupportsIndex | float | None = None,
    brief: bool = False,
) -> CheckedTest:
    """Check the choices of `two_sample` once, and return a test that is ready for any samples.

    A brief test is faster, but null_skewness may be NaN. Use it when only the p-value matters.
    """
    given = check_choice(weights)
    one = given if isinstance(given, Weights) else None
    several = given if isinstance(given, list) else None
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
    law = null_named(null, None if one is None else chosen)
    if isinstance(null, Permutation):  # with settings of its own
        check_rng(null.rng)
        n_resamples, early_stopping = null.n_resamples, null.early_stopping
    if one is None and not isinstance(law, Permutation):
        raise ValueError(
            f"null={law.name!r} does not go with the adaptive test, which compares labellings: "
            "leave it out, or give one family of weights"
        )

    def source(rng: Rng) -> Rng:
        given = null.rng if isinstance(null, Permutation) else None
        return rng if given is None else given

    resamples = count_of(n_resamples, "n_resamples")
    stop = stop_of(early_stopping)
    if stop is not None and not isinstance(law, Permutation):
        raise ValueError(
            f"early_stopping does not go with null={null!r}, which does not stop at any labelling: "
            "leave it out"
        )
    fewest = 1 if stop is None or isinstance(stop, int) else AtLevel(stop).fewest
    if resamples < fewest:
        raise ValueError(
            f"early_stopping={stop} needs {fewest:,} labellings at least, n_resamples={resamples}: "
            "give more, or leave it out"
        )
    if one is not None and chosen is not None:
        # type checkers forget inside a nested function that `one` and `chosen` are not None
        alone, its = one, chosen

        def single(samples: Samples, distances: Distances, rng: Rng) -> TwoSampleResult:
            own = Permutation(resamples, source(rng), stop) if isinstance(law, Permutation) else law
            return single_test(alone, its, own, samples, distances, brief)

        return single
    if chosen is not None and not chosen.nulls:
        raise ValueError(
            f"statistic={chosen.name!r} does not go with the adaptive test, which compares "
            "statistics by their laws: choose another, or give one family of weights"
        )

    def adaptive(samples: Samples, distances: Distances, rng: Rng) -> TwoSampleResult:
        return adaptive_test(several, chosen, samples, distances, resamples, source(rng), stop)

    return adaptive


def stop_of(value: SupportsIndex | float | None) -> float | None:
    """Return when to stop, as a number of labellings or a level, or raise if it is neither."""
    if not isinstance(value, float):
        return None if value is None else count_of(value, "early_stopping")
    if not 0 < value < 1:
        raise ValueError(
            f"early_stopping={value} is no level: give one between 0 and 1, or a number of "
            "labellings"
        )
    return float(value)
