"""The permutation distribution of a statistic: complete if that is no more work, else sampled."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import chain
from math import comb

import numpy as np
import numpy.typing as npt

from crossedge.data.designs import Design
from crossedge.data.samples import Samples
from crossedge.moments import BlockMoments, LabelMoments, evened
from crossedge.null.stopping import VISIT_ALL, AtLevel, Rule
from crossedge.numerics.labellings import blocked
from crossedge.numerics.labellings.dense import half_squares
from crossedge.numerics.labellings.draws import LANES, draw_labels, list_labels, packed, unpacked
from crossedge.runtime.interrupts import checkpoint
from crossedge.runtime.progress import stage
from crossedge.runtime.randomness import Rng, random_key
from crossedge.runtime.threads import in_threads, one_blas_thread
from crossedge.runtime.types import Bools, Floats, Ints, Labels, Words
from crossedge.statistics import Statistic, WithinSums
from crossedge.statistics.mean_discrepancies import mmd_deviation
from crossedge.weights import EdgeList, LowRankWeights, PairWeights, StreamedWeights

MOST_ENUMERATED = 10_000_000  # labellings; if there are more, they are sampled
FEW_POINTS = 300  # up to this many points, products are too small for a second thread
BLOCKS_AT_ONCE = 16  # blocks of labellings between two checks of early stopping
PLAIN_LANES = 2 * LANES  # labellings in a block that numpy draws
# Up to these numbers of labellings and of labels (n times labellings), numpy draws them, which
# takes up to a tenth of a second. Beyond these, compiled loops do, and labels are not kept.
FEW_LABELLINGS, FEW_LABELS = 20_000, 32_000_000
# Up to this many points, and n^2 times labellings, the within-sums of a graph are a product of
# matrices, which takes 0.05 s on two cores. Beyond these, compiled loops count the edges.
MATRIX_POINTS, MATRIX_WORK = 1024, 2_700_000_000
STREAMED_LABELS = 1 << 26  # labels for one pass over weights in blocks: half a gigabyte
# Features of more points than these are multiplied in single precision, which is twice as fast and
# exact to a millionth of a standard deviation, unless one point is far from all others: the square
# of its features is subtracted again. Where there are few features, statistics may tie.
SINGLE_POINTS, SINGLE_FEATURES, SINGLE_REACH = 20_000, 16, 100.0
# Labellings for those moments of a design that have no formula: their standard error is then small,
# 0.05 for a skewness. It makes no p-value invalid, because they are always the same, with a seed
# that no user will choose.
MOMENT_LABELLINGS, MOMENT_SEED = 2048, 0x6A09E667F3BCC908
POINTS_AT_ONCE = 4096  # whose features are added to a sum by one product of matrices


@dataclass(frozen=True)
class PermutationNull:
    """The values of a statistic on relabelled samples."""

    values: Floats  # (labellings,)
    exact: bool  # whether these are all labellings
    stopped: bool = False  # whether early stopping cut the labellings short
    rule: Rule = VISIT_ALL  # of early stopping

    @property
    def level(self) -> float | None:
        """The level at which a bet answered; None if the p-value is a share of labellings."""
        return self.rule.level if isinstance(self.rule, AtLevel) else None

    def pvalue(self, observed: float, sign: int, tolerance: float) -> float:
        """Return the p-value of the rule, or b / B if these are all B labellings.

        b counts the values at least as extreme as the observed one, up to the tolerance. All
        labellings include the observed one.
        """
        extreme = ~(sign * self.values < sign * observed - tolerance)  # NaN counts
        return float(extreme.mean()) if self.exact else self.rule.pvalue(extreme)


class Labellings:
    """Random labellings with n_x points in x, in blocks; all labellings, if these are no more.

    Blocks are independent, each with random numbers of its own. They therefore do not depend on the
    number of threads, and memory does not grow with the number of labellings. The labellings depend
    only on n, n_x, their number and the rng; with a design, also on this.
    """

    def __init__(
        self, n: int, n_x: int, n_resamples: int, rng: Rng, design: Design | None = None
    ) -> None:
        self.n, self.key, self.design = n, random_key(rng), design
        self.fewer = min(n_x, n - n_x)  # draw the points of the smaller sample
        self.inverted = self.fewer < n_x
        limit = min(n_resamples, MOST_ENUMERATED)
        if design is not None:
            self.groups = blocked.groups_of(design.stratum, design.counts)
            every = blocked.labellings_up_to(design.counts, limit)
        else:
            every = comb(n, self.fewer) if labellings_up_to(n, self.fewer, limit) else None
        self.exact = every is not None
        self.count = n_resamples if every is None else every
        few = self.count <= FEW_LABELLINGS and n * self.count <= FEW_LABELS
        self.by_numpy = self.exact or few
        self.lanes = min(PLAIN_LANES, -(-self.count // 64) * 64) if self.by_numpy else LANES
        self.blocks = -(-self.count // self.lanes)
        self.kept: dict[int, Labels] = {}  # labels; with a design, the numbers of the samples
        if design is not None:
            self.chosen = np.eye(design.counts.shape[1], dtype=np.uint8)[0]

    def of(self, samples: Sequence[int]) -> Labellings:
        """Return the same labellings of a design, where x is the union of these samples."""
        found = copy(self)  # which shares what is kept
        found.chosen = np.zeros_like(self.chosen)
        found.chosen[list(samples)] = 1
        return found

    def draw(self, blocks: range) -> None:
        """Draw these blocks and keep them; drop earlier ones if all would take too much memory."""
        if self.n * self.count > FEW_LABELS:
            self.kept.clear()
        for index in blocks:
            if index not in self.kept:
                checkpoint()
                own = self.labels if self.design is None else self.codes
                self.kept[index] = own(index)

    def labels(self, index: int) -> Labels:
        """Return the (n, labellings) labels of a block: 1 for each point in x, else 0."""
        if self.design is not None:
            labels: Labels = self.chosen[self.codes(index)]
            return labels
        if index in self.kept:
            return self.kept[index]
        if self.exact:
            chosen = list_labels(self._ranks(index), self.n, self.fewer)
        elif self.by_numpy:
            chosen = draw_labels(int(self.key), index, self.n, self.fewer, self.lanes)
        else:
            chosen = unpacked(self._draw(index))
        return 1 - chosen if self.inverted else chosen

    def codes(self, index: int) -> Labels:
        """Return the (n, labellings) numbers of the samples, for labellings of a design."""
        assert self.design is not None
        if index in self.kept:
            return self.kept[index]
        units = len(self.design.rows)
        if self.exact:
            found = blocked.list_codes(self._ranks(index), self.groups, units)
        else:
            found = blocked.draw_codes(int(self.key), index, self.groups, units, self.lanes)
        return found if units == self.n else found[self.design.unit]

    def sizes(self, index: int) -> Ints:
        """Return the number of points in x of each labelling of a block."""
        found: Ints = self.labels(index).sum(0, dtype=np.int64)
        return found

    def _ranks(self, index: int) -> Ints:
        """Return the places of the labellings of a block in the list of all."""
        first = index * self.lanes
        return np.arange(first, min(first + self.lanes, self.count))

    def words(self, index: int) -> list[Words]:
        """Return the labels of a block packed into bits: (n, WORDS) for every LANES labellings."""
        if not self.by_numpy and self.design is None:
            chosen = self._draw(index)
            return [~chosen if self.inverted else chosen]
        labels = self.labels(index)
        return [packed(labels[:, at : at + LANES]) for at in range(0, labels.shape[1], LANES)]

    def _draw(self, index: int) -> Words:
        from crossedge.numerics.labellings.packed import coin_digits, draw_packed

        digits = coin_digits(self.n, self.fewer)
        return draw_packed(self.key, index, self.n, self.fewer, digits)


def permute(
    weights: PairWeights,
    statistic: Statistic,
    moments: LabelMoments,
    n_resamples: int,
    rng: Rng,
    rule: Rule = VISIT_ALL,
    limit: float = 0.0,
) -> PermutationNull:
    """Return the statistic on relabelled samples, up to where the rule stops.

    A value is extreme if, times the sign of the statistic, it is at least the limit.
    """
    labellings = Labellings(weights.n, moments.n_x, n_resamples, rng, moments.design)
    return visit(
        labellings,
        lambda blocks: statistic.of(
            relabel(weights, labellings, blocks, statistic.studentized), moments
        ),
        lambda values: statistic.sign * values >= limit,
        rule,
    )


def visit(
    labellings: Labellings,
    score: Callable[[range], Floats],
    is_extreme: Callable[[Floats], Bools],
    rule: Rule,
) -> PermutationNull:
    """Return the scores of labellings, by blocks: of all, or up to where the rule stops."""
    if labellings.exact or rule is VISIT_ALL:
        values = score(range(labellings.blocks))[: labellings.count]
        values.setflags(write=False)
        return PermutationNull(values, labellings.exact)
    values, first, end = np.empty(0), 0, None
    while end is None and first < labellings.blocks:
        # look after the first block, and then whenever the number of blocks has doubled
        last = min(2 * first or 1, first + BLOCKS_AT_ONCE, labellings.blocks)
        found = score(range(first, last))[: labellings.count - first * labellings.lanes]
        values, first = np.append(values, found), last
        end = rule.end(is_extreme(values))
    values = values[:end]
    values.setflags(write=False)
    return PermutationNull(values, False, end is not None, rule)


def moments_of(weights: PairWeights, samples: Samples, *, nearly: bool = False) -> LabelMoments:
    """Return the moments of the within-sums over the labellings that the samples allow."""
    design = samples.design
    if design is None:
        return LabelMoments(weights, samples.n_x, samples.n_y, nearly=nearly)

    def drawn() -> tuple[Floats, Floats]:
        labellings = Labellings(weights.n, samples.n_x, MOMENT_LABELLINGS, MOMENT_SEED, design)
        found = relabel(weights, labellings, range(labellings.blocks))
        return found.x, found.y

    return BlockMoments(weights, design, drawn)


def relabel(
    weights: PairWeights, labellings: Labellings, blocks: range, studentized: bool = False
) -> WithinSums:
    """Return the within-sums of these blocks of labellings, evened if their sizes differ."""
    found = _relabel(weights, labellings, blocks, studentized)
    design = labellings.design
    if design is None or design.is_even:
        return found
    n_x = np.concatenate([labellings.sizes(index) for index in blocks])
    mean_n_x = float(design.mean_rows @ labellings.chosen)
    x, y = evened(found.x, found.y, n_x, mean_n_x, weights.n, weights.total)
    return found._replace(x=x, y=y)


def _relabel(
    weights: PairWeights, labellings: Labellings, blocks: range, studentized: bool
) -> WithinSums:
    if isinstance(weights, StreamedWeights):
        return _stream(weights, labellings, blocks)
    many = weights.n > MATRIX_POINTS or weights.n**2 * labellings.count > MATRIX_WORK
    if isinstance(weights, EdgeList) and many and not studentized:
        edges = weights

        def of_block(index: int) -> list[WithinSums]:
            return [_count(edges, words) for words in labellings.words(index)]

    elif isinstance(weights, LowRankWeights) and not studentized:
        table = np.column_stack([weights.features, weights.squares, weights.degree])
        if _may_be_single(weights):
            table = table.astype(np.float32)

        def of_block(index: int) -> list[WithinSums]:
            return [_add_features(weights, table, labellings.labels(index))]

    else:
        matrix = weights.dense()
        degree = matrix.sum(1)

        def of_block(index: int) -> list[WithinSums]:
            return _multiply(weights, matrix, degree, labellings.labels(index), studentized)

    found: list[list[WithinSums]] = []
    with one_blas_thread():  # our threads work on blocks of their own instead
        for start in range(blocks.start, blocks.stop, BLOCKS_AT_ONCE):
            some = range(start, min(start + BLOCKS_AT_ONCE, blocks.stop))
            if labellings.by_numpy:  # many small steps, which threads would only slow down
                labellings.draw(some)
            with stage("labellings"):
                found += (
                    in_threads(of_block, some) if weights.n > FEW_POINTS else map(of_block, some)
                )
    x, y, deviation = zip(*chain.from_iterable(found), strict=True)
    return WithinSums(
        np.concatenate(x), np.concatenate(y), np.concatenate(deviation) if studentized else None
    )


def labellings_up_to(n: int, n_x: int, limit: int) -> bool:
    """Return whether there are at most `limit` labellings, without computing a huge number."""
    count = 1
    for chosen in range(n_x):
        count = count * (n - chosen) // (chosen + 1)
        if count > limit:
            return False
    return True


def observe(
    weights: PairWeights,
    in_x: npt.NDArray[np.bool_],
    studentized: bool = False,
    design: Design | None = None,
    samples: Sequence[int] = (0,),
) -> WithinSums:
    """Return the within-sums of the samples as given, evened if those of other labellings are.

    With a design, x is the union of these samples.
    """
    found = _observe(weights, in_x, studentized)
    if design is None or design.is_even:
        return found
    mean_n_x = float(design.mean_rows[list(samples)].sum())
    x, y = evened(found.x, found.y, in_x.sum(), mean_n_x, weights.n, weights.total)
    return found._replace(x=x, y=y)


def _observe(weights: PairWeights, in_x: npt.NDArray[np.bool_], studentized: bool) -> WithinSums:
    if studentized:
        matrix, labels = weights.dense(), in_x[:, None].astype(np.uint8)
        (found,) = _multiply(weights, matrix, matrix.sum(1), labels, True)
        return WithinSums(*(part[0] for part in found if part is not None))
    if isinstance(weights, StreamedWeights):
        z = in_x[:, None].astype(np.float64)
        inside = float(weights.inside(z)[0])
        return WithinSums(
            np.float64(inside), np.float64(weights.total - weights.degree @ z[:, 0] + inside)
        )
    if isinstance(weights, LowRankWeights):
        table = np.column_stack([weights.features, weights.squares, weights.degree])
        found = _add_features(weights, table, in_x[:, None].astype(np.uint8))
        return WithinSums(found.x[0], found.y[0])
    if not isinstance(weights, EdgeList):
        rows = weights.matrix[in_x].sum(0)
        x = rows[in_x].sum() / 2
        return WithinSums(x, weights.total - rows.sum() + x)
    counts = np.bincount(weights.atom[in_x], minlength=len(weights.sizes)).astype(np.float64)
    pairs = counts[weights.i] * (counts[weights.j] - (weights.i == weights.j))
    pairs[weights.i == weights.j] /= 2
    within, degrees = float(weights.weight @ pairs), float(weights.degree @ counts)
    return WithinSums(np.float64(within), np.float64(weights.total - degrees + within))


def _stream(weights: StreamedWeights, labellings: Labellings, blocks: range) -> WithinSums:
    """Return the within-sums, for as many labellings at a time as there is room for.

    Every pass computes all of W anew, and serves all labellings that it is given.
    """
    x: list[Floats] = []
    degrees: list[Floats] = []
    at_once = max(STREAMED_LABELS // (weights.n * labellings.lanes), 1)
    for start in range(blocks.start, blocks.stop, at_once):
        checkpoint()
        some = range(start, min(start + at_once, blocks.stop))
        z = np.concatenate([labellings.labels(index) for index in some], axis=1)
        labels = z.astype(np.float64)
        x.append(weights.inside(labels))
        degrees.append(weights.degree @ labels)
    inside = np.concatenate(x)
    return WithinSums(inside, weights.total - np.concatenate(degrees) + inside)


def _multiply(
    weights: PairWeights, matrix: Floats, degree: Floats, labels: Labels, studentized: bool
) -> list[WithinSums]:
    """Return the within-sums, R_x = z' W z / 2 for labels z of 0 and 1, by products of matrices."""
    found = []
    for at in range(0, labels.shape[1], LANES):
        z = np.ascontiguousarray(labels[:, at : at + LANES].T, dtype=np.float64)
        within = half_squares(z, matrix)
        degrees = z @ degree
        deviation = mmd_deviation(matrix, z.T) if studentized else None
        found.append(WithinSums(within, weights.total - degrees + within, deviation))
    return found


