"""The permutation distribution of a statistic, sampled or, where that is no more work, complete."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from math import comb

import numpy as np
import numpy.typing as npt
import torch

from crossedge.interrupts import checkpoint
from crossedge.numerics.dense_within import half_squares
from crossedge.numerics.labellings import (
    LANES,
    Labels,
    Words,
    draw_labels,
    list_labels,
    packed,
    unpacked,
)
from crossedge.randomness import Rng, random_key
from crossedge.statistics import LabelMoments, Statistic, WithinSums
from crossedge.statistics.mean_discrepancies import mmd_deviation
from crossedge.threads import in_threads, one_blas_thread
from crossedge.weights import EdgeList, PairWeights

Floats = npt.NDArray[np.float64]

MOST = 10_000_000  # labellings that are visited one and all
FEW = 300  # points whose products are too small for a second thread
TOGETHER = 16  # blocks of labellings, between two looks at whether to stop
PLAIN_LANES = 2 * LANES  # labellings in a block, where numpy draws them
# labellings, and labels, up to which numpy draws them, which takes up to a tenth of a second
FEW_LABELLINGS, NUMBERS = 20_000, 32_000_000
MATRIX = 1024  # points, and
PRODUCTS = 2_700_000_000  # n^2 labellings, up to which a graph is a matrix: 0.05 s on two cores


@dataclass(frozen=True)
class PermutationNull:
    """Values of a statistic on relabelled samples."""

    values: Floats  # (labellings,)
    exact: bool  # whether these are all labellings
    stopped: bool  # before all that were asked for

    def pvalue(self, observed: float, sign: int, tolerance: float) -> float:
        """(1 + b) / (1 + B), or b / B over all labellings, the sample's own among them.

        b counts the values no less extreme than the observed one; those that differ by rounding are
        equal. Stopped at the b-th such value, the p-value is b / B (Besag and Clifford, 1991).
        """
        extreme = int((~(sign * self.values < sign * observed - tolerance)).sum())  # NaN counts
        if self.exact or self.stopped:
            return extreme / len(self.values)
        return (1 + extreme) / (1 + len(self.values))


class Labellings:
    """Random labellings with n_x points in x, or all of them if these are not more; in blocks.

    Blocks are independent, each with random numbers of its own: they do not depend on the number of
    threads, and memory does not grow with the number of labellings. Which labellings they are
    depends on n, n_x, their number and the rng alone.
    """

    def __init__(self, n: int, n_x: int, n_resamples: int, rng: Rng) -> None:
        self.n, self.key = n, random_key(rng)
        self.fewer = min(n_x, n - n_x)  # label the smaller sample
        self.inverted = self.fewer < n_x
        self.exact = labellings_up_to(n, self.fewer, min(n_resamples, MOST))
        self.count = comb(n, self.fewer) if self.exact else n_resamples
        few = self.count <= FEW_LABELLINGS and n * self.count <= NUMBERS
        self.by_numpy = self.exact or few
        self.lanes = min(PLAIN_LANES, -(-self.count // 64) * 64) if self.by_numpy else LANES
        self.blocks = -(-self.count // self.lanes)
        self.kept: dict[int, Labels] = {}

    def draw(self, blocks: range) -> None:
        """Make these blocks ready; they are kept, unless there are too many."""
        if self.n * self.count > NUMBERS:
            self.kept.clear()
        for index in blocks:
            if index not in self.kept:
                checkpoint()
                self.kept[index] = self.labels(index)

    def labels(self, index: int) -> Labels:
        """(n, labellings): 1 for each point in x."""
        if index in self.kept:
            return self.kept[index]
        if self.exact:
            first = index * self.lanes
            chosen = list_labels(first, min(self.lanes, self.count - first), self.n, self.fewer)
        elif self.by_numpy:
            chosen = draw_labels(int(self.key), index, self.n, self.fewer, self.lanes)
        else:
            chosen = unpacked(self._draw(index))
        return 1 - chosen if self.inverted else chosen

    def words(self, index: int) -> list[Words]:
        """The same, packed: (n, WORDS) for every LANES of them."""
        if not self.by_numpy:
            chosen = self._draw(index)
            return [~chosen if self.inverted else chosen]
        labels = self.labels(index)
        return [packed(labels[:, at : at + LANES]) for at in range(0, labels.shape[1], LANES)]

    def _draw(self, index: int) -> Words:
        from crossedge.numerics.packed_labellings import coin_digits, draw_packed

        digits = coin_digits(self.n, self.fewer)
        return draw_packed(self.key, index, self.n, self.fewer, digits)


def permute(
    weights: PairWeights,
    statistic: Statistic,
    moments: LabelMoments,
    n_resamples: int,
    rng: Rng,
    stop: tuple[int, float] | None = None,
) -> PermutationNull:
    """The statistic on relabelled samples.

    With `stop` = (count, limit), no further than to the count-th value that, times the sign of the
    statistic, is at least the limit.
    """
    labellings = Labellings(weights.n, moments.n_x, n_resamples, rng)
    parts: list[Floats] = []
    first, extreme, stopped = 0, 0, False
    while first < labellings.blocks:
        # a look after the first block, and then whenever there are twice as many
        last = min(2 * first or 1, first + TOGETHER) if stop else labellings.blocks
        blocks = range(first, min(last, labellings.blocks))
        found = relabel(weights, labellings, blocks, statistic.studentized)
        left = labellings.count - first * labellings.lanes
        first = blocks.stop
        values = statistic.of(found, moments).numpy()[:left]
        parts.append(values)
        if stop and not labellings.exact:
            places = np.flatnonzero(statistic.sign * values >= stop[1])
            if extreme + len(places) >= stop[0]:
                parts[-1] = values[: places[stop[0] - extreme - 1] + 1]
                stopped = True
                break
            extreme += len(places)
    together = np.concatenate(parts)
    together.setflags(write=False)
    return PermutationNull(together, labellings.exact, stopped)


def relabel(
    weights: PairWeights, labellings: Labellings, blocks: range, studentized: bool = False
) -> WithinSums:
    """The within-sums of these blocks of labellings."""
    many = weights.n > MATRIX or weights.n**2 * labellings.count > PRODUCTS
    if isinstance(weights, EdgeList) and many and not studentized:
        edges = weights

        def of_block(index: int) -> list[WithinSums]:
            return [_count(edges, words) for words in labellings.words(index)]

    else:
        matrix = weights.dense()
        degree = matrix.sum(1).numpy()

        def of_block(index: int) -> list[WithinSums]:
            return _multiply(weights, matrix, degree, labellings.labels(index), studentized)

    found: list[list[WithinSums]] = []
    with one_blas_thread():  # a block for each of ours, who do not wait for each other
        for start in range(blocks.start, blocks.stop, TOGETHER):
            some = range(start, min(start + TOGETHER, blocks.stop))
            if labellings.by_numpy:  # by many small steps, which threads would only slow down
                labellings.draw(some)
            found += in_threads(of_block, some) if weights.n > FEW else map(of_block, some)
    x, y, deviation = zip(*chain.from_iterable(found), strict=True)
    return WithinSums(torch.cat(x), torch.cat(y), torch.cat(deviation) if studentized else None)


def labellings_up_to(n: int, n_x: int, limit: int) -> bool:
    """Whether there are at most so many labellings, without the huge number itself."""
    count = 1
    for chosen in range(n_x):
        count = count * (n - chosen) // (chosen + 1)
        if count > limit:
            return False
    return True


def observe(
    weights: PairWeights, in_x: npt.NDArray[np.bool_], studentized: bool = False
) -> WithinSums:
    """The within-sums of the samples as given."""
    if studentized:
        matrix, labels = weights.dense(), in_x[:, None].astype(np.uint8)
        (found,) = _multiply(weights, matrix, matrix.sum(1).numpy(), labels, True)
        return WithinSums(*(part[0] for part in found if part is not None))
    if not isinstance(weights, EdgeList):
        inside = torch.from_numpy(in_x)
        rows = weights.matrix[inside].sum(0)
        x = rows[inside].sum() / 2
        return WithinSums(x, weights.total - rows.sum() + x)
    counts = np.bincount(weights.atom[in_x], minlength=len(weights.sizes)).astype(np.float64)
    pairs = counts[weights.i] * (counts[weights.j] - (weights.i == weights.j))
    pairs[weights.i == weights.j] /= 2
    within, degrees = float(weights.weight @ pairs), float(weights.degree @ counts)
    return WithinSums(
        torch.tensor(within, dtype=torch.float64),
        torch.tensor(weights.total - degrees + within, dtype=torch.float64),
    )


def _multiply(
    weights: PairWeights, matrix: torch.Tensor, degree: Floats, labels: Labels, studentized: bool
) -> list[WithinSums]:
    """R_x = z' W z / 2 for labels z of 0 and 1: a product of matrices for many labellings."""
    found = []
    for at in range(0, labels.shape[1], LANES):
        z = np.ascontiguousarray(labels[:, at : at + LANES].T, dtype=np.float64)
        within = torch.from_numpy(half_squares(z, matrix.numpy()))
        degrees = torch.from_numpy(z @ degree)
        deviation = mmd_deviation(matrix, torch.from_numpy(z.T)) if studentized else None
        found.append(WithinSums(within, weights.total - degrees + within, deviation))
    return found


def _count(weights: EdgeList, words: Words) -> WithinSums:
    """The same from packed labels, by compiled loops over the edges."""
    from crossedge.numerics.within_sums import add_within, count_within

    if weights.is_count:
        whole = weights.weight.astype(np.int64), weights.degree.astype(np.int64)
        counts = count_within(words, weights.i, weights.j, *whole)
        within, degrees = counts[0].astype(np.float64), counts[1].astype(np.float64)
    else:
        edges = weights.i, weights.j, weights.weight
        within, degrees = add_within(words, weights.atom, *edges, weights.degree)
    return WithinSums(torch.from_numpy(within), torch.from_numpy(weights.total - degrees + within))
