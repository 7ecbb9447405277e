"""The figures of a report, as inline SVG.

The first sample is drawn filled or round, the second one outlined or square, so that a reader who
sees no colours can tell them apart.
"""

from __future__ import annotations

import numpy as np

from crossedge.effects import EffectSize
from crossedge.reports.svg import (
    box,
    dots,
    drawing,
    finite,
    line,
    linear,
    number,
    path,
    ticks,
    words,
)
from crossedge.result import TwoSampleResult
from crossedge.runtime.types import Bools, Floats
from crossedge.witnesses.cells import short

WIDTH = 440  # of the figures that fill a column of the page
MOST_BINS = 40
STRONG_EXCESS = 0.35  # of a sample around a point: beyond, its colour is full
FAR = 1.5  # spans of the null beyond which the observed value gets a place of its own
CHUNKS = 24  # of the points of a map, drawn in turn, so that no sample hides the other


def null_figure(result: TwoSampleResult) -> str:
    """Draw the statistic on relabelled samples, and the observed one."""
    values = finite(result.null_distribution) if result.null_distribution is not None else None
    if values is not None and len(values):
        low, high = float(values.min()), float(values.max())
    else:
        low, high = (result.null_mean + side * 4.5 * result.null_std for side in (-1, 1))
    seen, floor = result.statistic, 150.0
    span = (high - low) or abs(high) or 1.0
    if high == low:
        low, high = low - span / 2, high + span / 2
    far = seen > high + FAR * span or seen < low - FAR * span
    left, right = 12.0, WIDTH - 12.0
    if far:
        start, end = (left, 0.62 * WIDTH) if seen > high else (0.38 * WIDTH, right)
        place = linear(low, high, start, end)
        at = 0.86 * WIDTH if seen > high else 0.14 * WIDTH
    else:
        low, high = min(low, seen), max(high, seen)
        margin = 0.02 * (high - low)
        place = linear(low - margin, high + margin, left, right)
        at = place(seen)
    parts = [line(left, floor, right, floor, "axis")]
    parts += _null_bars(values, place, floor) if values is not None and len(values) else []
    if values is None and result.null_std > 0:
        parts.append(_null_law(result, place, floor))
    for tick in ticks(low, high, 4 if far else 5):
        parts.append(line(place(tick), floor, place(tick), floor + 4, "axis"))
        parts.append(words(place(tick), floor + 18, short(tick), "", "middle"))
    parts.append(line(at, 34, at, floor, "seen"))
    side = "start" if at < 0.25 * WIDTH else "end" if at > 0.75 * WIDTH else "middle"
    edge = max(min(at, right), left) + {"start": -6, "end": 6, "middle": 0}[side]
    parts.append(words(edge, 24, f"observed: {result.statistic:.5g}", "strong", side))
    if far:
        gap = (place(high) + at) / 2 if seen > high else (place(low) + at) / 2
        parts.append(box(gap - 4, floor - 6, 8, 12, "paper"))
        for shift in (-4, 4):
            parts.append(line(gap + shift - 3, floor + 6, gap + shift + 3, floor - 6, "axis"))
        parts.append(words(gap, floor + 18, f"{abs(result.zscore):.3g} sd", "faint", "middle"))
    parts.append(words(WIDTH / 2, floor + 40, result.statistic_title, "faint", "middle"))
    story = (
        f"Relabelled samples have {result.null_mean:.5g} on average, with standard deviation "
        f"{result.null_std:.4g}. The samples as given have {result.statistic:.5g}, "
        f"which is {result.zscore:.3g} standard deviations from that average."
    )
    return drawing("null", WIDTH, floor + 48, "The statistic by chance, and observed", story, parts)


def _null_bars(values: Floats, place: object, floor: float) -> list[str]:
    assert callable(place)
    low, high = float(values.min()), float(values.max())
    if (values == np.rint(values)).all():  # counts: every bar has equally many integers
        width = max(1.0, np.ceil((high - low) / MOST_BINS))
        edges = np.arange(low - 0.5, high + width, width)
    else:
        edges = np.linspace(low, high + 1e-12 * (1 + abs(high)), MOST_BINS + 1)
    counts, edges = np.histogram(values, edges)
    tops = floor - 100 * counts / counts.max()
    xs = np.repeat([place(edge) for edge in edges], 2)
    ys = np.concatenate([[floor], np.repeat(tops, 2), [floor]])
    return [path(xs, ys, "chance", closed=True)]


def _null_law(result: TwoSampleResult, place: object, floor: float) -> str:
    from scipy import stats

    assert callable(place)
    skewness = result.null_skewness if result.null != "normal" else 0.0
    grid = np.linspace(-4.5, 4.5, 121)
    density = stats.pearson3(skewness if np.isfinite(skewness) else 0.0).pdf(grid)
    xs = [place(result.null_mean + result.null_std * at) for at in grid]
    ys = floor - 100 * density / max(float(density.max()), 1e-300)
    return path([xs[0], *xs, xs[-1]], [floor, *ys, floor], "chance", closed=True)


