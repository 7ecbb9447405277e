"""The permutation distribution of a statistic, sampled or, where that is no more work, complete."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
import numpy.typing as npt

from crossedge.compiled import in_threads
from crossedge.numerics.bit_counters import LANES, WORDS, Words
from crossedge.numerics.labellings import (
    coin_digits,
    completion_table,
    draw_labellings,
    unrank_labellings,
)
from crossedge.numerics.within_sums import add_within, count_within
from crossedge.randomness import Rng, random_key
from crossedge.statistics import Statistic
from crossedge.weights import EdgeList

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class PermutationNull:
    """Values of a statistic on relabelled samples."""

    values: Floats  # (labellings,)
    exact: bool  # whether these are all labellings


def permute(
    graph: EdgeList, statistic: Statistic, n_x: int, n_resamples: int, rng: Rng
) -> PermutationNull:
    """The statistic on random labellings with n_x points in x, or on all if they are not more.

    Blocks of 512 labellings are independent, each with random numbers of its own: the values do
    not depend on the number of threads, and memory does not grow with the number of labellings.
    """
    n, key = graph.n, random_key(rng)
    fewer = min(n_x, n - n_x)  # label the smaller sample
    exact = _labellings_up_to(n, fewer, n_resamples)
    n_values = comb(n, fewer) if exact else n_resamples
    if exact:
        table = completion_table(n, fewer, n_values)
    digits = coin_digits(n, fewer)

    def labels(block: int) -> Words:
        first = block * LANES
        if exact:
            chosen = unrank_labellings(first, min(LANES, n_values - first), table)
        else:
            chosen = draw_labellings(key, block, n, fewer, digits)
        return chosen if fewer == n_x else ~chosen

    blocks = range(-(-n_values // LANES))
    values = in_threads(lambda block: statistic_of_labels(graph, labels(block), statistic), blocks)
    together = np.concatenate(values)[:n_values]
    together.setflags(write=False)
    return PermutationNull(together, exact)


def _labellings_up_to(n: int, n_x: int, limit: int) -> bool:
    """Whether there are at most so many labellings, without the huge number itself."""
    count = 1
    for chosen in range(n_x):
        count = count * (n - chosen) // (chosen + 1)
        if count > limit:
            return False
    return True


def observe(graph: EdgeList, statistic: Statistic, in_x: npt.NDArray[np.bool_]) -> float:
    """The statistic on the samples as given, by the same operations as on relabelled ones."""
    labels = np.zeros((graph.n, WORDS), np.uint64)
    labels[in_x, 0] = 1
    return float(statistic_of_labels(graph, labels, statistic)[0])


def statistic_of_labels(graph: EdgeList, labels: Words, statistic: Statistic) -> Floats:
    """(LANES,) values for (n, WORDS) labels, one bit for each point and labelling."""
    if graph.is_count:
        whole = graph.weight.astype(np.int64), graph.degree.astype(np.int64)
        counts = count_within(labels, graph.i, graph.j, *whole)
        within_x, degrees = counts[0].astype(np.float64), counts[1].astype(np.float64)
    else:
        edges = graph.i, graph.j, graph.weight
        within_x, degrees = add_within(labels, graph.atom, *edges, graph.degree)
    within_y = graph.total - degrees + within_x
    return statistic.value(within_x, within_y, graph.total)
