"""Which columns changed most: a description after an alarm, without p-values of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from crossedge.data.columns import printable
from crossedge.data.raw import Raw
from crossedge.monitoring.rows import Rows
from crossedge.runtime.types import Bools, Floats

RARE = 0.01  # how rarely any column may look changed by chance
MOST_COLUMNS = 5  # that are listed


@dataclass(frozen=True)
class ColumnChange:
    """How far one column changed.

    Attributes
    ----------
    name : str
        The name of the column, or its place from 0 on.
    change : float
        The largest difference of two frequencies, from 0 to 1: for numbers and dates the
        Kolmogorov-Smirnov distance, for categories the total variation, and the difference in the
        share of missing values if that is more.
    is_clear : bool
        Whether the change is more than chance explains in any column, in 99 of 100 cases. The place
        of the change was chosen by the same data, so this is a guide and no test.
    words : str
        What changed, in words.
    """

    name: str
    change: float
    is_clear: bool
    words: str


def changed_columns(rows: Rows, is_new: Bools) -> tuple[ColumnChange, ...]:
    """Return the columns that changed most between old and new rows, the most changed first."""
    if rows.points is not None:
        table = {
            str(place): Raw("number", column, np.zeros(len(column), np.bool_))
            for place, column in enumerate(rows.points.T)
        }
    else:
        table = rows.table
    if is_new.all() or not is_new.any():
        return ()
    found = [_change(name, raw, is_new, len(table)) for name, raw in table.items()]
    found.sort(key=lambda each: -each.change)
    return tuple(found[:MOST_COLUMNS])


def _change(name: str, raw: Raw, is_new: Bools, count: int) -> ColumnChange:
    old, new = ~is_new & ~raw.missing, is_new & ~raw.missing
    before, after = (float(raw.missing[side].mean()) for side in (~is_new, is_new))
    change, words, levels = 0.0, "no values", 2
    if old.any() and new.any():
        if raw.kind == "text":
            change, words, levels = _categories(raw, old, new)
        else:
            change, words = _numbers(raw, old, new)
    if abs(after - before) > change:
        change, words = abs(after - before), f"missing {before:.0%} -> {after:.0%}"
    # Dvoretzky, Kiefer, Wolfowitz and Massart; for categories a bound over all sets of them
    tail = math.log(2 * count / RARE) + (levels - 2) * math.log(2)
    noise = math.sqrt(tail / 2) * math.sqrt(1 / max(old.sum(), 1) + 1 / max(new.sum(), 1))
    return ColumnChange(name, change, change > noise, words)


def _numbers(raw: Raw, old: Bools, new: Bools) -> tuple[float, str]:
    x, y = (np.sort(raw.values[side].astype(np.float64)) for side in (old, new))
    grid = np.concatenate([x, y])
    gap = np.abs(_share_below(x, grid) - _share_below(y, grid))
    change = float(gap.max())
    if raw.kind == "date":
        days = (np.datetime64(round(float(np.median(side))), "D") for side in (x, y))
        return change, "median {} -> {}".format(*days)
    if raw.kind == "boolean":
        return change, f"true {x.mean():.0%} -> {y.mean():.0%}"
    middle = f"median {np.median(x):.4g} -> {np.median(y):.4g}"
    spans = [float(np.subtract(*np.quantile(side, [0.75, 0.25]))) for side in (x, y)]
    return change, f"{middle}, interquartile range {spans[0]:.4g} -> {spans[1]:.4g}"


def _share_below(ordered: Floats, grid: Floats) -> Floats:
    share: Floats = np.searchsorted(ordered, grid, side="right") / len(ordered)
    return share


def _categories(raw: Raw, old: Bools, new: Bools) -> tuple[float, str, int]:
    levels = len(raw.texts)
    x, y = (np.bincount(raw.values[side], minlength=levels) / side.sum() for side in (old, new))
    place = int(np.argmax(np.abs(x - y)))
    words = f"{printable(raw.texts[place][:40])} {x[place]:.0%} -> {y[place]:.0%}"
    return float(np.abs(x - y).sum()) / 2, words, levels
