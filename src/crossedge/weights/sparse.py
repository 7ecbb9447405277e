"""Smoothed graphs on candidate pairs only: weights, gradients, and a bound on what is left out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from crossedge.runtime.types import Floats, Ints
from crossedge.weights.candidates import Candidates

if TYPE_CHECKING:
    from crossedge.numerics.trees.sparse_marginals import SparseMarginals


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
        (start, pair), n, k = self.pairs.table, self.pairs.n, self.k
        row = np.repeat(np.arange(n), np.diff(start))
        length = self.pairs.length[pair]
        ordered = length[np.lexsort((length, row))]
        kth, reach = ordered[start[:-1] + k - 1], ordered[start[:-1] + neighbours - 1]
        with np.errstate(divide="ignore", under="ignore"):
            # a probability that is too small for a double is at most its odds over the k-th's
            log_mu = np.maximum(np.log(self.probability), (kth[row] - length) / self.temperature)
            terms = np.exp(np.minimum(log_mu, 0.0) + (length - reach[row]) / self.temperature)
        candidates = np.diff(start)
        ratio = np.add.reduceat(terms, start[:-1]) / (candidates - k + 1)
        return float(np.minimum((n - 1 - candidates) * ratio, k).sum() / (k * n))

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
        """The ends of the pairs in an order that only lengths decide on, and that order.

        Random projections draw a sign for each pair in turn. In this order the signs, and so the
        weights, depend neither on the order of the points nor on which sample comes first.
        """
        (start, pair), length = self.pairs.table, self.pairs.length
        entries = length[pair]
        nearest, furthest = (of.reduceat(entries, start[:-1]) for of in (np.minimum, np.maximum))
        rank = np.empty(self.pairs.n, np.int64)
        rank[np.lexsort((nearest, furthest))] = np.arange(self.pairs.n)
        i, j = rank[self.pairs.i], rank[self.pairs.j]
        low, high = np.minimum(i, j), np.maximum(i, j)
        order = np.lexsort((high, low))
        return (low[order], high[order]), order

    @cached_property
    def weight(self) -> Floats:
        """The probability of each pair to be an edge of the tree."""
        found = np.empty_like(self.solved.mu)
        found[self._canonical[1]] = self.solved.mu
        return found

    def pull_back(self, gradient: Floats) -> Floats:
        """Return the gradient in the lengths, given that in the weights."""
        order = self._canonical[1]
        found = np.empty_like(gradient)
        found[order] = self.solved.pull_back(gradient[order])
        return found

    def left_out(self, neighbours: int) -> float:
        """Return a bound on the share of the weight that the complete graph has on other pairs."""
        from crossedge.numerics.trees.left_out import left_out_of_tree

        (start, pair), pairs = self.pairs.table, self.pairs
        if 2 * len(pairs.i) == pairs.n * (pairs.n - 1):
            return 0.0
        row, length = np.repeat(np.arange(pairs.n), np.diff(start)), pairs.length[pair]
        reach = length[np.lexsort((length, row))][start[:-1] + neighbours - 1]
        return left_out_of_tree(pairs.i, pairs.j, pairs.length, reach, self.temperature)
