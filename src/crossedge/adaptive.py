"""Many weights and several statistics, one calibrated answer.

Every test, of some weights and a statistic, has its evidence: minus the logarithm of its smooth p.
Their soft maximum is the statistic of the whole, and the same labellings of the pooled sample that
give each of them its null give the whole its own: nothing is split or spent. Weights and whatever
chooses them see the pooled sample only, so the p-value is valid at any sample size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from crossedge.distances import (
    Distances,
    RowDistances,
    distance_matrix,
    matrix_distances,
)
from crossedge.null.laws import sample_law, score_rounding
from crossedge.null.moments import label_moments
from crossedge.null.permutations import Labellings, PermutationNull, observe, relabel
from crossedge.null.pvalues import smooth_pvalue
from crossedge.randomness import Rng
from crossedge.result import Member, TwoSampleResult
from crossedge.samples import Samples
from crossedge.statistics import Statistic, statistic_named
from crossedge.threads import in_threads
from crossedge.tolerances import TIE
from crossedge.weights import NearestNeighbours, SpanningTree, Weights

Floats = npt.NDArray[np.float64]

STATISTICS = ("weighted", "fisher")
SHARPNESS = 2.0  # of the soft maximum: 1 would be the harmonic mean of p-values, more the smallest
DENSE = 3000  # pooled points, up to which the default has smooth weights
MOST_EDGES = 10**7  # of the classical graphs of more points
LADDER = 4  # from one size of neighbourhood to the next
ROWS = 128


class Part(NamedTuple):
    """One of the tests that the whole is made of, and its weight in the soft maximum."""

    weights: Weights
    statistic: Statistic
    prior: float


def adaptive_test(
    weights: Sequence[Weights] | None,
    statistic: Statistic | None,
    samples: Samples,
    distances: Distances,
    n_resamples: int,
    rng: Rng,
) -> TwoSampleResult:
    """With weights chosen by the pooled sample, if none are given."""
    names = STATISTICS if statistic is None else (statistic.name,)
    dense = any(one.is_smooth for one in weights) if weights else distances.n <= DENSE
    full = _with_matrix(distances) if dense else distances
    if weights is not None:
        parts = _all_parts(weights, names)
    else:
        parts = default_parts(full, names) if dense else _all_parts(sparse_weights(full), names)
    labellings = Labellings(distances.n, samples.n_x, n_resamples, rng)
    table, tolerances = [], []
    for one, group in groupby(parts, key=lambda part: part.weights):
        pairs = one.pairs(full)
        moments = label_moments(pairs, samples.n_x, samples.n_y)
        seen = observe(pairs, samples.in_x)
        drawn = relabel(pairs, labellings, range(labellings.blocks))
        x, y = torch.cat([seen.x[None], drawn.x]), torch.cat([seen.y[None], drawn.y])
        for part in group:
            law = part.statistic.nulls[-1]
            log_p = smooth_pvalue(part.statistic, law, x, y, moments)[: 1 + labellings.count]
            table.append(-log_p.numpy())  # the evidence of the samples as given, then relabelled
            # evidence is about z^2 / 2; what is equal but for rounding must count as equal
            z = math.sqrt(2 * max(table[-1][0], 0.0))
            tolerances.append(score_rounding(moments) * (1 + z))
    evidence = np.stack(table)
    prior = np.log([part.prior for part in parts])[:, None] - math.log(sum(p.prior for p in parts))
    whole = np.logaddexp.reduce(SHARPNESS * evidence + prior, axis=0) / SHARPNESS
    shares = np.exp(SHARPNESS * (evidence[:, 0] - whole[0]) + prior[:, 0])
    null = PermutationNull(whole[1:], labellings.exact, False)
    null.values.setflags(write=False)

    def pvalue(values: Floats, tolerance: float) -> float:
        drawn = PermutationNull(values[1:], labellings.exact, False)
        return drawn.pvalue(values[0], 1, tolerance)

    members = tuple(
        Member(part.weights, part.statistic.name, float(values[0]), pvalue(values, tolerance))
        for part, values, tolerance in zip(parts, evidence, tolerances, strict=True)
    )
    p = pvalue(whole, float(shares @ tolerances))
    mean, std, skewness = (float(value) for value in sample_law(null.values))
    observed, count = float(whole[0]), f"{labellings.count:,}"
    how = f"all {count} labellings" if labellings.exact else f"{count} random labellings"
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
        method=f"adaptive over {_plural(len(parts), 'test')}, {how}",
        members=members,
    )


def _all_parts(weights: Sequence[Weights], names: Sequence[str]) -> list[Part]:
    return [Part(one, statistic_named(name), 1.0) for one in weights for name in names]


def default_parts(distances: Distances, names: Sequence[str]) -> list[Part]:
    """Neighbourhoods of all sizes, by the pooled sample alone.

    Smoothed nearest neighbours, each at a temperature where so many points share the choice of one:
    the median gap between a point's nearest and its 4th, 16th, 64th, ... nearest neighbour, which
    means the same in any dimension. A classical graph, which no far point can blind. And against
    all these local ones, with the weight of them together, the gap to the farthest neighbour, where
    the weighted count is next to the energy distance.
    """
    matrix = distance_matrix(distances)
    n = len(matrix)
    sizes = [LADDER**step for step in range(1, 12) if LADDER**step <= n / 3]
    *gaps, farthest = _median_gaps(matrix, [*sizes, n - 1])
    temperatures = sorted({gap for gap in gaps if gap > 0} - {farthest})
    local = [NearestNeighbours(1, temperature) for temperature in temperatures]
    local.append(NearestNeighbours(min(max(n // 8, 1), n - 1)))
    parts = _all_parts(local, names)
    if farthest > 0:
        parts.append(
            Part(NearestNeighbours(1, farthest), statistic_named(names[0]), float(len(parts)))
        )
    return parts


def sparse_weights(distances: Distances) -> list[Weights]:
    """For many points: graphs that need no matrix."""
    sizes = [LADDER**step for step in range(1, 4)]
    few = [k for k in sizes if distances.n * k <= MOST_EDGES and k < distances.n]
    return [SpanningTree(), *(NearestNeighbours(k) for k in few)]


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
    gaps = ordered[:, 1:] - ordered[:, :1]
    gaps[gaps <= (TIE - 1) * ordered[:, 1:]] = 0.0  # those are ties
    return [float(gap) for gap in np.median(gaps, axis=0)]


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("s" if count != 1 else "")


def _with_matrix(distances: Distances) -> Distances:
    """So that several weights need not compute it again."""
    if isinstance(distances, RowDistances) and distances.matrix is not None:
        return distances
    return matrix_distances(distance_matrix(distances))
