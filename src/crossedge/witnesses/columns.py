"""Columns: one test for each, which sees location, spread, shape and missing values.

All tests are quadratic forms in the counts of x in the cells of the column. A number has three:
Anderson and Darling's on the ranks, the same on the distances of the ranks from the middle, which
sees spread, and the number of missing values. A category has Pearson's chi-square. Each becomes
evidence: minus the logarithm of its tail under a gamma law with the moments of its limit. The
evidence of a column is the largest of these, and only labellings turn it into a p-value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from crossedge.data.days import days
from crossedge.data.raw import Raw
from crossedge.numerics.tails import log_gamma_tail
from crossedge.runtime.types import Bools, Floats
from crossedge.witnesses.cells import Cells, shown_as

SKEWED = 0.25  # standard deviations between mean and median: beyond, medians are named


@dataclass(frozen=True)
class QuadraticForm:
    """A sum of squares of combinations of counts, and the moments of its limiting law."""

    about: str  # "location", "spread", "missing" or "category"
    map: Floats  # (squares, cells)
    mean: float
    std: float
    skewness: float

    def evidence(self, centred: Any) -> Floats:
        """Return the evidence of (cells, lanes) counts less their means."""
        values = ((self.map @ centred) ** 2).sum(0)
        found: Floats = -log_gamma_tail((values - self.mean) / self.std, np.float64(self.skewness))
        return found


def forms_of(cells: Cells, n_x: int) -> list[QuadraticForm]:
    """Return the tests of one column."""
    sizes = np.bincount(cells.codes, minlength=cells.count).astype(np.float64)
    n = sizes.sum()
    factor = n_x * (n - n_x) / (n * (n - 1))
    covariance = factor * (np.diag(sizes) - np.outer(sizes, sizes) / n)
    if not cells.ordered:
        maps = [("category", np.diag(1 / np.sqrt(factor * sizes)))]
    else:
        k = cells.ordered
        middle = np.abs((np.cumsum(sizes[:k]) - sizes[:k] / 2) / sizes[:k].sum() - 0.5)
        maps = [("location", _anderson_darling(np.arange(k), sizes, cells.count))] * (k > 1)
        if k > 2:
            folded = np.argsort(middle, kind="stable")
            maps.append(("spread", _anderson_darling(folded, sizes, cells.count)))
        if cells.names:
            maps.append(("missing", np.eye(cells.count)[k:]))
    found = []
    for about, each in maps:
        spectrum = np.linalg.eigvalsh(each @ covariance @ each.T).clip(0)
        mean, std = float(spectrum.sum()), math.sqrt(2 * float((spectrum**2).sum()))
        if std > 0:
            skewness = 8 * float((spectrum**3).sum()) / std**3
            found.append(QuadraticForm(about, each, mean, std, skewness))
    return found


def _anderson_darling(order: Any, sizes: Floats, count: int) -> Floats:
    """Return the map to weighted gaps of distribution functions over cells in this order."""
    own = sizes[order]
    share = np.cumsum(own)[:-1] / own.sum()
    weight = (own[:-1] + own[1:]) / 2 / (share * (1 - share))
    found = np.zeros((len(order) - 1, count))
    found[:, order] = np.tril(np.ones((len(order) - 1, len(order))))
    # relative to the rows that are not missing: their number varies from labelling to labelling
    found[:, order] -= share[:, None]
    weighted: Floats = np.sqrt(weight)[:, None] * found
    return weighted


class ColumnTests:
    """The tests of all columns, on many labellings."""

    def __init__(self, columns: list[Cells], n_x: int) -> None:
        self.forms = [forms_of(cells, n_x) for cells in columns]
        self.sizes = [np.bincount(cells.codes, minlength=cells.count) for cells in columns]
        self.share = n_x / len(columns[0].codes) if columns else 0.0

    def parts(self, place: int, counts: Any) -> Floats:
        """Return the (tests, lanes) evidence of one column, of (cells, lanes) counts of x."""
        centred = counts - self.share * self.sizes[place][:, None]
        if not self.forms[place]:  # a constant column
            return np.zeros((1, centred.shape[1]))
        return np.stack([form.evidence(centred) for form in self.forms[place]])

    def evidence(self, counts: list[Any]) -> Floats:
        """Return the (columns, lanes) evidence, corrected for the number of tests of a column."""
        return np.stack(
            [
                self.parts(place, own).max(0) - math.log(max(len(self.forms[place]), 1))
                for place, own in enumerate(counts)
            ]
        )

    def strongest(self, place: int, counts: Any) -> str:
        """Return what the test with the most evidence is about."""
        if not self.forms[place]:
            return "location"
        return self.forms[place][int(self.parts(place, counts)[:, 0].argmax())].about


def change_in_words(cells: Cells, raw: Raw, about: str, in_x: Bools) -> str:
    """Return what differs most between x and y in a column."""
    if about in ("missing", "category"):
        return _shares(cells, in_x)
    groups = [raw.values[side & ~raw.missing] for side in (in_x, ~in_x)]
    if not all(len(group) for group in groups):
        return "missing in all of one sample"
    known = np.concatenate(groups)
    if cells.kind == "date":
        show = shown_as(cells.kind, known)
        old, new = (float(np.median(group)) for group in groups)
        if show is days:
            old, new = round(old), round(new)
        return f"median {show(old)} -> {show(new)}"
    # a power of two of the order of the largest: no square leaves the range of doubles
    unit = math.ldexp(0.5, int(np.frexp(np.abs(known).max())[1]))
    known, groups = known / unit, [group / unit for group in groups]
    skewed = abs(known.mean() - np.median(known)) > SKEWED * known.std()
    measures: dict[tuple[str, bool], tuple[str, Callable[[Any], Any]]] = {
        ("location", False): ("mean", np.mean),
        ("location", True): ("median", np.median),
        ("spread", False): ("spread", np.std),
        ("spread", True): ("interquartile range", _quartiles),
    }
    name, measure = measures[about, bool(skewed)]
    old, new = (unit * float(measure(group)) for group in groups)
    return f"{name} {short3(old)} -> {short3(new)}"


def _quartiles(values: Floats) -> float:
    low, high = np.quantile(values, [0.25, 0.75])
    return float(high - low)


def _shares(cells: Cells, in_x: Bools) -> str:
    """Return the shares of the category that departs most from chance."""
    x, y = (np.bincount(cells.codes[side], minlength=cells.count) for side in (in_x, ~in_x))
    sizes, p = x + y, in_x.mean()
    gap = np.abs(x - p * sizes) / np.sqrt(np.maximum(sizes * (1 - sizes / sizes.sum()), 1e-9))
    gap[: cells.ordered] = -1  # of a number, only whether it is missing
    place = int(gap.argmax())
    name = cells.names[place - cells.ordered]
    return f"{name} {x[place] / x.sum():.0%} -> {y[place] / y.sum():.0%}"


def short3(value: float) -> str:
    """Return a number with three digits, or all of those before the point."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
