"""The function `k_sample`: do several samples come from one distribution, and which pairs differ?

A pair of samples has a test of its own, the adaptive test of the two, whose labellings exchange
their labels only: so other samples cannot make it wrong. For the family-wise error, the pairs that
may be equal are counted as Shaffer (1986) does. Samples fall into groups of equal ones, so unless
all are equal, at most (K-1)(K-2)/2 pairs are. That all are equal is what the whole test rejects.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, SupportsIndex

import numpy as np

from crossedge.adaptive import adaptive_test, members_of, parts_of, rank_of
from crossedge.data.columns import check_scale
from crossedge.data.designs import (
    Blocks,
    Design,
    check_blocks,
    design_of,
    free_design,
    part_of,
    taken_out,
)
from crossedge.data.distances import Distance, Distances, pooled_distances, some_distances
from crossedge.data.representations import Transform, check_transform
from crossedge.data.samples import Samples, as_points, is_frame, stacked_frames
from crossedge.k_samples.adjusted import adjusted_pairs
from crossedge.k_samples.result import KSampleResult, SamplePair
from crossedge.k_samples.scores import Scorer
from crossedge.null.labellings import Labellings
from crossedge.null.permutation import labellings_in_words
from crossedge.parts import DEFAULT_STATISTICS
from crossedge.runtime.calls import run_usual
from crossedge.runtime.counts import count_of
from crossedge.runtime.randomness import Rng, check_rng, random_key
from crossedge.runtime.types import Ints
from crossedge.statistics.laws import sample_moments
from crossedge.weights import Weights
from crossedge.weights.choice import weights_of_points

MOST_SAMPLES = 255  # their numbers are bytes


def k_sample(
    samples: Sequence[Any] | Mapping[str, Any],
    weights: Weights | Sequence[Weights] | None = None,
    *,
    n_resamples: SupportsIndex = 9999,
    distance: Distance = 2.0,
    transform: Transform | None = None,
    scale: str | None = None,
    blocks: Blocks | None = None,
    rng: Rng = None,
) -> KSampleResult:
    """Test whether several samples come from the same distribution, and which pairs differ.

    Parameters
    ----------
    samples : list of samples, or dict of samples by name
        Two or more samples, each as in `two_sample`; frames must all be of one library.
    weights : Weights or sequence of Weights, optional
        Which points of the pooled sample are neighbours. By default the test is adaptive, over the
        same weights as that of `two_sample`.
    n_resamples : int, optional
        The number of random labellings; all are visited if these are no more.
    distance, transform, scale : optional
        As in `two_sample`; distances cannot be precomputed.
    blocks : "pairs", Strata or Clusters, optional
        Which labels may be exchanged, as in `two_sample`. With "pairs", the rows i of all samples
        are matched. Labels are one vector for the pooled rows, or a list with one for each sample.
    rng : int, numpy Generator or torch Generator, optional
        The source of randomness.

    Returns
    -------
    KSampleResult
        The p-value of the whole, and crossing edges and adjusted p-values of all pairs. Printing it
        shows a summary.

    Raises
    ------
    TypeError
        If an argument has the wrong type, or a sample has values that are not real numbers.
    ValueError
        If there are fewer than two samples, or a sample or the labels of blocks are not valid.

    See Also
    --------
    two_sample : The same for two samples, with more choices.

    Notes
    -----
    A pair is tested by exchanging the labels of the two samples only, which is valid whatever the
    others are. The adjusted p-values control the probability of any false statement on a pair: they
    are those of Shaffer's procedure after the test of the whole. With matched rows, blocks="pairs",
    this assumes that the rows of a match that belong to equal samples may be permuted in any way,
    which is more than that any two of them may be exchanged: see docs/designs.md.

    Examples
    --------
    >>> import numpy as np
    >>> import crossedge as ce
    >>> rng = np.random.default_rng(0)
    >>> a, b, c = rng.normal(size=(3, 50, 2)) + np.array([0, 0, 2])[:, None, None]
    >>> found = ce.k_sample({"a": a, "b": b, "c": c}, rng=0)
    >>> f"{found.pvalue:.4f}"
    '0.0001'
    >>> [f"{pair.a}-{pair.b}" for pair in found.pairs if pair.adjusted <= 0.05]
    ['a-c', 'b-c']
    """
    names, given = _named(samples)
    several = weights_of_points(weights)
    resamples = count_of(n_resamples, "n_resamples")
    check_rng(rng)
    check_transform(transform)
    check_scale(scale)
    check_blocks(blocks)
    if isinstance(distance, str):
        raise ValueError(f"distance={distance!r} does not go with k_sample: give points")

    def run() -> tuple[KSampleResult, bool]:
        own, own_blocks = given, blocks
        if blocks is not None:
            own, own_blocks = taken_out(given, blocks)
        first, rest, sizes = _stacked(own, names)
        pooled, distances = pooled_distances(first, rest, distance, transform, scale)
        sample = np.repeat(np.arange(len(sizes)), sizes)
        design = free_design(sample) if own_blocks is None else design_of(own_blocks, sample)
        found = _test(names, sample, design, several, pooled, distances, resamples, rng)
        return replace(found, columns=pooled.made), bool(design.is_free.any())

    result, can_exchange = run_usual(run)
    if not can_exchange:
        line = "every block holds one sample only: no labels can be exchanged, and p = 1"
        warnings.warn(line, UserWarning, stacklevel=2)
    return result


def _test(
    names: tuple[str, ...],
    sample: Ints,
    design: Design,
    several: list[Weights] | None,
    pooled: Samples,
    distances: Distances,
    n_resamples: int,
    rng: Rng,
) -> KSampleResult:
    n, sizes = len(sample), tuple(np.bincount(sample).tolist())
    source = np.random.default_rng(int(random_key(rng)))
    parts, views = parts_of(several, DEFAULT_STATISTICS, distances)
    labellings = Labellings(n, sizes[0], n_resamples, source, design)
    scorer = Scorer(parts, sample, design, views)
    found = scorer.evidence(labellings)
    pvalue = rank_of(found.whole, labellings, found.tolerance)
    members = members_of(parts, found, labellings)
    graphs = [each for each in members if each.weights.default_statistic == "cross"]
    counted = max(graphs or members, key=lambda member: member.evidence)
    crossing, mean, covariance = scorer.crossings(counted)
    std = np.sqrt(np.diagonal(covariance))

    places = list(combinations(range(len(sizes)), 2))
    own = [pvalue]
    if len(sizes) > 2:
        own = []
        for a, b in places:
            rows = np.flatnonzero((sample == a) | (sample == b))
            part = part_of(design, rows, (a, b)) if design.words else None
            two = Samples(pooled.values[rows], sample[rows] == a, design=part)
            between = some_distances(distances, rows)
            own.append(adaptive_test(several, None, two, between, n_resamples, source).pvalue)
    adjusted = adjusted_pairs(own, len(sizes), pvalue)
    pairs = tuple(
        SamplePair(
            names[a],
            names[b],
            float(crossing[at]),
            float(mean[at]),
            float(std[at]),
            float((crossing[at] - mean[at]) / std[at]) if std[at] else 0.0,
            own[at],
            adjusted[at],
        )
        for at, (a, b) in enumerate(places)
    )
    values = found.whole[1:]
    values.setflags(write=False)
    null_mean, null_std, _ = sample_moments(values)
    statistic = float(found.whole[0])
    return KSampleResult(
        statistic=statistic,
        pvalue=pvalue,
        log_pvalue=math.log(pvalue),
        zscore=(statistic - null_mean) / null_std if null_std else 0.0,
        null_mean=null_mean,
        null_std=null_std,
        null_distribution=values,
        names=names,
        sizes=sizes,
        pairs=pairs,
        covariance=covariance,
        counted=counted,
        weights=tuple(dict.fromkeys(part.weights for part in parts)),
        members=members,
        law=labellings_in_words(labellings.count, labellings.exact),
        n_resamples=labellings.count,
        exact=labellings.exact,
        design=design.words or None,
    )


def _named(samples: Any) -> tuple[tuple[str, ...], list[Any]]:
    """Return the names of the samples and the samples, or raise unless they are two or more."""
    if isinstance(samples, Mapping):
        names, given = [str(name) for name in samples], list(samples.values())
    elif isinstance(samples, Sequence) and not isinstance(samples, str):
        names, given = [str(place) for place in range(len(samples))], list(samples)
    else:
        raise TypeError(
            f"samples is of type {type(samples).__name__}: give a list of samples, or a dict"
        )
    if not 2 <= len(given) <= MOST_SAMPLES:
        raise ValueError(f"there are {len(given)} samples: give from 2 to {MOST_SAMPLES}")
    return tuple(names), given


def _stacked(given: list[Any], names: tuple[str, ...]) -> tuple[Any, Any, list[int]]:
    """Return the first sample, all others below each other, and the sizes of all."""
    first, *rest = given
    if any(map(is_frame, given)):
        return first, stacked_frames(first, rest), [len(each) for each in given]
    arrays = [as_points(each, f"sample {name}") for each, name in zip(given, names, strict=True)]
    widths = [each.shape[1] for each in arrays]
    for name, width in zip(names, widths, strict=True):
        if width != widths[0]:
            raise ValueError(
                f"sample {name} has {width} columns and sample {names[0]} has {widths[0]}: "
                "all samples must share their columns"
            )
    return first, np.concatenate(arrays[1:]), [len(each) for each in arrays]
