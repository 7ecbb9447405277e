"""Many weights and several statistics, one calibrated answer.

Every pair of weights and a statistic has its evidence, minus the logarithm of its smooth p-value.
Their soft maximum is the statistic of the whole, and the same labellings of the pooled sample that
give each of them its null give the whole its own: nothing is split or spent. Weights and whatever
chooses them see the pooled sample only, so the p-value is valid at any sample size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from crossedge.compiled import in_threads
from crossedge.distances import Distances, RowDistances, distance_matrix, matrix_distances
from crossedge.null.laws import sample_law, score_rounding
from crossedge.null.moments import label_moments
from crossedge.null.permutations import Labellings, PermutationNull, observe, relabel
from crossedge.null.pvalues import smooth_pvalue
from crossedge.randomness import Rng
from crossedge.result import Member, TwoSampleResult
from crossedge.samples import Samples
from crossedge.statistics import Statistic, statistic_named
from crossedge.weights import NearestNeighbours, SpanningTree, Weights

Floats = npt.NDArray[np.float64]

STATISTICS = ("weighted", "fisher")
SHARPNESS = 2.0  # of the soft maximum: 1 would be the harmonic mean of p-values, more the smallest
DENSE = 3000  # pooled points, up to which the default has smooth weights
MOST_EDGES = 10**7  # of the classical graphs of more points
LADDER = 4  # from one size of neighbourhood to the next
ROWS = 128


def adaptive_test(
    weights: Sequence[Weights] | None,
    statistic: Statistic | None,
    samples: Samples,
    distances: Distances,
    n_resamples: int,
    rng: Rng,
) -> TwoSampleResult:
    """With weights chosen by the pooled sample, if none are given."""
    chosen = [statistic] if statistic else [statistic_named(name) for name in STATISTICS]
    dense = any(one.is_smooth for one in weights) if weights else distances.n <= DENSE
    full = _with_matrix(distances) if dense else distances
    weights = default_weights(full) if weights is None else weights
    labellings = Labellings(distances.n, samples.n_x, n_resamples, rng)
    found: list[tuple[Weights, Statistic]] = []
    evidence: list[Floats] = []
    tolerance = 0.0
    for one in weights:
        pairs = one.pairs(full if one.is_smooth else distances)
        moments = label_moments(pairs, samples.n_x, samples.n_y)
        seen = observe(pairs, samples.in_x)
        drawn = relabel(pairs, labellings, range(labellings.blocks))
        x, y = torch.cat([seen.x[None], drawn.x]), torch.cat([seen.y[None], drawn.y])
        tolerance = max(tolerance, score_rounding(moments))
        for each in chosen:
            law = "normal" if each.name == "generalized" else "pearson3"
            log_p = smooth_pvalue(each, law, x, y, moments)[: 1 + labellings.count]
            evidence.append(-log_p.numpy())
            found.append((one, each))
    table = np.stack(evidence)  # the samples as given, then relabelled
    whole = np.logaddexp.reduce(SHARPNESS * table, axis=0) / SHARPNESS
    whole -= math.log(len(table)) / SHARPNESS
    null = PermutationNull(whole[1:], labellings.exact, False)
    null.values.setflags(write=False)

    def pvalue(values: Floats) -> float:
        # evidence is about z^2 / 2; what is equal but for rounding must count as equal
        slack = tolerance * (1 + math.sqrt(2 * max(values[0], 0.0)))
        return PermutationNull(values[1:], labellings.exact, False).pvalue(values[0], 1, slack)

    members = tuple(
        Member(one, each.name, float(values[0]), pvalue(values))
        for (one, each), values in zip(found, table, strict=True)
    )
    mean, std, skewness = (float(value) for value in sample_law(null.values))
    observed, count = float(whole[0]), f"{labellings.count:,}"
    how = f"all {count} labellings" if labellings.exact else f"{count} random labellings"
    p = pvalue(whole)
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
        method=f"adaptive over {_plural(len(weights), 'weight')} x "
        f"{_plural(len(chosen), 'statistic')}, {how}",
        members=members,
    )


def default_weights(distances: Distances) -> list[Weights]:
    """Neighbourhoods of all sizes, by the pooled sample alone.

    Smoothed nearest neighbours, each at a temperature where so many points share the choice of one:
    the median gap between a point's nearest and its 4th, 16th, 64th, ... nearest neighbour, which
    means the same in any dimension, up to the farthest, where the cross count is the energy
    distance but for small terms. And classical ones, which no far point can blind.
    """
    n = distances.n
    classical = sorted({min(max(k, 1), n - 1) for k in (round(math.sqrt(n)), n // 8)})
    if not isinstance(distances, RowDistances) or distances.matrix is None:
        sizes = [LADDER**step for step in range(1, 4) if n * LADDER**step <= MOST_EDGES]
        return [SpanningTree(), *(NearestNeighbours(k) for k in sizes)]
    sizes = [LADDER**step for step in range(1, 12) if LADDER**step <= n / 3] + [n - 1]
    temperatures = sorted({gap for gap in _median_gaps(distances.matrix, sizes) if gap > 0})
    smooth = [NearestNeighbours(1, temperature) for temperature in temperatures]
    return [*smooth, *(NearestNeighbours(k) for k in classical)]


def _median_gaps(matrix: Floats, sizes: list[int]) -> list[float]:
    """Between a point's nearest and its size-th nearest, over all points."""
    n = len(matrix)
    places = [0, *(size - 1 for size in sizes)]

    def of_rows(first: int) -> Floats:
        rows = matrix[first : first + ROWS].copy()
        each = np.arange(len(rows))
        rows[each, first + each] = np.inf  # not a neighbour of itself
        return np.partition(rows, places, axis=1)[:, places]

    ordered = np.concatenate(in_threads(of_rows, range(0, n, ROWS)))
    return [float(gap) for gap in np.median(ordered[:, 1:] - ordered[:, :1], axis=0)]


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("s" if count != 1 else "")


def _with_matrix(distances: Distances) -> Distances:
    """So that several weights need not compute it again."""
    if isinstance(distances, RowDistances) and distances.matrix is not None:
        return distances
    return matrix_distances(distance_matrix(distances))
