"""The permutation distribution of a statistic, sampled or, where that is no more work, complete."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
import numpy.typing as npt
import torch

from crossedge.numerics.bit_counters import LANES, WORDS, Words
from crossedge.numerics.dense_within import multiply_within, spread
from crossedge.numerics.labellings import (
    coin_digits,
    completion_table,
    draw_labellings,
    unrank_labellings,
)
from crossedge.numerics.within_sums import add_within, count_within
from crossedge.randomness import Rng, random_key
from crossedge.statistics import LabelMoments, Statistic, WithinSums
from crossedge.statistics.mean_discrepancies import mmd_deviation
from crossedge.threads import in_threads
from crossedge.weights import EdgeList, PairWeights

Floats = npt.NDArray[np.float64]

MOST = 10_000_000  # labellings that are visited one and all
TOGETHER = 16  # blocks of labellings, between two looks at whether to stop


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

    Blocks of LANES are independent, each with random numbers of its own: they do not depend on the
    number of threads, and memory does not grow with the number of labellings.
    """

    def __init__(self, n: int, n_x: int, n_resamples: int, rng: Rng) -> None:
        self.n, self.key = n, random_key(rng)
        self.fewer = min(n_x, n - n_x)  # label the smaller sample
        self.inverted = self.fewer < n_x
        self.exact = labellings_up_to(n, self.fewer, min(n_resamples, MOST))
        self.count = comb(n, self.fewer) if self.exact else n_resamples
        self.blocks = -(-self.count // LANES)
        if self.exact:
            self.table = completion_table(n, self.fewer, self.count)
        self.digits = coin_digits(n, self.fewer)

    def block(self, index: int) -> Words:
        """(n, WORDS): one bit for each point and labelling."""
        first = index * LANES
        if self.exact:
            chosen = unrank_labellings(first, min(LANES, self.count - first), self.table)
        else:
            chosen = draw_labellings(self.key, index, self.n, self.fewer, self.digits)
        return ~chosen if self.inverted else chosen


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
    step = TOGETHER if stop else labellings.blocks
    parts: list[Floats] = []
    extreme, stopped = 0, False
    for first in range(0, labellings.blocks, step):
        blocks = range(first, min(first + step, labellings.blocks))
        found = relabel(weights, labellings, blocks, statistic.studentized)
        left = labellings.count - first * LANES
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
    """LANES of them for each block."""

    def of_block(index: int) -> WithinSums:
        return within_sums(weights, labellings.block(index), studentized)

    if isinstance(weights, EdgeList) and not studentized:
        found = in_threads(of_block, blocks)
    else:  # products of matrices have threads of their own
        found = []
        for first in range(blocks.start, blocks.stop, TOGETHER):
            some = range(first, min(first + TOGETHER, blocks.stop))
            labels = in_threads(labellings.block, some)
            found += [within_sums(weights, part, studentized) for part in labels]
    x, y, deviation = zip(*found, strict=True)
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
    """Of the samples as given."""
    if not isinstance(weights, EdgeList) and not studentized:
        inside = torch.from_numpy(in_x)
        rows = weights.matrix[inside].sum(0)
        x = rows[inside].sum() / 2
        return WithinSums(x, weights.total - rows.sum() + x)
    labels = np.zeros((weights.n, WORDS), np.uint64)
    labels[in_x, 0] = 1
    found = within_sums(weights, labels, studentized)
    return WithinSums(*(None if part is None else part[0] for part in found))  # type: ignore[arg-type]


def within_sums(weights: PairWeights, labels: Words, studentized: bool = False) -> WithinSums:
    """For (n, WORDS) labels, one bit for each point and labelling."""
    if studentized:
        matrix, z = weights.dense(), torch.from_numpy(spread(labels))
        within_x = ((matrix @ z) * z).sum(0) / 2
        within_y = weights.total - matrix.sum(1) @ z + within_x
        return WithinSums(within_x, within_y, mmd_deviation(matrix, z))
    if not isinstance(weights, EdgeList):
        within, degrees = multiply_within(labels, weights.matrix, weights.degree)
    elif weights.is_count:
        whole = weights.weight.astype(np.int64), weights.degree.astype(np.int64)
        counts = count_within(labels, weights.i, weights.j, *whole)
        within, degrees = counts[0].astype(np.float64), counts[1].astype(np.float64)
    else:
        edges = weights.i, weights.j, weights.weight
        within, degrees = add_within(labels, weights.atom, *edges, weights.degree)
    return WithinSums(torch.from_numpy(within), torch.from_numpy(weights.total - degrees + within))