def effect_figure(effect: EffectSize) -> str:
    """Draw the divergence with its interval, from equal to no overlap."""
    place = linear(0, 1, 14, WIDTH - 14)
    low, high = (place(end) for end in effect.interval)
    at, level = place(effect.divergence), 46.0
    parts = [line(place(0), level, place(1), level, "axis")]
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(line(place(tick), level + 12, place(tick), level + 17, "axis"))
        side = {0.0: "start", 1.0: "end"}.get(tick, "middle")
        label = {0.0: "0, equal", 1.0: "1, no overlap"}.get(tick, f"{tick:g}")
        shift = {0.0: -10, 1.0: 10}.get(tick, 0)
        parts.append(words(place(tick) + shift, level + 32, label, "faint", side))
    parts.append(box(low, level - 7, max(high - low, 1.5), 14, "interval"))
    parts.append(f'<circle cx="{number(at)}" cy="{level:g}" r="6" class="estimate"/>')
    if effect.tolerance is not None:
        parts.append(line(place(effect.tolerance), 26, place(effect.tolerance), 64, "limit"))
    side = "start" if at < 0.2 * WIDTH else "end" if at > 0.8 * WIDTH else "middle"
    edge = {"start": max(low - 6, 4), "end": min(high + 6, WIDTH - 4), "middle": at}[side]
    parts.append(words(edge, 22, f"divergence {effect.divergence:.3f}", "strong", side))
    story = (
        f"The divergence is {effect.divergence:.3f}; its {effect.confidence:.4g} confidence "
        f"interval goes from {effect.interval[0]:.3f} to {effect.interval[1]:.3f}."
    )
    return drawing("effect", WIDTH, 90, "How large the difference is", story, parts)


def neighbour_figure(effect: EffectSize) -> str:
    """Draw how often the nearest neighbour is of the same sample, beside chance."""
    place = linear(0, 1, 4, WIDTH - 4)
    chance, same = effect.same_neighbour_by_chance, effect.same_neighbour
    parts = [
        box(place(0), 22, place(1) - place(0), 22, "track"),
        box(place(0), 22, place(same) - place(0), 22, "share"),
        line(place(chance), 20, place(chance), 52, "chance-mark"),
        words(place(0), 13, f"{same:.0%} have their nearest neighbour in their own sample"),
        words(
            min(max(place(chance), 50), WIDTH - 50),
            66,
            f"by chance {chance:.0%}",
            "faint",
            "middle",
        ),
    ]
    story = (
        f"{same:.0%} of the rows have their nearest neighbour in their own sample, "
        f"{chance:.0%} would by chance."
    )
    return drawing("neighbours", WIDTH, 74, "How often a nearest neighbour is alike", story, parts)


def maps(
    plane: Floats, in_x: Bools, excess: Floats, significant: Bools, names: tuple[str, str]
) -> tuple[str, str]:
    """Draw the points in a plane twice: by sample, and by which sample is over-represented."""
    height = 300
    spots = []
    for coordinate, (start, end) in zip(
        plane.T, ((10, WIDTH - 10), (height - 10, 10)), strict=True
    ):
        low, high = np.quantile(coordinate, [0.005, 0.995])
        to_page = linear(float(low), float(high), start, end)
        spots.append(np.array([to_page(value) for value in np.clip(coordinate, low, high)]))
    xs, ys = spots
    frame = [box(0.5, 0.5, WIDTH - 1, height - 1, "frame")]
    own = list(frame)
    for some in np.array_split(np.arange(len(xs)), min(CHUNKS, len(xs))):
        for side, kind in ((in_x, "dot x"), (~in_x, "dot y")):
            mine = some[side[some]]
            own.append(dots(xs[mine], ys[mine], kind))
    lean = list(frame)
    for chosen, kind in (
        (~significant, "dot none"),
        (significant & (excess < 0) & (excess >= -STRONG_EXCESS), "dot lean x half"),
        (significant & (excess > 0) & (excess <= STRONG_EXCESS), "dot lean y half"),
        (significant & (excess < -STRONG_EXCESS), "dot lean x"),
        (significant & (excess > STRONG_EXCESS), "dot lean y"),
    ):
        lean.append(dots(xs[chosen], ys[chosen], kind))
    counts = [int((significant & side).sum()) for side in (excess < 0, excess > 0)]
    return (
        drawing(
            "map-own",
            WIDTH,
            height,
            "Both samples",
            f"A map of {len(xs):,} points: {names[0]} as round dots, {names[1]} as squares.",
            own,
        ),
        drawing(
            "map-lean",
            WIDTH,
            height,
            "Where one sample is over-represented",
            f"The same map: {counts[0]:,} points lie where {names[0]} is over-represented, "
            f"{counts[1]:,} where {names[1]} is, and {int((~significant).sum()):,} in neither.",
            lean,
        ),
    )


def principal_plane(points: Floats) -> tuple[Floats, float | None]:
    """Return points in a plane, and what share of their variance it shows.

    Two coordinates are taken as they are, without a share; more are projected on their principal
    components, clipped at their outermost hundredths, so that no outlier chooses the plane.
    """
    scaled = points / (np.abs(points).max() or 1.0)  # no square leaves the range of doubles
    if points.shape[1] == 2:
        return scaled, None
    clipped = np.clip(scaled, *np.quantile(scaled, [0.01, 0.99], axis=0))
    centred = clipped - clipped.mean(0)
    if points.shape[1] == 1:  # heights that only keep points apart
        height = (np.arange(len(points)) * 0.6180339887498949) % 1
        return np.stack([centred[:, 0], height], axis=1), None
    _, spread, axes = np.linalg.svd(centred, full_matrices=False)
    plane = centred @ axes[:2].T
    total = float((spread**2).sum())
    plane = np.pad(plane, ((0, 0), (0, 2 - plane.shape[1])))
    return plane, float((spread[:2] ** 2).sum()) / total if total else 1.0
