"""Pair weights in blocks of rows, computed whenever they are needed, and never kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from crossedge.runtime.headroom import check_room
from crossedge.runtime.threads import in_threads
from crossedge.runtime.types import Bools, Floats

BLOCK_ROWS = 128  # rows of W at a time, in each thread


class RowSums(NamedTuple):
    """Sums over the rows of W."""

    degree: Floats  # (n,): of W
    squares: Floats  # (n,): of W^2


@dataclass(frozen=True, eq=False)
class StreamedWeights:
    """A symmetric matrix W of pair weights with a zero diagonal, as a function of its rows."""

    n: int
    rows: Callable[[int, int], Floats]  # first, last -> (last - first, n) rows of W
    # if W is an estimate: first, last -> independent estimates of multiples of these rows
    estimates: Callable[[int, int], Iterator[Floats]] | None = None

    @cached_property
    def row_sums(self) -> RowSums:
        """Sums over the rows, by one pass."""
        degree, squares = np.empty((2, self.n))

        def of_block(first: int) -> None:
            last = min(first + BLOCK_ROWS, self.n)
            W = self.rows(first, last)
            degree[first:last] = W.sum(1)
            squares[first:last] = np.einsum("ij,ij->i", W, W)

        in_threads(of_block, range(0, self.n, BLOCK_ROWS))
        return RowSums(degree, squares)

    def with_total(self, total: float, tolerance: float) -> StreamedWeights:
        """Return the weights times a factor that gives them this total, which they nearly have."""
        factor = total / self.total
        if not abs(factor - 1) <= tolerance:
            raise FloatingPointError(
                f"the weights add up to {self.total:g} instead of {total:g}: "
                "give a higher temperature, or neighbours"
            )
        rows = self.rows
        found = StreamedWeights(
            self.n, lambda first, last: factor * rows(first, last), self.estimates
        )
        known = RowSums(factor * self.row_sums.degree, factor**2 * self.row_sums.squares)
        found.__dict__["row_sums"] = known  # no second pass
        return found

    def error_between(self, in_x: Bools) -> float:
        """Return the standard error of the weight between two samples; 0 if W is exact.

        Each of B independent estimates gives the share of the weight that lies between the samples,
        and the standard error of their mean is their standard deviation over sqrt(B).
        """
        estimates = self.estimates
        if estimates is None:
            return 0.0
        sign = np.where(in_x, 1.0, -1.0)

        def of_block(first: int) -> Floats:
            last = min(first + BLOCK_ROWS, self.n)
            return np.array(
                [[W.sum(), sign[first:last] @ (W @ sign)] for W in estimates(first, last)]
            )

        sums: Floats = sum(in_threads(of_block, range(0, self.n, BLOCK_ROWS)))  # type: ignore[assignment]
        between = self.total * (1 - sums[:, 1] / sums[:, 0]) / 2
        return float(between.std(ddof=1) / np.sqrt(len(between)))

    def inside(self, labels: Floats) -> Floats:
        """Return R_x of each of (n, labellings) labels, which are 1 for points in x and else 0."""

        def of_block(first: int) -> Floats:
            last = min(first + BLOCK_ROWS, self.n)
            found: Floats = np.einsum(
                "ij,ij->j", labels[first:last], self.rows(first, last) @ labels
            )
            return found

        total: Floats = sum(in_threads(of_block, range(0, self.n, BLOCK_ROWS))) / 2  # type: ignore[assignment]
        return total

    @property
    def degree(self) -> Floats:
        """The row sums, (n,)."""
        return self.row_sums.degree

    @property
    def total(self) -> float:
        """The sum m of the weights over all pairs."""
        return float(self.degree.sum()) / 2

    @property
    def unit(self) -> float:
        """1: the weights of graphs need no scaling to stay in the range of doubles."""
        return 1.0

    @property
    def step(self) -> float:
        """0: sums of such weights are not multiples of a common step."""
        return 0.0

    @property
    def degree_step(self) -> float:
        """0: differences of degrees are not multiples of a common step."""
        return 0.0

    def dense(self) -> Floats:
        """Return W as an (n, n) matrix, if there is room for it."""
        check_room(self.n, 4)
        return self.rows(0, self.n)
