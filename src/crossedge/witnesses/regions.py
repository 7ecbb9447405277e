"""Regions: a scan over intervals, categories and their conjunctions in two columns.

The candidates are chosen by the pooled sample alone. The evidence of one is the logarithm of the
likelihood ratio of its two shares, as in Kulldorff's scan statistic (1997), less the logarithm of
the number of candidates with as many columns: a longer description must earn its length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse

from crossedge.runtime.types import Bools, Floats, Ints
from crossedge.witnesses.cells import Cells

FEWEST_ROWS, LEAST_SHARE, LARGEST_SHARE = 8, 0.01, 2 / 3  # of the pooled rows in a region
MOST_BOXES = 60_000  # conjunctions
MOST_WORK = 6e9  # rows times pairs of columns times labellings: some seconds
COARSE = (12, 10, 8, 6, 5, 4, 3)  # cells of a number in conjunctions, as fine as the limits allow
MOST_REGIONS = 6
OVERLAP = 0.5  # the share of a region that earlier ones may hold


@dataclass(frozen=True)
class Group:
    """The candidates of one column, or of one pair of columns, as sets of cells."""

    columns: tuple[Cells, ...]
    sets: tuple[list[tuple[int, int]], ...]  # for each column
    kept: Ints  # which of all combinations of sets are candidates
    rows: slice  # of the table of counts: the cells
    penalty: float

    def counts(self, table: Any) -> Any:
        """Return the (candidates, lanes) counts, given those in all cells of all groups."""
        own = table[self.rows]
        first = self.columns[0].indicator(self.sets[0]).astype(own.dtype)
        if len(self.columns) == 1:
            return (first @ own)[self.kept]
        second = self.columns[1].indicator(self.sets[1]).astype(own.dtype)
        k, other, lanes = first.shape[1], second.shape[1], own.shape[1]
        found = (first @ own.reshape(k, other * lanes)).reshape(len(first), other, lanes)
        return np.matmul(second, found).reshape(-1, lanes)[self.kept]

    def choice(self, place: int) -> list[tuple[Cells, tuple[int, int]]]:
        """Return the columns of a candidate, each with its set of cells."""
        combination = int(self.kept[place])
        if len(self.columns) == 1:
            return [(self.columns[0], self.sets[0][combination])]
        first, second = divmod(combination, len(self.sets[1]))
        return [(self.columns[0], self.sets[0][first]), (self.columns[1], self.sets[1][second])]


class RegionScan:
    """The evidence of all candidates, on many labellings."""

    def __init__(self, fine: list[Cells], coarse: list[Cells], n_x: int) -> None:
        n = len(fine[0].codes)
        self.n, self.n_x = n, n_x
        codes, heights = [], []
        for one in fine:
            codes.append(one.codes)
            heights.append(one.count)
        pairs: list[tuple[Cells, ...]] = list(combinations(coarse, 2))
        singles: list[tuple[Cells, ...]] = [(one,) for one in fine]
        for a, b in pairs:
            codes.append(a.codes * b.count + b.codes)
            heights.append(a.count * b.count)
        starts = np.concatenate([[0], np.cumsum(heights)]).astype(int)
        rows = np.concatenate([code + start for code, start in zip(codes, starts, strict=False)])
        places = np.tile(np.arange(n), len(codes))
        ones = np.ones(len(rows), np.float32)
        self.table: Any = sparse.csr_array((ones, (rows, places)), shape=(int(starts[-1]), n))
        whole = np.asarray(self.table @ np.ones((n, 1), np.float32))
        self.groups: list[Group] = []
        for kind in (singles, pairs):
            members: list[Group] = []
            for columns in kind:
                place = len(self.groups) + len(members)
                sets = tuple(column.sets() for column in columns)
                every = np.arange(math.prod(map(len, sets)))
                span = slice(int(starts[place]), int(starts[place + 1]))
                group = Group(columns, sets, every, span, 0.0)
                size = group.counts(whole)[:, 0]
                least = max(FEWEST_ROWS, LEAST_SHARE * n)
                kept = every[(size >= least) & (size <= LARGEST_SHARE * n)]
                members.append(Group(columns, sets, kept, span, 0.0))
            penalty = math.log(max(sum(len(group.kept) for group in members), 1))
            self.groups += [Group(g.columns, g.sets, g.kept, g.rows, penalty) for g in members]
        self.sizes = [group.counts(whole)[:, 0].astype(np.float64) for group in self.groups]
        self.candidates = sum(map(len, self.sizes))

    def cell_counts(self, labels: Any) -> Any:
        """Return the counts of (n, lanes) labels of x in all cells of all groups."""
        return self.table @ labels

    def largest(self, table: Any) -> Floats:
        """Return the largest evidence of each labelling, given the counts in all cells."""
        best = np.full(table.shape[1], -np.inf)
        for group, size in zip(self.groups, self.sizes, strict=True):
            if len(size):
                ratio = likelihood_ratio(group.counts(table), size[:, None], self.n_x, self.n)
                np.maximum(best, ratio.max(0) - group.penalty, out=best)
        return np.where(np.isfinite(best), best, 0.0)

    def find(self, in_x: Bools, critical: float) -> list[tuple[list[Any], Bools, float]]:
        """Return the regions above the critical value: each with its rows and its evidence.

        They are found one after the other. From the second on, a region must also be above the
        critical value among the rows outside of those before, in the same direction. So what
        merely makes room for another region is not named.
        """
        found: list[tuple[list[Any], Bools, float]] = []
        left = np.ones(self.n, np.bool_)
        full = self._scores(in_x, np.ones(self.n, np.bool_))
        while len(found) < MOST_REGIONS:
            now = full if not found else self._scores(in_x, left)
            best, where = critical, None
            for place, (group, size) in enumerate(zip(self.groups, self.sizes, strict=True)):
                if not len(size):
                    continue
                fits = (full[place][0] > critical) & (now[place][2] >= (1 - OVERLAP) * size)
                fits &= now[place][1] == full[place][1]
                score = np.where(fits, now[place][0], -np.inf)
                # of equal ones, the smaller region: its complement has the same evidence
                at = int(np.lexsort((size, -np.round(score, 6)))[0])
                if score[at] > best + (1e-6 if where else 0):
                    best, where = float(score[at]), (place, group, at)
            if where is None:
                break
            place, group, at = where
            choice = group.choice(at)
            rows = np.ones(self.n, np.bool_)
            for cells, (first, last) in choice:
                rows &= (cells.codes >= first) & (cells.codes < last)
            found.append((choice, rows, float(full[place][0][at])))
            left = left & ~rows
            if not (left & in_x).any() or not (left & ~in_x).any():
                break
        return found

    def _scores(self, in_x: Bools, left: Bools) -> list[tuple[Floats, Bools, Floats]]:
        """Return evidence, whether y has more, and sizes, of all candidates among some rows."""
        labels = np.stack([in_x & left, left], axis=1).astype(np.float32)
        table = self.cell_counts(labels)
        n_x, n = int((in_x & left).sum()), int(left.sum())
        found = []
        for group in self.groups:
            counts = group.counts(table).astype(np.float64)
            x, size = counts[:, 0], counts[:, 1]
            score = likelihood_ratio(x, size, n_x, n) - group.penalty
            found.append((score, x * n < n_x * size, size))
        return found


def likelihood_ratio(x: Any, size: Any, n_x: int, n: int) -> Any:
    """Return the log likelihood ratio of x of `size` rows in a region, against n_x of n.

    It is the sum of observed log(observed / expected) over the four cells.
    """
    p = n_x / n
    total = 0.0
    for number, expected in (
        (x, p * size),
        (size - x, (1 - p) * size),
        (n_x - x, p * (n - size)),
        (n - n_x - size + x, (1 - p) * (n - size)),
    ):
        safe = np.maximum(expected, 1e-300)
        total = total + number * np.log(
            np.maximum(number, 1e-300) / safe,
            where=number > 0,
            out=np.zeros(np.broadcast(number, safe).shape),
        )
    return total


def coarse_cells(columns: int, n: int, labellings: int) -> int:
    """Return how many cells a number has in conjunctions; 0 for none at all."""
    pairs = columns * (columns - 1) // 2
    if pairs * n * labellings > MOST_WORK:
        return 0
    for k in COARSE:
        if pairs * (k * (k + 1) / 2) ** 2 <= MOST_BOXES:
            return k
    return 0
