"""How large is the difference of two samples: a divergence with a confidence interval.

Let m(z) be the mean label, +1 in x and -1 in y, of pooled points at z. The divergence D is linear
in the mean of m^2, which the graph estimates by the mean S of the products s_i s_j of the labels at
the ends of its edges. With s_i = m_i + e_i the error of S has three parts, and its variance is
estimated as their sum:

- the influence of single points, 2 s_i m_i - m_i^2, whose variance is taken within each sample;
- more of the part 2 e_i m_i for points that have more edges than others;
- the products e_i e_j along edges, of variance W_ij^2 (1 - m_i^2) (1 - m_j^2).

Powers of m at a point are estimated without bias by U-statistics of the labels of its neighbours.
Nothing is drawn again: a bootstrap would make copies, which are each other's nearest neighbours.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, fields
from importlib import import_module
from typing import Any, NamedTuple, SupportsIndex

import numpy as np

from crossedge.data.cautions import have_same_rows
from crossedge.data.columns import check_scale
from crossedge.data.distances import Distance, Distances, pooled_distances
from crossedge.data.samples import Samples, thinned
from crossedge.divergences import error_bounds
from crossedge.runtime.calls import run_usual
from crossedge.runtime.randomness import Rng, check_rng, random_key
from crossedge.runtime.types import Floats
from crossedge.summaries import Summary, plain_values
from crossedge.weights import EdgeList, GraphWeights, NearestNeighbours, PairWeights
from crossedge.weights.graphs import check_graph, check_whole

DEFAULT_NEIGHBOURS = 3  # a somewhat larger bias than one neighbour, a smaller standard error
LOCAL_NEIGHBOURS = 10  # of each point, whose labels estimate the powers of m
SLIGHT = 0.05  # a smaller divergence is slight: at it, the best classifier errs for 39% or more
FEWEST_POINTS = 5  # of each sample: U-statistics of the fourth power need four neighbours


@dataclass(frozen=True, repr=False)
class EffectSize(Summary):
    """How large the difference of two samples is, which prints as a summary.

    Attributes
    ----------
    divergence : float
        The estimate in [0, 1] of the divergence of Henze and Penrose: 0 if the distributions are
        equal, 1 if they do not overlap.
    interval : pair of floats
        A confidence interval of the divergence that neighbours see in samples of this size. In few
        dimensions that is the divergence of the distributions; in many it is smaller.
    confidence : float
        The confidence of the interval.
    standard_error : float
        The standard error of the estimate.
    classifier_error : pair of floats
        Bounds on the error of the best classifier, with the proportions of the samples as prior:
        the lower one at the upper end of the interval, the upper one at its lower end. The upper
        one holds where the lower end of the interval does, in any dimension. The lower one takes
        what neighbours see for the whole difference: in many columns the error may be below it.
    same_neighbour : float
        How often a point's nearest neighbour is of its own sample.
    same_neighbour_by_chance : float
        How often it would be if the distributions were equal.
    tolerance : float or None
        The largest divergence that is tolerable, as given.
    tolerance_pvalue : float or None
        The p-value of the hypothesis that the divergence is at most the tolerance: a small one is
        evidence that the difference is larger.
    equivalence_pvalue : float or None
        The p-value of the hypothesis that the divergence that neighbours see is at least the
        tolerance: a small one is evidence that the difference is smaller.
    n_x, n_y : int
        The sizes of the samples.
    weights : GraphWeights
        The graph.
    same_rows : bool
        Whether both samples have the same rows. They are then not independent, and tell nothing
        of the distance of distributions: the interval is (0, 1), and the p-values are 1.

    See Also
    --------
    effect_size : The function that returns it.
    """

    divergence: float
    interval: tuple[float, float]
    confidence: float
    standard_error: float
    classifier_error: tuple[float, float]
    same_neighbour: float
    same_neighbour_by_chance: float
    tolerance: float | None
    tolerance_pvalue: float | None
    equivalence_pvalue: float | None
    n_x: int
    n_y: int
    weights: GraphWeights
    same_rows: bool = False

    @property
    def is_slight(self) -> bool:
        """Whether the interval ends below 0.05, a small divergence."""
        return self.interval[1] < SLIGHT

    def to_dict(self) -> dict[str, Any]:
        """Return all facts as plain values, which JSON can hold; the weights by name."""
        facts = {each.name: getattr(self, each.name) for each in fields(self)}
        facts |= {name: [*facts[name]] for name in ("interval", "classifier_error")}
        plain: dict[str, Any] = plain_values(facts | {"weights": self.weights.name})
        return plain

    def plot(self, ax: Any = None) -> Any:
        """Draw the estimate and its interval, by `plots.plot_effect`, and return the axes."""
        return import_module("crossedge.plots").plot_effect(self, ax=ax)

    @property
    def _title(self) -> str:
        return f"effect size: {self.weights.name}"

    def _facts(self) -> list[tuple[str, str]]:
        low, high = self.interval
        least, most = self.classifier_error
        sizes = ("samples", f"{self.n_x:,} and {self.n_y:,} points")
        if self.same_rows:
            said = "both samples have the same rows, which tells nothing of their distributions"
            return [sizes, ("divergence", said)]
        rows = [
            sizes,
            (
                "divergence",
                f"{self.divergence:.3f}, between {low:.3f} and {high:.3f} with "
                f"{self.confidence:.4g} confidence  (0: equal, 1: no overlap)",
            ),
            (
                "neighbours",
                f"{self.same_neighbour:.0%} of the points have their nearest neighbour in their "
                f"own sample, {self.same_neighbour_by_chance:.0%} by chance",
            ),
            (
                "classifier",
                f"the best one is wrong for at most {most:.1%} of the points, and for at least "
                f"{least:.1%} if neighbours see the whole difference",
            ),
        ]
        if self.tolerance is not None:
            said = f"larger than {self.tolerance:g}: p = {self.tolerance_pvalue:.4g}"
            if self.tolerance > 0:
                said += f", smaller: p = {self.equivalence_pvalue:.4g}"
            rows.append(("tolerance", said))
        return rows


def effect_size(
    x: Any,
    y: Any,
    weights: GraphWeights | None = None,
    *,
    confidence: float = 0.95,
    tolerance: float | None = None,
    distance: Distance = 2.0,
    scale: str | None = None,
    rng: Rng = None,
    max_points: SupportsIndex | None = None,
) -> EffectSize:
    """Estimate how large the difference of two samples is, with a confidence interval.

    Parameters
    ----------
    x, y : array, tensor, list or frame
        The samples, as in `two_sample`, of at least five points each.
    weights : SpanningTree or NearestNeighbours, optional
        The graph; by default three nearest neighbours.
    confidence : float, optional
        The confidence of the interval, between 0 and 1.
    tolerance : float, optional
        A divergence of at least 0 and below 1: is the difference larger than that?
    distance : float, callable or "precomputed", optional
        As in `two_sample`.
    scale : {"robust", "std", "rank", "none"}, optional
        As in `two_sample`.
    rng : int, numpy Generator or torch Generator, optional
        The source of randomness of `max_points`; nothing else is random.
    max_points : int, optional
        Take at most so many random points, as in `two_sample`.

    Returns
    -------
    EffectSize
        The divergence, its interval, and what they mean. Printing it shows a summary.

    Raises
    ------
    TypeError
        If the weights are not a graph, or an argument has the wrong type.
    ValueError
        If the samples are invalid or too small, or a number is out of range.

    See Also
    --------
    divergence : The estimate alone.
    two_sample : Test whether there is a difference at all.

    Notes
    -----
    Edges join points that are some way apart, which adds crossings: the estimate has a bias towards
    0, hardly in two dimensions, and up to a third of the divergence in ten. The interval is for
    the expected value of the estimate. So its lower end holds for the divergence of the
    distributions as well, and so does `tolerance_pvalue`, while the upper end and
    `equivalence_pvalue` speak of what neighbours see, as does the lower one of the bounds in
    `classifier_error`. docs/effects.md has the measured coverage.

    Examples
    --------
    >>> import numpy as np
    >>> import crossedge as ce
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(300, 2)), rng.normal(size=(200, 2)) + [1, 0]
    >>> found = ce.effect_size(x, y, tolerance=0.05)
    >>> print(f"{found.divergence:.2f}, p = {found.tolerance_pvalue:.4f}")
    0.24, p = 0.0001
    """
    graph = NearestNeighbours(DEFAULT_NEIGHBOURS) if weights is None else check_graph(weights)
    _check_share(confidence, "confidence", 0.95)
    if tolerance is not None and tolerance != 0:
        _check_share(tolerance, "tolerance", 0.05)
    check_rng(rng)
    check_scale(scale)
    if max_points is not None:
        check_whole(max_points, "max_points", "")
        if isinstance(distance, str):
            raise ValueError("max_points does not go with distance='precomputed': leave it out")

    def thin(samples: Samples) -> Samples:
        if max_points is None:
            return samples
        return thinned(samples, int(max_points), np.random.default_rng(int(random_key(rng))))

    def run() -> tuple[EffectSize, tuple[str, ...]]:
        samples, distances = pooled_distances(x, y, distance, None, scale, thin)
        return measure(samples, distances, graph, confidence, tolerance), samples.cautions

    found, cautions = run_usual(run)
    for caution in cautions:
        warnings.warn(caution, UserWarning, stacklevel=2)
    return found


def measure(
    samples: Samples,
    distances: Distances,
    graph: GraphWeights,
    confidence: float = 0.95,
    tolerance: float | None = None,
    same_rows: bool | None = None,
) -> EffectSize:
    """Return the effect size of samples that were checked and pooled.

    `same_rows` is whether both have the same rows, if that is known of all from which these were
    drawn.
    """
    from scipy.special import ndtr, ndtri

    n_x, n_y = samples.n_x, samples.n_y
    n = n_x + n_y
    if min(n_x, n_y) < FEWEST_POINTS:
        raise ValueError(
            f"the samples have {n_x} and {n_y} points: an interval needs at least "
            f"{FEWEST_POINTS} of each, ce.divergence does not"
        )
    signs = np.where(samples.in_x, 1.0, -1.0)
    edges = as_edges(graph.pairs(distances))
    local = as_edges(NearestNeighbours(min(LOCAL_NEIGHBOURS, n - 1)).pairs(distances))
    nearest = as_edges(NearestNeighbours(1).pairs(distances))
    crossing, unit, variance = crossing_ratio(edges, local_powers(local, signs), signs)
    # a score interval for a ratio whose variance is proportional to itself, like that of a count;
    # one more point on the wrong side keeps it honest where hardly any edge crosses
    per_ratio = (variance + unit**2) / (crossing + unit)
    z = float(ndtri((1 + confidence) / 2))
    middle, shift = crossing + z**2 * per_ratio / 2, z**2 * per_ratio / 2
    half = math.sqrt(shift * (2 * crossing + shift))
    low, high = (float(min(max(1 - end, 0.0), 1.0)) for end in (middle + half, middle - half))
    p_larger = p_smaller = None
    if tolerance is not None:
        score = (1 - tolerance - crossing) / math.sqrt(per_ratio * (1 - tolerance))
        p_larger, p_smaller = float(ndtr(-score)), float(ndtr(score))
    same = (mean_product(nearest, signs) + 1) / 2
    equal = have_same_rows(samples.values, samples.in_x) if same_rows is None else same_rows
    if equal:  # not independent: every row has its twin in the other sample
        crossing, low, high = 1.0, 0.0, 1.0
        p_larger = p_smaller = None if tolerance is None else 1.0
    return EffectSize(
        divergence=min(max(1 - crossing, 0.0), 1.0),
        interval=(low, high),
        confidence=float(confidence),
        standard_error=math.sqrt(variance),
        classifier_error=(
            error_bounds(high, n_x, n_y)[0],
            error_bounds(low, n_x, n_y)[1],
        ),
        same_neighbour=same,
        same_neighbour_by_chance=(n_x * (n_x - 1) + n_y * (n_y - 1)) / (n * (n - 1)),
        tolerance=None if tolerance is None else float(tolerance),
        tolerance_pvalue=p_larger,
        equivalence_pvalue=p_smaller,
        n_x=n_x,
        n_y=n_y,
        weights=graph,
        same_rows=equal,
    )


class Ratio(NamedTuple):
    """The weight of crossing edges over its mean under random labels."""

    value: float  # 1 - divergence
    unit: float  # what the edges of one point add if all of them cross
    variance: float


def crossing_ratio(edges: EdgeList, powers: list[Floats], signs: Floats) -> Ratio:
    """Return the crossing ratio and its variance, given the powers of m at each point."""
    n, p = len(signs), float((signs > 0).mean())
    by_chance = float(signs.sum() ** 2 - n) / (n * (n - 1))  # the mean of s_i s_j over all pairs
    per_product = 1 / (1 - by_chance)
    value = (1 - mean_product(edges, signs)) * per_product
    m1, m2, m3, m4 = powers
    degree = edges.degree[edges.atom]
    single = 0.0
    for share, sign in ((p, 1.0), (1 - p, -1.0)):
        own = signs == sign
        mean = (2 * sign * m1[own] - m2[own]).mean()
        square = (4 * m2[own] - 4 * sign * m3[own] + m4[own]).mean()
        single += share**2 * (square - mean**2) / own.sum()
    uneven = 4 * (degree.var() / degree.mean() ** 2) * (m2 - m4).mean() / n
    rest = np.bincount(edges.atom, 1 - m2) / edges.sizes  # the mean of 1 - m^2 at each atom
    products = ((1 - m2) @ edges.row_sums(edges.weight**2, rest)[edges.atom]) / 2 / edges.total**2
    variance = sum(max(float(part), 0.0) for part in (single, uneven, products))
    unit = 2 * float(degree.mean()) / edges.total * per_product
    return Ratio(value, unit, variance * per_product**2)


def local_powers(edges: EdgeList, signs: Floats) -> list[Floats]:
    """Return unbiased estimates of m, m^2, m^3 and m^4 at each point, if m is constant nearby.

    Each is a sum of products of the labels of different neighbours j, weighted by W_ij, over the
    same sum without labels: elementary symmetric polynomials, by Newton's identities.
    """
    atom, sizes = edges.atom, edges.sizes
    mean = np.bincount(atom, signs) / sizes
    inside = np.zeros(len(sizes))
    own = edges.i == edges.j
    inside[edges.i[own]] = edges.weight[own]
    plain, labelled = [], []
    for power in range(1, 5):
        sums = edges.row_sums(edges.weight**power)[atom]
        plain.append(sums)
        if power % 2:
            # row_sums leaves out a point of the mean label, not the point itself
            with_labels = edges.row_sums(edges.weight**power, mean)[atom]
            labelled.append(with_labels + inside[atom] ** power * (mean[atom] - signs))
        else:
            labelled.append(sums)
    above, below = _elementary(labelled), _elementary(plain)
    return [
        np.where(b > 0, a / np.where(b > 0, b, 1.0), 0.0) for a, b in zip(above, below, strict=True)
    ]


def _elementary(p: list[Floats]) -> list[Floats]:
    """Return the first four elementary symmetric polynomials from sums of powers."""
    e1 = p[0]
    e2 = (e1 * p[0] - p[1]) / 2
    e3 = (e2 * p[0] - e1 * p[1] + p[2]) / 3
    e4 = (e3 * p[0] - e2 * p[1] + e1 * p[2] - p[3]) / 4
    return [e1, e2, e3, e4]


def mean_product(edges: EdgeList, signs: Floats) -> float:
    """Return the mean of s_i s_j over the edges, by weight."""
    mean = np.bincount(edges.atom, signs) / edges.sizes
    inside = np.zeros(len(edges.sizes))
    own = edges.i == edges.j
    inside[edges.i[own]] = edges.weight[own]
    around = edges.row_sums(edges.weight, mean)[edges.atom]
    around = around + inside[edges.atom] * (mean[edges.atom] - signs)
    return float(signs @ around) / 2 / edges.total


def as_edges(pairs: PairWeights) -> EdgeList:
    """Return pair weights as a list of edges."""
    if isinstance(pairs, EdgeList):
        return pairs
    W = pairs.dense()
    i, j = np.nonzero(np.triu(W))
    return EdgeList(np.arange(len(W)), i, j, W[i, j])


def _check_share(value: object, name: str, example: float) -> None:
    """Raise TypeError or ValueError unless a number is between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.floating | np.integer):
        raise TypeError(f"{name}={value!r} is no number: give one between 0 and 1, as {example}")
    if not 0 < value < 1:
        raise ValueError(f"{name}={value} is out of range: give a number between 0 and 1")
