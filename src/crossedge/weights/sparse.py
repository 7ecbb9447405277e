"""Smoothed graphs on candidate pairs only: weights, gradients, and a bound on what is left out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from crossedge.runtime.threads import in_threads
from crossedge.runtime.types import Floats, Ints
from crossedge.weights.candidates import Candidates

if TYPE_CHECKING:
    from crossedge.numerics.trees.sparse_marginals import SparseMarginals

BLOCK_ENTRIES = 1 << 18  # entries of the table in a block of rows, the unit of work of a thread


class SparseModel(Protocol):
    """W on candidate pairs at one temperature."""

    @property
    def weight(self) -> Floats:
        """W of each pair, (pairs,)."""

    def pull_back(self, gradient: Floats) -> Floats:
        """Return the gradient in the lengths, given that in the weights, both (pairs,)."""

    def left_out(self, neighbours: int) -> float:
        """Return a bound on the share of the weight that the complete graph has on other pairs.

        Every point's nearest `neighbours` are among its candidates.
        """


@dataclass(frozen=True, eq=False)
class SparseNeighbours:
    """Smoothed k nearest neighbours among candidates."""

    pairs: Candidates
    k: int
    temperature: float

    @cached_property
    def probability(self) -> Floats:
        """The probability of each entry of the table of candidates to be chosen."""
        from crossedge.numerics.neighbours.sparse_choices import chosen

        start, pair = self.pairs.table
        return chosen(start, self.pairs.length[pair], self.k, self.temperature)

    @cached_property
    def weight(self) -> Floats:
        """W_ij = P(i chooses j) + P(j chooses i)."""
        return self._of_pairs(self.probability)

    def pull_back(self, gradient: Floats) -> Floats:
        """Return the gradient in the lengths, given that in the weights."""
        from crossedge.numerics.neighbours.sparse_choices import chosen_tangent

        start, pair = self.pairs.table
        length, mu = self.pairs.length[pair], self.probability
        change = chosen_tangent(start, length, mu, self.k, self.temperature, gradient[pair])
        return self._of_pairs(change) / -self.temperature

    def left_out(self, neighbours: int) -> float:
        """Return a bound on the share of the weight that the complete graph has on other pairs.

        Let e_k be the sum over all sets of k candidates of the product of their odds. Candidates
        that join lower e_(k-1) / e_k, so a point that was left out would be chosen with at most
        e_(k-1) / e_k times its odds. Its odds are below those of the K-th nearest candidate, and
        e_(k-1) / e_k is the sum of mu / odds over the m candidates, divided by m - k + 1.
        """
        n, k = self.pairs.n, self.k
        size = max(BLOCK_ENTRIES * n // max(len(self.probability), 1), 1)

        def of_rows(first: int) -> float:
            return self._left_out_of_rows(first, min(first + size, n), neighbours)

        return sum(in_threads(of_rows, range(0, n, size))) / (k * n)

    def _left_out_of_rows(self, first: int, last: int, neighbours: int) -> float:
        (start, pair), k, t = self.pairs.table, self.k, self.temperature
        begin, some = start[first:last] - start[first], slice(start[first], start[last])
        candidates = np.diff(start[first : last + 1])
        row, length = np.repeat(np.arange(last - first), candidates), self.pairs.length[pair[some]]
        ordered = length[np.lexsort((length, row))]
        kth, reach = ordered[begin + k - 1], ordered[begin + neighbours - 1]
        with np.errstate(divide="ignore", under="ignore"):
            # a probability too small for a double is at most k times its odds over the k-th's
            least = (kth[row] - length) / t + math.log(k)
            log_mu = np.minimum(np.maximum(np.log(self.probability[some]), least), 0.0)
            terms = np.exp(log_mu + (length - reach[row]) / t)
        ratio = np.add.reduceat(terms, begin) / (candidates - k + 1)
        return float(np.minimum((self.pairs.n - 1 - candidates) * ratio, k).sum())

    def _of_pairs(self, entries: Floats) -> Floats:
        """Return the sum of both directions of each pair."""
        return np.bincount(self.pairs.table[1], entries, len(self.pairs.i)).astype(np.float64)


@dataclass(frozen=True, eq=False)
class SparseTree:
    """The smoothed spanning tree of candidate pairs, which must join all points."""

    pairs: Candidates
    temperature: float
    accuracy: float | None  # the relative standard error of random projections; None if exact

    @cached_property
    def solved(self) -> SparseMarginals:
        """The marginals of the pairs in canonical order, with what their gradient needs."""
        from crossedge.numerics.trees.sparse_marginals import sparse_tree_marginals

        (low, high), order = self._canonical
        length = self.pairs.length[order]
        return sparse_tree_marginals(
            self.pairs.n, low, high, length, self.temperature, self.accuracy
        )

    @cached_property
    def _canonical(self) -> tuple[tuple[Ints, Ints], Ints]:
        """The ends of the pairs in an order that the points decide on, and that order.

        Random projections draw a sign for each pair in turn. In this order the signs, and so the
        weights, depend neither on the order of the points nor on which sample comes first.
        """
        i, j = self.pairs.rank[self.pairs.i], self.pairs.rank[self.pairs.j]
        low, high = np.minimum(i, j), np.maximum(i, j)
        order = np.lexsort((high, low))
        return (low[order], high[order]), order

    @cached_property
    def _alike(self) -> tuple[Ints, Ints] | None:
        """Which pairs join copies of the same two points, and their numbers; None if none do."""
        atom, pairs = self.pairs.atom, self.pairs
        if self.accuracy is None or len(np.unique(atom)) == pairs.n:
            return None
        a, b = atom[pairs.i], atom[pairs.j]
        key = np.minimum(a, b) * (atom.max() + 1) + np.maximum(a, b)
        _, group, count = np.unique(key, return_inverse=True, return_counts=True)
        return group, count

    def _averaged(self, values: Floats) -> Floats:
        """Return the mean over pairs that join copies of the same two points.

        By symmetry these are equal. Estimates are not, and would tell copies apart by their rows.
        """
        if self._alike is None:
            return values
        group, count = self._alike
        mean: Floats = (np.bincount(group, values) / count)[group]
        return mean

    @cached_property
    def weight(self) -> Floats:
        """The probability of each pair to be an edge of the tree."""
        found = np.empty_like(self.solved.mu)
        found[self._canonical[1]] = self.solved.mu
        return self._averaged(found)

    @property
    def standard_error(self) -> Floats:
        """The standard error of each weight; zeros where these are exact."""
        found = np.empty_like(self.solved.standard_error)
        found[self._canonical[1]] = self.solved.standard_error
        return found

    def pull_back(self, gradient: Floats) -> Floats:
        """Return the gradient in the lengths, given that in the weights."""
        order = self._canonical[1]
        found = np.empty_like(gradient)
        found[order] = self.solved.pull_back(gradient[order])
        return self._averaged(found)

    def left_out(self, neighbours: int) -> float:
        """Return a bound on the share of the weight that the complete graph has on other pairs."""
        from crossedge.numerics.trees.left_out import left_out_of_tree

        (start, pair), pairs = self.pairs.table, self.pairs
        if 2 * len(pairs.i) == pairs.n * (pairs.n - 1):
            return 0.0
        row, length = np.repeat(np.arange(pairs.n), np.diff(start)), pairs.length[pair]
        reach = length[np.lexsort((length, row))][start[:-1] + neighbours - 1]
        return left_out_of_tree(pairs.i, pairs.j, pairs.length, reach, self.temperature)
