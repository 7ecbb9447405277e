"""From a pooled column to coordinates.

All coordinates are on one footing: a scaled number has spread 1, so two of them differ by about
sqrt(2), and two different categories are sqrt(2) apart.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from crossedge.data.amounts import check_numbers
from crossedge.data.columns import LEFT_OUT, SHOWN_NAMES, Column, brief, shown
from crossedge.data.days import are_spans, days
from crossedge.data.identifiers import identifier_of
from crossedge.data.raw import Raw
from crossedge.runtime.types import Floats

QUARTILES_OF_A_NORMAL = 1.3489795003921634  # interquartile range over standard deviation
APART = math.sqrt(2)  # root mean square difference of two numbers of spread 1
MOST_CATEGORIES = 50  # more distinct texts than these must be a small share of the rows
MOST_SHARE = 0.05  # of the rows, for distinct texts beyond MOST_CATEGORIES
MOST_COORDINATES = 1000  # one column makes at most this many


class Made(NamedTuple):
    column: Column
    coordinates: list[Floats]


def coordinates_of(raw: Raw, name: str, scale: str, wanted: bool) -> Made:
    """Return a pooled column as coordinates, if it is wanted even where it is an identifier."""
    missing = int(raw.missing.sum())
    if raw.kind == "empty":
        return Made(Column(name, "empty", f"{LEFT_OUT}no values", (), missing), [])
    if raw.kind == "text" and not raw.is_category:
        check_numbers(sorted(raw.texts), name)
    if not wanted and (identifier := identifier_of(raw, name)):
        return Made(identifier, [])
    if raw.kind == "text" or (raw.kind == "boolean" and missing):
        return _categories(raw, name)
    if raw.kind == "boolean":
        return _two_values(raw, name)
    return _numbers(raw, name, scale)


def _two_values(raw: Raw, name: str) -> Made:
    """Return one coordinate, in which the two values are as far apart as two categories are."""
    if raw.values.all() or not raw.values.any():
        return Made(Column(name, raw.kind, f"{LEFT_OUT}constant, {bool(raw.values[0])}"), [])
    made = Column(name, raw.kind, "two values", (f"{name}=True",))
    return Made(made, [raw.values * APART])


def _categories(raw: Raw, name: str) -> Made:
    """Return a coordinate for each category, of which missing values are one."""
    kind = "category"
    if raw.kind == "boolean":
        found = np.unique(raw.values[~raw.missing])
        texts = tuple(str(bool(value)) for value in found)
        kind, raw = "boolean", raw._replace(values=raw.values == found[-1], texts=texts)
        raw = raw._replace(values=raw.values.astype(np.int64) * (len(texts) - 1))
    missing = int(raw.missing.sum())
    present = len(raw.missing) - missing
    levels = sorted(raw.texts)
    if (
        kind == "category"
        and len(levels) > MOST_CATEGORIES
        and (len(levels) > MOST_SHARE * present or len(levels) > MOST_COORDINATES)
    ):
        raise ValueError(
            f"column {name!r} is text with {len(levels):,} distinct values in {present:,} "
            f"rows, such as {shown(levels[0])}: drop it, or group its values into "
            "categories (dates are read as 2024-05-31, and 5/31/2024 if days tell the order)"
        )
    order = {level: place for place, level in enumerate(levels)}
    table = np.array([*(order[text] for text in raw.texts), len(levels)])
    codes = table[np.where(raw.missing, -1, raw.values)]
    outputs = [f"{name}={level}" for level in levels] + [f"{name} missing"] * bool(missing)
    if len(outputs) == 1:
        return Made(Column(name, kind, f"{LEFT_OUT}constant, {shown(levels[0])}"), [])
    listed = ", ".join(map(brief, levels[:SHOWN_NAMES]))
    count = f"{len(levels)} categor{'y' if len(levels) == 1 else 'ies'}"
    treatment = f"{count}: {listed}{', ...' if len(levels) > SHOWN_NAMES else ''}"
    if missing:
        treatment += f"; {missing:,} missing, a category of their own"
    made = Column(name, kind, treatment, tuple(outputs), missing)
    return Made(made, [(codes == place).astype(np.float64) for place in range(len(outputs))])


def _numbers(raw: Raw, name: str, scale: str) -> Made:
    """Return scaled numbers, and an indicator if some are missing, which get the median."""
    present, missing = ~raw.missing, int(raw.missing.sum())
    known = raw.values[present]
    # the largest is brought to the order of 1, so that no square leaves the range of doubles
    exponent = int(np.frexp(np.abs(known).max())[1])
    known = np.ldexp(known, -exponent)
    varies = bool(known.min() < known.max())
    centre = float(np.median(known))
    spread, done = 1.0, "as it is"
    if not varies:
        if not missing:
            return Made(Column(name, raw.kind, f"{LEFT_OUT}constant, {raw.values[0]:.6g}"), [])
        scaled, centre, spread = np.zeros_like(known), 0.0, 1.0
        done = "constant, only whether it is missing counts"
    elif scale == "none":
        scaled, spread = known, float(known.std())
    elif scale == "rank":
        scaled, centre, done = _ranks(known), 0.0, "ranks"
    else:
        if scale == "std":
            centre, spread = float(known.mean()), float(known.std())
            by = "standard deviation"
        else:
            low, high = np.quantile(known, [0.25, 0.75])
            spread, by = float(high - low) / QUARTILES_OF_A_NORMAL, "interquartile range / 1.349"
            if spread == 0:
                spread, by = float(known.std()), "standard deviation"
        spread = spread or float(np.abs(known - centre).max())  # a std that underflows
        scaled = (known - centre) / spread
        with np.errstate(over="ignore"):
            at, over = np.ldexp([centre, spread], exponent)
        is_date = raw.kind == "date" and not are_spans(raw.values[present])
        middle = days(float(at)) if is_date else f"{at:.6g}"
        done = f"centred at {middle}, divided by {over:.6g} ({by})"
    values = np.empty(len(raw.values))
    values[present] = scaled
    raw_units = scale == "none" and varies
    values[~present] = centre if raw_units else 0.0
    coordinates: list[Floats] = [values] if varies else []
    outputs = [name] if varies else []
    if missing:
        done += f"; {missing:,} missing, marked" + (" and filled by the median" if varies else "")
        apart = APART * spread if raw_units else APART
        coordinates.append(np.where(raw.missing, np.float64(apart), 0.0))
        outputs.append(f"{name} missing")
    if raw_units:
        coordinates = [np.ldexp(coordinate, exponent) for coordinate in coordinates]
    if raw.kind == "date" or raw.unit:
        done = f"in {raw.unit or 'days'}, {done}"
    return Made(Column(name, raw.kind, done, tuple(outputs), missing), coordinates)


def _ranks(values: Floats) -> Floats:
    """Return ranks from -sqrt(3) to sqrt(3), of spread 1; equal values have their mean rank."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    middle = ends - (counts + 1) / 2 + 0.5
    ranks: Floats = (middle / len(values) - 0.5)[place] * math.sqrt(12)
    return ranks
