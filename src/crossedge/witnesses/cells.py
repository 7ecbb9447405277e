"""Columns cut into cells, by the pooled sample alone, and sets of cells in words.

Numbers and dates are cut near pooled quantiles, at the roundest number there. Every category is a
cell, and so are missing values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from crossedge.data.columns import printable
from crossedge.data.days import are_spans, days
from crossedge.data.raw import Raw
from crossedge.runtime.types import Floats, Ints

LEEWAY = 0.2  # how far a cut may lie from its quantile, in cells
LONGEST = 30  # characters of a category that are shown


@dataclass(frozen=True)
class Cells:
    """The cells of one column."""

    name: str
    kind: str
    codes: Ints  # (n,): the cell of each row
    names: tuple[str, ...]  # of the cells that have no order: categories, "missing"
    lows: tuple[str, ...] = ()  # the ends of the ordered cells, which come first, in words
    highs: tuple[str, ...] = ()

    @property
    def ordered(self) -> int:
        """The number of cells that have an order."""
        return len(self.lows)

    @property
    def count(self) -> int:
        """The number of cells."""
        return self.ordered + len(self.names)

    def sets(self) -> list[tuple[int, int]]:
        """Return the candidates: all intervals but the whole column, and every other cell."""
        k = self.ordered
        intervals = [(i, j) for i in range(k) for j in range(i + 1, k + 1)]
        if len(intervals) and not self.names:
            intervals.remove((0, k))
        return intervals + [(i, i + 1) for i in range(k, self.count)]

    def indicator(self, sets: list[tuple[int, int]]) -> Floats:
        """Return (sets, cells) with 1 for each cell in a set."""
        cells = np.arange(self.count)
        inside = [(cells >= i) & (cells < j) for i, j in sets]
        return np.array(inside, np.float64).reshape(len(sets), self.count)

    def words(self, first: int, last: int) -> str:
        """Return the cells first, ..., last - 1 in words."""
        name = printable(self.name)
        if first >= self.ordered:
            return f"{name} {self.names[first - self.ordered]}"
        low, high = self.lows[first], self.highs[last - 1]
        if first == 0 and last == self.ordered:
            return f"{name} not missing"
        if low == high:
            return f"{name} {low}"
        if first == 0:
            return f"{name} up to {high}"
        return f"{name} {low} and above" if last == self.ordered else f"{name} {low} to {high}"


def cut(name: str, raw: Raw, kind: str, most: int, tails: bool = False) -> Cells:
    """Return the cells of a column, of which at most `most` are ordered.

    They hold equally many rows, or fewer at both ends than in the middle if `tails`.
    """
    if raw.kind not in ("number", "date"):
        return _categories(name, raw, kind)
    known = raw.values[~raw.missing]
    distinct = np.unique(known)
    whole = kind == "number" and bool((distinct == np.rint(distinct)).all())
    edges = distinct[1:] if len(distinct) <= most else _edges(known, most, tails)
    places = np.searchsorted(edges, known, side="right")
    used, places = np.unique(places, return_inverse=True)
    codes = np.full(len(raw.values), len(used), np.int64)
    codes[~raw.missing] = places
    least = [float(known[places == place].min()) for place in range(len(used))]
    top = [float(known[places == place].max()) for place in range(len(used))]
    if len(distinct) > most and not whole:  # between cuts, not between values
        starts = [float(edges[place - 1]) for place in used[1:]]
        least, top = [least[0], *starts], [*starts, top[-1]]
    show = shown_as(kind, distinct)
    missing = ("missing",) if raw.missing.any() else ()
    return Cells(name, kind, codes, missing, tuple(map(show, least)), tuple(map(show, top)))


def _edges(known: Floats, most: int, tails: bool) -> Floats:
    steps = (np.arange(1, most)[:, None] + np.array([-LEEWAY, LEEWAY])) / most
    levels = np.sin(math.pi / 2 * steps) ** 2 if tails else steps
    ranges = np.quantile(known, levels, method="inverted_cdf")
    return np.unique([roundest(low, high) for low, high in ranges.tolist()])


def _categories(name: str, raw: Raw, kind: str) -> Cells:
    if raw.kind == "boolean":
        texts, codes = ["False", "True"], raw.values.astype(np.int64)
    else:
        texts, codes = list(raw.texts), raw.values.astype(np.int64)
    order = np.argsort(np.array(texts, dtype=object), kind="stable")
    place = np.empty(len(texts) + 1, np.int64)
    place[order], place[-1] = np.arange(len(texts)), len(texts)
    codes = place[np.where(raw.missing, -1, codes)]
    names = [brief(texts[i]) for i in order] + ["missing"] * bool(raw.missing.any())
    return Cells(name, kind, codes, tuple(names))


def roundest(low: float, high: float) -> float:
    """Return the number from low to high that has the fewest digits."""
    if low <= 0 <= high or low == high:
        return 0.0 if low <= 0 <= high else low
    power = math.floor(math.log10(max(abs(low), abs(high)))) + 1
    for digits in range(18):
        for factor in (10, 5, 2, 1):  # multiples of 5 and of 2 are rounder than others
            unit = factor * 10.0 ** (power - digits - 1)
            found = math.ceil(low / unit) * unit
            if unit > 0 and low <= found <= high:
                return min(max(float(f"{found:.15g}"), low), high)
    return low


def shown_as(kind: str, values: Floats) -> Callable[[float], str]:
    """Return how values of this kind are written.

    Days that are few are taken for durations or times of the day, not for dates.
    """
    if kind != "date":
        return short
    return (lambda value: f"{value:.3g} days") if are_spans(values) else days


def short(value: float) -> str:
    """Return a number with few digits: whole ones in full up to a billion."""
    if value == round(value) and abs(value) < 1e9:
        return f"{int(value):,}" if abs(value) >= 10_000 else str(int(value))
    return f"{value:,.0f}" if 10_000 <= abs(value) < 1e9 else f"{value:.4g}"


def brief(text: str) -> str:
    """Return a category on one line, shortened."""
    return printable(text if len(text) <= LONGEST else text[: LONGEST - 3] + "...")