def _add_features(weights: LowRankWeights, table: Floats, labels: Labels) -> WithinSums:
    """Return the within-sums by the sum of the features in x: R_x = (|sum|^2 - sum of squares) / 2.

    The table has the features, their squares and the degrees.
    """
    sums = np.zeros((labels.shape[1], table.shape[1]))
    for at in range(0, len(labels), POINTS_AT_ONCE):
        some = slice(at, at + POINTS_AT_ONCE)
        sums += labels[some].T.astype(table.dtype) @ table[some]
    features, squares, degrees = sums[:, :-2], sums[:, -2], sums[:, -1]
    within = (np.einsum("ij,ij->i", features, features) - squares) / 2
    return WithinSums(within, weights.total - degrees + within)


def _may_be_single(weights: LowRankWeights) -> bool:
    """Return whether single precision is exact to far less than a standard deviation.

    The spread is a lower bound on the root of the sum of all W[i, j]^2, to which the standard
    deviation of R_x is proportional: |F F'|^2 >= (tr F F')^2 / rank.
    """
    n, rank = weights.features.shape
    if n <= SINGLE_POINTS or rank + 2 <= SINGLE_FEATURES:
        return False
    squares = weights.squares
    spread = float(squares.sum()) ** 2 / rank - float(squares @ squares)
    return float(squares.max()) <= SINGLE_REACH * math.sqrt(max(spread, 0.0))


def _count(weights: EdgeList, words: Words) -> WithinSums:
    """Return the within-sums of packed labels, by compiled loops over the edges."""
    from crossedge.numerics.labellings.within_sums import add_within, count_within

    if weights.is_count:
        whole = weights.weight.astype(np.int64), weights.degree.astype(np.int64)
        counts = count_within(words, weights.i, weights.j, *whole)
        within, degrees = counts[0].astype(np.float64), counts[1].astype(np.float64)
    else:
        edges = weights.i, weights.j, weights.weight
        within, degrees = add_within(words, weights.atom, *edges, weights.degree)
    return WithinSums(within, weights.total - degrees + within)
