"""The adaptive test: many weights and several statistics, one calibrated p-value.

Each part of the test, some weights with one statistic, has its evidence: minus the logarithm of its
p-value by a smooth law. The statistic of the whole is the soft maximum of these. The same
labellings of the pooled sample give the null distribution of each part and of the whole, so no data
is set aside. The weights, and how they are chosen, depend on the pooled sample only, so the p-value
is valid at every sample size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from crossedge.data.distances import (
    Distances,
    PointDistances,
    RowDistances,
    distance_matrix,
    matrix_distances,
)
from crossedge.data.samples import Samples
from crossedge.null import Pearson3, Permutation
from crossedge.null.labellings import Labellings, PermutationNull, moments_of, observe, relabel
from crossedge.null.permutation import labellings_in_words
from crossedge.numerics.tolerances import TIE
from crossedge.result import Member, TwoSampleResult
from crossedge.runtime.randomness import Rng
from crossedge.runtime.threads import in_threads
from crossedge.runtime.types import Floats
from crossedge.statistics import Statistic, statistic_named
from crossedge.statistics.laws import sample_moments
from crossedge.weights import EnergyKernel, NearestNeighbours, Weights
from crossedge.weights.thinned_neighbours import ThinnedNeighbours

DEFAULT_STATISTICS = ("weighted", "fisher")
# Sharpness of the soft maximum: 1 is the harmonic mean of p-values, infinity the smallest p-value.
SHARPNESS = 2.0
MOST_DENSE_POINTS = 3000  # up to this many pooled points, the default uses smoothed weights
MOST_EDGES = 12 * 10**6  # in a classical graph of the default for more points
# Up to this many points skewness is exact. An error makes no p-value invalid: it only shifts weight
# between the parts, and one of 0.01 hardly that.
MOST_EXACT_POINTS = 1000
MANY_COORDINATES = 12  # beyond, finding neighbours takes time like n^2
MOST_WIDE_POINTS = 50_000  # whose neighbours are found then, in seconds
LANDMARKS = 128  # of the energy kernel for more points
SIZE_RATIO = 4  # the ratio of one size of neighbourhood to the next
BLOCK_ROWS = 128  # rows of a matrix in a block, the unit of work of a thread


class Part(NamedTuple):
    """One part of an adaptive test, and its prior weight in the soft maximum."""

    weights: Weights
    statistic: Statistic
    prior: float


class Evidence(NamedTuple):
    """The evidence of the samples as given, followed by that of relabelled samples."""

    parts: Floats  # (parts, 1 + labellings)
    whole: Floats  # (1 + labellings,), the soft maximum of the parts
    tolerances: Floats  # (parts,) rounding errors of the evidence as given
    tolerance: float  # the same of the whole


class Scorer:
    """The weights of all parts on one pooled sample, ready for any labellings."""

    def __init__(self, parts: Sequence[Part], samples: Samples, distances: Distances) -> None:
        self.parts, self.in_x, self.design = tuple(parts), samples.in_x, samples.design
        self.groups = []
        for one, group in groupby(parts, key=lambda part: part.weights):
            pairs = one.pairs(distances)
            moments = moments_of(pairs, samples, nearly=distances.n > MOST_EXACT_POINTS)
            self.groups.append((pairs, moments, tuple(part.statistic for part in group)))

    def evidence(self, labellings: Labellings) -> Evidence:
        """Return the evidence of each part and of the whole."""
        table, rounding = [], []
        for pairs, moments, statistics in self.groups:
            seen = observe(pairs, self.in_x, design=self.design)
            drawn = relabel(pairs, labellings, range(labellings.blocks))
            x = np.append(seen.x, drawn.x[: labellings.count])
            y = np.append(seen.y, drawn.y[: labellings.count])
            for statistic in statistics:
                law = statistic.law
                assert law is not None
                log_p = law.log_pvalue(statistic, x, y, moments, Pearson3.log_tail)
                table.append(-log_p)
                # evidence is about z^2 / 2, so a rounding error of z is multiplied by z
                z = math.sqrt(2 * max(table[-1][0], 0.0))
                rounding.append(moments.score_rounding() * (1 + z))
        values, tolerances = np.stack(table), np.array(rounding)
        priors = np.array([part.prior for part in self.parts])
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
) -> TwoSampleResult:
    """Run the adaptive test, with weights chosen by the pooled sample if none are given."""
    names = DEFAULT_STATISTICS if statistic is None else (statistic.name,)
    dense = (
        any(one.peak_matrices > 0 for one in weights)
        if weights
        else distances.n <= MOST_DENSE_POINTS
    )
    full = with_matrix(distances) if dense else distances
    if weights is not None:
        parts = all_parts(weights, names)
    else:
        parts = default_parts(full, names) if dense else sparse_parts(full, names)
    labellings = Labellings(distances.n, samples.n_x, n_resamples, rng, samples.design)
    found = Scorer(parts, samples, full).evidence(labellings)
    null = PermutationNull(found.whole[1:], labellings.exact, False)
    null.values.setflags(write=False)

    def pvalue(values: Floats, tolerance: float) -> float:
        drawn = PermutationNull(values[1:], labellings.exact, False)
        return drawn.pvalue(values[0], 1, tolerance)

    members = tuple(
        Member(part.weights, part.statistic.name, float(values[0]), pvalue(values, tolerance))
        for part, values, tolerance in zip(parts, found.parts, found.tolerances, strict=True)
    )
    p = pvalue(found.whole, found.tolerance)
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
        law=labellings_in_words(labellings.count, labellings.exact),
        n_resamples=labellings.count,
        exact=labellings.exact,
        members=members,
        design=None if samples.design is None else samples.design.words,
    )


def all_parts(weights: Sequence[Weights], names: Sequence[str]) -> list[Part]:
    """Return all combinations of weights and statistics, with equal prior weights."""
    return [Part(one, statistic_named(name), 1.0) for one in weights for name in names]


def default_parts(distances: Distances, names: Sequence[str]) -> list[Part]:
    """Return the default parts, neighbourhoods of all sizes, chosen by the pooled sample alone.

    - Smoothed nearest neighbours, at temperatures where 4, 16, 64, ... points share the choice of a
      neighbour. The temperature is the median, over points, of the gap between the distances to the
      nearest and to the 4th, 16th, 64th, ... nearest neighbour. Gaps mean the same in any
      dimension.
    - A classical graph, which depends on ranks only and is therefore robust to outliers.
    - With as much prior weight as all these local parts together, smoothed nearest neighbours at
      the gap to the farthest point, where the weighted count is close to the energy distance.
    """
    matrix = distance_matrix(distances)
    n = len(matrix)
    sizes = [SIZE_RATIO**step for step in range(1, 12) if SIZE_RATIO**step <= n / 3]
    *gaps, farthest = _median_gaps(matrix, [*sizes, n - 1])
    temperatures = sorted({gap for gap in gaps if gap > 0} - {farthest})
    local = [NearestNeighbours(1, temperature) for temperature in temperatures]
    local.append(NearestNeighbours(min(max(n // 8, 1), n - 1)))
    parts = all_parts(local, names)
    if farthest > 0:
        parts.append(
            Part(NearestNeighbours(1, farthest), statistic_named(names[0]), float(len(parts)))
        )
    return parts


def sparse_parts(distances: Distances, names: Sequence[str]) -> list[Part]:
    """Return the default parts for many points, which need no matrix.

    - Classical graphs of 4, 16, 64, ... nearest neighbours. The larger ones see what is spread over
      many points, as a change of scale is, and the smaller ones what is local. In many dimensions,
      where no search is faster than n^2, they have at most 50,000 points.
    - With as much prior weight as all these local parts together, the energy kernel by landmarks.
    """
    sizes = [SIZE_RATIO**step for step in range(1, 5)]
    wide = isinstance(distances, PointDistances) and distances.points.shape[1] > MANY_COORDINATES
    n = min(distances.n, MOST_WIDE_POINTS) if wide else distances.n
    few = [k for k in sizes if n * k <= MOST_EDGES and k < n / 4]
    graphs: list[Weights] = [NearestNeighbours(k) for k in few or [1]]
    if n < distances.n:
        graphs = [ThinnedNeighbours(k, among=n) for k in few]
    parts = all_parts(graphs, names)
    parts.append(Part(EnergyKernel(rank=LANDMARKS), statistic_named(names[0]), float(len(parts))))
    return parts


def _median_gaps(matrix: Floats, sizes: list[int]) -> list[float]:
    """Return the median gap between the nearest and the size-th nearest distance, for each size."""
    n = len(matrix)
    places = [0, *(size - 1 for size in sizes)]

    def of_rows(first: int) -> Floats:
        rows = matrix[first : first + BLOCK_ROWS].copy()
        each = np.arange(len(rows))
        rows[each, first + each] = np.inf  # a point is not its own neighbour
        return np.partition(rows, places, axis=1)[:, places]

    ordered = np.concatenate(in_threads(of_rows, range(0, n, BLOCK_ROWS)))
    gaps = ordered[:, 1:] - ordered[:, :1]
    gaps[gaps <= (TIE - 1) * ordered[:, 1:]] = 0.0  # the distances tie
    return [float(gap) for gap in np.median(gaps, axis=0)]


def with_matrix(distances: Distances) -> Distances:
    """Return the distances with their matrix, so that it is computed once for all weights."""
    if isinstance(distances, RowDistances) and distances.matrix is not None:
        return distances
    return matrix_distances(distance_matrix(distances))
