"""The function `k_sample`: do several samples come from one distribution, and which pairs differ?

For each family of weights there are two statistics, as in the adaptive test of two samples. Let
C_a be the weight inside the sample a, and D_a the sum of the degrees of its points.

- "weighted" is the sum of C_a / (n_a - 1), which row effects of W do not change. Its evidence is
  minus the logarithm of its p-value by a gamma law.
- "fisher" adds, by Fisher's rule, the evidence of Q, the squared length of (D_a) less its mean in
  units of its covariance, by a chi-square law.

With two samples these are the weighted count, and, up to the skewness of R_x - R_y, "fisher".

A pair of samples has a test of its own, the adaptive test of the two, whose labellings exchange
their labels only: so other samples cannot make it wrong. For the family-wise error, the pairs that
may be equal are counted as Shaffer (1986) does. Samples fall into groups of equal ones, so unless
all are equal, at most (K-1)(K-2)/2 pairs are. That all are equal is what the whole test rejects.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
from scipy.special import gammaincc, gammaln

from crossedge.adaptive import (
    Evidence,
    adaptive_test,
    combined,
    members_of,
    parts_of,
    rank_of,
)
from crossedge.data.columns import Column, check_scale, printable
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
from crossedge.html import html_table
from crossedge.moments import LabelMoments
from crossedge.moments.several import count_moments, pairs_of_samples
from crossedge.null.labellings import (
    MOMENT_LABELLINGS,
    MOMENT_SEED,
    Labellings,
    observe,
    relabel,
)
from crossedge.null.permutation import labellings_in_words
from crossedge.numerics.tails import log_gamma_tail
from crossedge.parts import DEFAULT_STATISTICS, Part, Views
from crossedge.result import Member, plain_values
from crossedge.runtime.calls import run_usual
from crossedge.runtime.randomness import Rng, check_rng, random_key
from crossedge.runtime.types import Floats, Ints
from crossedge.statistics.laws import log_chi_square_tail, sample_moments
from crossedge.verbs import check_list, count_of
from crossedge.weights import Graph, PairWeights, Weights
from crossedge.weights.family import WEIGHTS_HINT, check_weights

MOST_SAMPLES = 255  # their numbers are bytes
NO_VARIATION = 1e-12  # of a statistic: a smaller standard deviation is rounding
LEAST_TAIL = 1e-280  # below, the chi-square tail is replaced by its asymptotic form


class SamplePair(NamedTuple):
    """Two of the samples.

    Attributes
    ----------
    a, b : str
        The names of the samples.
    crossing : float
        The weight of the edges between them, in the graph of all samples.
    mean, std : float
        Its mean and standard deviation if all samples have one distribution.
    zscore : float
        How many standard deviations `crossing` lies above its mean: negative if the samples avoid
        each other.
    pvalue : float
        The p-value of the adaptive test of these two samples, whose labels alone are exchanged.
    adjusted : float
        The p-value adjusted for the family-wise error rate over all pairs, and at least that of the
        whole test.
    """

    a: str
    b: str
    crossing: float
    mean: float
    std: float
    zscore: float
    pvalue: float
    adjusted: float


@dataclass(frozen=True, eq=False, repr=False)
class KSampleResult:
    """The result of `k_sample`, which prints as a summary.

    Attributes
    ----------
    pvalue, log_pvalue : float
        The p-value of the whole test, that all samples have one distribution. Never 0.
    statistic : float
        The soft maximum of the evidence of all members.
    zscore, null_mean, null_std : float
        The same in standard deviations above its mean on relabelled samples, and these two.
    null_distribution : array
        (n_resamples,) values of the statistic on relabelled samples.
    names : tuple of str
        The names of the samples: keys, or places in the list.
    sizes : tuple of int
        The numbers of their points.
    pairs : tuple of SamplePair
        All pairs of samples, in order: `.a`, `.b`, `.crossing`, `.mean`, `.std`, `.zscore`,
        `.pvalue` and `.adjusted`.
    covariance : array
        (pairs, pairs) covariances of the crossing counts if all samples have one distribution.
        They are exact, as the means are; with blocks they are those of 2,048 labellings.
    counted : Member
        The member whose crossing edges are counted: the strongest one that is a graph, or the
        strongest if none is.
    weights : tuple of Weights
        All weights of the test.
    members : tuple of Member
        The parts of the test, with their evidence and uncorrected p-values.
    law : str
        How the p-value was found, in words.
    n_resamples : int
        The number of labellings visited.
    exact : bool
        Whether these are all labellings.
    columns : tuple of Column
        For frames, what was done to each column.
    design : str or None
        Which labels were exchanged, in words, if `blocks` were given.

    See Also
    --------
    k_sample : The test that returns it.
    """

    statistic: float
    pvalue: float
    log_pvalue: float
    zscore: float
    null_mean: float
    null_std: float
    null_distribution: Floats
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    pairs: tuple[SamplePair, ...]
    covariance: Floats
    counted: Member
    weights: tuple[Weights, ...]
    members: tuple[Member, ...]
    law: str
    n_resamples: int
    exact: bool
    columns: tuple[Column, ...] = ()
    design: str | None = None

    @property
    def method(self) -> str:
        """The test and the law, in words."""
        return f"adaptive over {len(self.members)} tests, {self.law}"

    @property
    def strongest(self) -> Member:
        """The member with the most evidence."""
        return max(self.members, key=lambda member: member.evidence)

    def to_dict(self, null_distribution: bool = False) -> dict[str, Any]:
        """Return all facts as plain values, which JSON can hold.

        Parameters
        ----------
        null_distribution : bool, optional
            Whether to include the values of the statistic on relabelled samples, as a list.

        Returns
        -------
        dict
        """
        facts: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        if not null_distribution:
            del facts["null_distribution"]
        facts |= {
            "method": self.method,
            "names": [*self.names],
            "sizes": [*self.sizes],
            "pairs": [pair._asdict() for pair in self.pairs],
            "counted": self.counted.name,
            "weights": [each.name for each in self.weights],
            "members": [each._asdict() | {"weights": each.weights.name} for each in self.members],
            "columns": [asdict(column) | {"outputs": [*column.outputs]} for column in self.columns],
        }
        plain: dict[str, Any] = plain_values(facts)
        return plain

    def to_json(self, null_distribution: bool = False, indent: int | None = None) -> str:
        """Return `to_dict` as JSON.

        Parameters
        ----------
        null_distribution : bool, optional
            Whether to include the values of the statistic on relabelled samples.
        indent : int, optional
            Spaces by which each level is indented; by default all is on one line.

        Returns
        -------
        str
        """
        facts = self.to_dict(null_distribution)
        return json.dumps(facts, indent=indent, allow_nan=False, ensure_ascii=False)

    def _rows(self) -> list[tuple[str, str]]:
        """Return the summary as pairs of a name and a value."""
        sizes = ", ".join(
            f"{printable(name)} ({size:,} points)"
            for name, size in zip(self.names, self.sizes, strict=True)
        )
        lead = self.strongest
        equal = f"if the distributions are equal: {self.null_mean:.6g} ± {self.null_std:.4g}"
        rows = [
            ("samples", sizes),
            *([("blocks", self.design)] if self.design else []),
            ("statistic", f"{self.statistic:.6g}  ({equal})"),
            ("p-value", f"{self.pvalue:.4g}"),
            ("carried by", f"{lead.name}, {lead.statistic}"),
        ]
        rows += [
            (
                "pair",
                f"{printable(pair.a)} and {printable(pair.b)}: p = {pair.pvalue:.4g}, adjusted "
                f"{pair.adjusted:.4g}; {pair.crossing:.6g} edges cross where {pair.mean:.6g} ± "
                f"{pair.std:.3g} would",
            )
            for pair in self.pairs
        ]
        return rows

    def __repr__(self) -> str:
        rows = [f"  {name:<10} {value}" for name, value in self._rows()]
        return "\n".join([f"{len(self.names)}-sample test: {self.method}", *rows])

    def _repr_html_(self) -> str:
        return html_table(f"{len(self.names)}-sample test: {self.method}", self._rows())


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
    are those of Shaffer's procedure after the test of the whole.

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
    several = _check_weights(weights)
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
    scorer = _Scorer(parts, sample, design, views)
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


def adjusted_pairs(pvalues: Sequence[float], samples: int, whole: float) -> list[float]:
    """Return p-values of all pairs of so many samples, adjusted for the family-wise error rate.

    This is the step-down procedure of Shaffer (1986) after a test of the whole: with so many pairs
    known to differ, the number of equal pairs is one that groups of equal samples can have.
    """
    total, adjusted, running = math.comb(samples, 2), [0.0] * len(pvalues), whole
    for step, place in enumerate(np.argsort(pvalues, kind="stable").tolist()):
        most = max(each for each in _equal_pairs(samples) if each <= total - max(step, 1))
        running = max(running, min(most * pvalues[place], 1.0), pvalues[place])
        adjusted[place] = running
    return adjusted


@lru_cache(maxsize=32)
def _equal_pairs(samples: int) -> frozenset[int]:
    """Return the possible numbers of equal pairs among samples that fall into groups of equals."""
    if samples < 2:
        return frozenset([0])
    return frozenset(
        math.comb(group, 2) + rest
        for group in range(1, samples + 1)
        for rest in _equal_pairs(samples - group)
    )


class _Scorer:
    """The weights of all parts on one pooled sample, ready for any labellings of K samples."""

    def __init__(self, parts: Sequence[Part], sample: Ints, design: Design, views: Views) -> None:
        self.parts, self.sample, self.design = tuple(parts), sample, design
        self.sizes = tuple(np.bincount(sample).tolist())
        self.pairs: dict[tuple[str, Weights], PairWeights] = {
            (view, weights): views.pairs(weights, view)
            for view, weights in dict.fromkeys((part.view, part.weights) for part in parts)
        }
        self.fixed = Labellings(len(sample), self.sizes[0], MOMENT_LABELLINGS, MOMENT_SEED, design)

    def evidence(self, labellings: Labellings) -> Evidence:
        """Return the evidence of each part and of the whole."""
        found = {each: self._of_weights(pairs, labellings) for each, pairs in self.pairs.items()}
        names = [part.statistic.name for part in self.parts]
        chosen = [
            found[part.view, part.weights][name == "fisher"]
            for part, name in zip(self.parts, names, strict=True)
        ]
        return combined(
            self.parts, [values for values, _ in chosen], [error for _, error in chosen]
        )

    def _of_weights(self, pairs: PairWeights, labellings: Labellings) -> list[tuple[Floats, float]]:
        """Return the evidence of "weighted" and of "fisher", and their rounding errors."""
        inside, degrees = self._sums(pairs, labellings, True)
        fixed_inside, fixed_degrees = self._sums(pairs, self.fixed, False)
        share = 1 / np.maximum(self.design.mean_rows - 1, 1.0)
        value, fixed = share @ inside, share @ fixed_inside
        _, fixed_std, skewness = sample_moments(fixed)
        if self.design.words:
            mean, std, covariance = fixed.mean(), fixed_std, np.cov(fixed_degrees, bias=True)
            centre = fixed_degrees.mean(1, keepdims=True)
        else:
            sizes, n = np.array(self.sizes), len(self.sample)
            second = LabelMoments(pairs, self.sizes[0], n - self.sizes[0]).second
            means, covariances = count_moments(second, self.sizes)
            own = [a == b for a, b in pairs_of_samples(len(sizes))]
            mean = share @ means[own]
            std = math.sqrt(max(float(share @ covariances[np.ix_(own, own)] @ share), 0.0))
            unit = float(second.degree2) / (n - 1)
            covariance = unit * (np.diag(sizes) - np.outer(sizes, sizes) / n)
            centre = 2 * float(second.total) * sizes[:, None] / n - float(second.total)
        scale = abs(float(pairs.total))
        varies = std > NO_VARIATION * scale * share.mean() and fixed_std > 0
        z = (value - mean) / std if varies else np.zeros(len(value))
        together = -log_gamma_tail(z, np.float64(skewness)) if varies else z
        apart, rank = _squared_length(degrees - centre, covariance, NO_VARIATION * scale)
        of_degrees = -_log_chi_square_tail(apart, rank)
        both = -log_chi_square_tail(2 * (together + of_degrees), 2 * (int(varies) + (rank > 0)))
        rounding = max(1e-8, 1e-14 * scale * share.mean() / std) if varies else 1e-8
        return [
            (each, rounding * (1 + math.sqrt(2 * max(float(each[0]), 0.0))))
            for each in (together, both)
        ]

    def _sums(
        self, pairs: PairWeights, labellings: Labellings, observed: bool
    ) -> tuple[Floats, Floats]:
        """Return the weights inside all samples, and sums of degrees less m, on each labelling.

        With `observed`, the samples as given come first.
        """
        inside, degrees = [], []
        for sample in range(len(self.sizes)):
            own = relabel(pairs, labellings.of([sample]), range(labellings.blocks))
            x, y = own.x[: labellings.count], own.y[: labellings.count]
            if observed:
                seen = observe(pairs, self.sample == sample, design=self.design, samples=[sample])
                x, y = np.append(seen.x, x), np.append(seen.y, y)
            inside.append(x)
            degrees.append(x - y)
        return np.stack(inside), np.stack(degrees)

    def crossings(self, member: Member) -> tuple[Floats, Floats, Floats]:
        """Return the weights between all pairs of samples, their means and covariances."""
        pairs, count = self.pairs[member.view, member.weights], len(self.sizes)
        places = list(combinations(range(count), 2))

        def between(sums: dict[tuple[int, ...], Any]) -> Any:
            return np.stack([sums[a, b] - sums[a,] - sums[b,] for a, b in places])

        unions = [*((a,) for a in range(count)), *places]
        seen = {
            union: observe(pairs, np.isin(self.sample, union), design=self.design, samples=union).x
            for union in unions
        }
        unit = pairs.unit
        if self.design.words:
            blocks = range(self.fixed.blocks)
            drawn = between(
                {union: relabel(pairs, self.fixed.of(union), blocks).x for union in unions}
            )[:, : self.fixed.count]
            mean, covariance = drawn.mean(1), np.atleast_2d(np.cov(drawn, bias=True))
        else:
            second = LabelMoments(pairs, self.sizes[0], sum(self.sizes[1:])).second
            means, covariances = count_moments(second, self.sizes)
            apart = [a < b for a, b in pairs_of_samples(count)]
            mean, covariance = means[apart], covariances[np.ix_(apart, apart)]
        return unit * between(seen), unit * mean, unit**2 * covariance


def _squared_length(vectors: Floats, covariance: Floats, noise: float) -> tuple[Floats, int]:
    """Return the squared lengths of columns in units of a covariance, and the rank of this."""
    values, axes = np.linalg.eigh(covariance)
    kept = values > max(1e-10 * float(values[-1]), noise**2)
    along = (axes[:, kept].T @ vectors) / np.sqrt(values[kept])[:, None]
    return (along**2).sum(0), int(kept.sum())


def _log_chi_square_tail(value: Floats, degrees: int) -> Floats:
    """Return log P(X >= value) for a chi-square variable X with any degrees of freedom."""
    if not degrees:
        return np.zeros(len(value))
    half, shape = value / 2, degrees / 2
    tail = gammaincc(shape, half)
    far = (shape - 1) * np.log(np.maximum(half, 1.0)) - half - gammaln(shape)
    found: Floats = np.where(tail > LEAST_TAIL, np.log(np.maximum(tail, LEAST_TAIL)), far)
    return found


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


def _check_weights(weights: Any) -> list[Weights] | None:
    if weights is None:
        return None
    if isinstance(weights, Sequence) and not isinstance(weights, str):
        found = check_list(weights)
    else:
        found = [check_weights(weights, f"{WEIGHTS_HINT}, or a list of these")]
    if any(isinstance(each, Graph) for each in found):
        raise ValueError("weights is a Graph of points that are elsewhere: give points and weights")
    return found


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
