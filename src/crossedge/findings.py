"""All answers about two samples at once: whether, how large, and where they differ.

The samples are checked and pooled once. The test sees all points; how large and where are told by
at most 20,000 random ones, the same for both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, SupportsIndex

import numpy as np

from crossedge.data.cautions import have_same_rows
from crossedge.data.columns import Column, check_scale, left_out_lines
from crossedge.data.distances import BlockDistance, distances_of, pooled_distances
from crossedge.data.samples import Samples, random_rows
from crossedge.effects import DEFAULT_NEIGHBOURS, FEWEST_POINTS, EffectSize, measure
from crossedge.null import Law
from crossedge.result import TwoSampleResult
from crossedge.runtime.calls import run_usual
from crossedge.runtime.randomness import Rng, check_rng, random_key
from crossedge.verbs import cautions_of, checked_test
from crossedge.weights import Graph, NearestNeighbours, Weights
from crossedge.witnesses import Witness
from crossedge.witnesses.verb import locate

MOST_POINTS = 20_000  # that tell how large and where: intervals are narrow enough then
WITNESS_LABELLINGS = 999


class Findings(NamedTuple):
    """What was found out about two samples."""

    test: TwoSampleResult
    effect: EffectSize | None  # None if it was not asked for, or the samples are too small
    witness: Witness | None  # None if it was not asked for
    points: Samples | None  # those that told how large and where
    cautions: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """The answer in one line of words."""
        return verdict_of(self.test, self.effect)


def verdict_of(test: TwoSampleResult, effect: EffectSize | None, level: float = 0.05) -> str:
    """Return the answer in one line of words, which says if a difference is slight."""
    if effect is not None and effect.same_rows:
        return f"the samples have the same rows (p = {test.pvalue:.4g})"
    if effect is None or test.pvalue > level or not effect.is_slight:
        return test.verdict
    most = max(math.ceil(1000 * effect.interval[1] - 1e-9), 1) / 1000
    return f"{test.verdict}, but very slightly: the divergence is below {most:.3f}"


def find(
    x: Any,
    y: Any,
    weights: Weights | Sequence[Weights] | None = None,
    *,
    statistic: str | None = None,
    null: str | Law = "permutation",
    n_resamples: SupportsIndex = 9999,
    distance: float | BlockDistance = 2.0,
    scale: str | None = None,
    rng: Rng = None,
    tolerance: float | None = None,
    level: float = 0.05,
    with_effect: bool = True,
    with_witness: bool = True,
    left_out: tuple[Column, ...] = (),
    names: tuple[str, str] = ("x", "y"),
) -> Findings:
    """Test two samples, measure how large their difference is, and find where it is.

    Arguments are those of `two_sample`, `effect_size` and `witness`; `left_out` has columns that
    were left out before, and `names` has what the samples are called.
    """
    if isinstance(distance, str) or isinstance(weights, Graph):
        given = "distance='precomputed'" if isinstance(distance, str) else "a Graph"
        raise ValueError(f"{given} has no points, and a report needs them: give points")
    test = checked_test(weights, statistic=statistic, null=null, n_resamples=n_resamples)
    check_rng(rng)
    check_scale(scale)

    def run() -> Findings:
        samples, distances = pooled_distances(x, y, distance, None, scale)
        found = test(samples, distances, rng)
        if samples.made:
            found = replace(found, columns=(*samples.made, *left_out))
        effect = witness = None
        if with_effect or with_witness:
            total, key = len(samples.in_x), int(random_key(rng))
            same = have_same_rows(samples.values, samples.in_x)
            rows = random_rows(samples, MOST_POINTS, np.random.default_rng(key))
            if len(rows) < total:
                samples = samples.rows(rows)
                distances = distances_of(samples, distance)
            if with_effect and min(samples.n_x, samples.n_y) >= FEWEST_POINTS:
                graph = NearestNeighbours(DEFAULT_NEIGHBOURS)
                effect = measure(samples, distances, graph, tolerance=tolerance, same_rows=same)
            if with_witness:
                where = locate(
                    samples, distances, None, level, WITNESS_LABELLINGS, key, distance, names
                )
                witness = replace(where, rows=rows, n_given=total)
        cautions = (*left_out_lines(left_out), *cautions_of(samples, weights))
        return Findings(found, effect, witness, samples, cautions)

    return run_usual(run)
