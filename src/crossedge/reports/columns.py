"""Small figures of single columns: both samples side by side."""

from __future__ import annotations

import numpy as np

from crossedge.data.raw import Raw
from crossedge.reports.svg import box, drawing, linear, path, words
from crossedge.runtime.types import Bools, Floats
from crossedge.witnesses.cells import brief, cut, shown_as

WIDTH, HEIGHT, FOOT = 220.0, 46.0, 16.0
BINS = 20
LONG_TAIL = 0.3  # of the span without its outermost hundredths: longer tails are cut off
MOST_BARS = 6  # categories
BAR = 17.0  # the height of a category


def column_figure(key: str, name: str, kind: str, raw: Raw, in_x: Bools) -> str:
    """Draw the values of one column in both samples."""
    if raw.kind in ("number", "date"):
        return _histogram(key, name, kind, raw, in_x)
    return _bars(key, name, kind, raw, in_x)


def missing_shares(raw: Raw, in_x: Bools) -> tuple[float, float] | None:
    """Return the shares of missing values in both samples; None if all are there."""
    if not raw.missing.any():
        return None
    return float(raw.missing[in_x].mean()), float(raw.missing[~in_x].mean())


def shows_missing(raw: Raw) -> bool:
    """Return whether the figure of a column has a bar for missing values."""
    return raw.kind not in ("number", "date") and len(raw.texts) < MOST_BARS


def _histogram(key: str, name: str, kind: str, raw: Raw, in_x: Bools) -> str:
    known = ~raw.missing
    values = raw.values[known].astype(np.float64)
    show = shown_as(kind, values)
    top = float(np.abs(values).max()) or 1.0
    edges = _edges(values / top)
    low, high = float(edges[0]), float(edges[-1])
    place = linear(low, high, 2, WIDTH - 2)
    shares = []
    for side in (in_x, ~in_x):
        own = np.clip(raw.values[known & side] / top, low, high)
        counts = np.histogram(own, edges)[0]
        # by the whole sample: what is missing is missing from the picture, too
        shares.append(counts / max(int(side.sum()), 1))
    tallest = max(float(share.max()) for share in shares) or 1.0
    parts = []
    for share, style in zip(shares, "xy", strict=True):
        ys = HEIGHT - (HEIGHT - 4) * share / tallest
        xs = np.repeat([place(edge) for edge in edges], 2)
        outline = np.concatenate([[HEIGHT], np.repeat(ys, 2), [HEIGHT]])
        parts.append(path(xs, outline, f"steps {style}", closed=style == "x"))
    ends = float(values.min()), float(values.max())
    few = len(edges) > 1 and low * top < ends[0]  # bars around whole numbers
    marks = (
        ("" if few or low * top <= ends[0] else "≤ ", ends[0] if few else low * top),
        ("" if few or high * top >= ends[1] else "≥ ", ends[1] if few else high * top),
    )
    for (sign, value), at, anchor in zip(marks, (2.0, WIDTH - 2), ("start", "end"), strict=True):
        parts.append(words(at, HEIGHT + 13, f"{sign}{show(value)}", "faint", anchor))
    story = f"Histograms of both samples from {show(ends[0])} to {show(ends[1])}."
    return drawing(f"mini-{key}", WIDTH, HEIGHT + FOOT, f"Column {brief(name)}", story, parts)


def _edges(values: Floats) -> Floats:
    """Return the edges of bars that both samples share."""
    distinct = np.unique(values)
    if len(distinct) == 1:
        return np.array([distinct[0] - 0.5, distinct[0] + 0.5])
    if len(distinct) <= BINS:  # a bar for each value, if they are about evenly spaced
        steps = np.diff(distinct)
        if steps.max() <= 1.01 * steps.min():
            half = float(steps.min()) / 2
            return np.concatenate([distinct - half, [distinct[-1] + half]])
    low, high = (float(end) for end in np.quantile(values, [0.01, 0.99]))
    tail = LONG_TAIL * (high - low)
    least, most = float(distinct[0]), float(distinct[-1])
    low = least if high == low or low - least <= tail else low
    high = most if high == low or most - high <= tail else high
    if high == low:
        low, high = least, most
    return np.linspace(low, high, BINS + 1)


def _bars(key: str, name: str, kind: str, raw: Raw, in_x: Bools) -> str:
    cells = cut(name, raw, kind, 1)
    x, y = (
        np.bincount(cells.codes[side], minlength=cells.count) / max(int(side.sum()), 1)
        for side in (in_x, ~in_x)
    )
    # the largest categories, and among them those that differ most
    order = np.argsort(-(np.maximum(x, y) + np.abs(x - y)), kind="stable")
    if len(order) <= MOST_BARS:
        order = np.arange(len(order))
    shown, rest = order[:MOST_BARS], order[MOST_BARS:]
    rows = [(cells.names[i], float(x[i]), float(y[i])) for i in shown]
    if len(rest):
        rows.append((f"{len(rest)} others", float(x[rest].sum()), float(y[rest].sum())))
    tallest = max(max(a, b) for _, a, b in rows) or 1.0
    start = 84.0
    to_width = linear(0, tallest, 0, WIDTH - start - 70)
    parts = []
    for row, (label, a, b) in enumerate(rows):
        top = row * BAR
        parts.append(words(start - 5, top + 12, _fit(label), "", "end"))
        parts.append(box(start, top + 2, to_width(a), 6, "bar x"))
        parts.append(box(start, top + 9, to_width(b), 6, "bar y"))
        parts.append(
            words(start + to_width(max(a, b)) + 4, top + 12, f"{a:.0%} → {b:.0%}", "faint")
        )
    story = "Shares in both samples: " + "; ".join(f"{n} {a:.0%} and {b:.0%}" for n, a, b in rows)
    height = len(rows) * BAR
    return drawing(f"mini-{key}", WIDTH, height, f"Column {brief(name)}", story, parts)


def _fit(label: str) -> str:
    return label if len(label) <= 13 else label[:12] + "…"
