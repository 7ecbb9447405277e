"""The function `witness`: check the arguments, draw labellings once, and ask all parts."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from numbers import Real
from typing import Any, SupportsIndex

import numpy as np

from crossedge.adaptive import adaptive_test
from crossedge.data.columns import check_sample_names, check_scale, short_name
from crossedge.data.distances import Distance, Distances, point_distances, pooled_distances
from crossedge.data.raw import Raw
from crossedge.data.samples import Samples, random_rows
from crossedge.null.labellings import Labellings
from crossedge.runtime.calls import run_usual
from crossedge.runtime.counts import count_of
from crossedge.runtime.interrupts import checkpoint
from crossedge.runtime.randomness import Rng, check_rng, random_key
from crossedge.runtime.types import Floats, Ints
from crossedge.weights import EnergyKernel, Weights
from crossedge.weights.choice import weights_of_points
from crossedge.witnesses.calibration import (
    combined_pvalue,
    false_discovery,
    pool_pvalues,
    step_down,
)
from crossedge.witnesses.cells import cut
from crossedge.witnesses.columns import ColumnTests, change_in_words
from crossedge.witnesses.locality import local_points
from crossedge.witnesses.points import Neighbourhoods, PointScan, default_weights
from crossedge.witnesses.regions import RegionScan, coarse_cells
from crossedge.witnesses.result import ColumnWitness, PointWitness, Region, Witness

MOST_POINTS = 20_000  # the default of max_points
FINE = 32  # cells of a number
LANES = 256  # labellings at a time
LANDMARKS = 64  # of the energy test of the whole, and of the whole without a column


def witness(
    x: Any,
    y: Any,
    weights: Weights | Sequence[Weights] | None = None,
    *,
    level: float = 0.05,
    n_resamples: SupportsIndex = 999,
    distance: Distance = 2.0,
    scale: str | None = None,
    rng: Rng = None,
    max_points: SupportsIndex | None = None,
    names: tuple[str, str] = ("x", "y"),
) -> Witness:
    """Find where two samples differ: at which points, in which columns, in which regions.

    Parameters
    ----------
    x, y : array, tensor, list or frame
        The samples, as in `two_sample`. With distance="precomputed" there are no columns, and
        only points are found.
    weights : Weights or sequence of Weights, optional
        What the neighbourhood of a point is; several make neighbourhoods of several sizes. By
        default nearest neighbours, 8, 32 and 128 of them as far as samples and time allow.
    level : float, optional
        The level of the global test, of the family-wise error rate of columns and of regions, and
        of the false discovery rate of neighbourhoods of points.
    n_resamples : int, optional
        The number of random labellings. No p-value is below 1 / (1 + n_resamples).
    distance : float, callable or "precomputed", optional
        As in `two_sample`.
    scale : {"robust", "std", "rank", "none"}, optional
        As in `two_sample`. It matters to points only: columns and regions depend on ranks.
    rng : int, numpy Generator or torch Generator, optional
        The source of randomness.
    max_points : int, optional
        Take at most so many rows, random ones of both samples in the same proportion. By default
        20,000.
    names : pair of str, optional
        What to call the samples.

    Returns
    -------
    Witness
        Points, columns and regions, with p-values. Printing it shows a summary.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If the samples are invalid, as for `two_sample`, or an argument is out of range.

    Warns
    -----
    UserWarning
        For frames, as in `two_sample`.

    See Also
    --------
    two_sample : Whether the samples differ at all.

    Notes
    -----
    All parts use the same labellings of the pooled sample. The global p-value is that of the
    smallest p-value of the parts, so if the distributions are equal nothing is reported with
    probability 1 - level. Within the parts, columns are adjusted by step-down maxima [1]_, regions
    by the maximum over all candidates, and points by the false discovery rate [2]_, which is exact
    for independent points and approximate for neighbourhoods that overlap. What is controlled is
    that the share of y in a point's neighbourhood differs, not that it differs at the point. Points
    whose excess only reaches in from elsewhere are taken out, as far as their smaller
    neighbourhoods tell; near the border of a region that changed some stay. docs/witness.md has
    how many.

    References
    ----------
    .. [1] P. Westfall and S. Young, "Resampling-based multiple testing", 1993.
    .. [2] Y. Benjamini and Y. Hochberg, "Controlling the false discovery rate", Journal of the
       Royal Statistical Society, 1995.

    Examples
    --------
    >>> import numpy as np
    >>> import crossedge as ce
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(300, 3)), rng.normal(size=(300, 3)) + [0, 1, 0]
    >>> found = ce.witness(x, y, rng=0)
    >>> found.columns[0].name, found.columns[0].description
    ('column 1', 'mean 0.0187 -> 1.13')
    """
    several = weights_of_points(weights)
    if isinstance(level, bool) or not isinstance(level, Real) or not 0 < float(level) < 1:
        raise ValueError(f"level={level!r} is not between 0 and 1: give one such as 0.05")
    labellings = count_of(n_resamples, "n_resamples")
    named = check_sample_names(names)
    most = MOST_POINTS if max_points is None else count_of(max_points, "max_points", 2)
    check_rng(rng)
    check_scale(scale)
    if isinstance(distance, str) and max_points is not None:
        raise ValueError("max_points does not go with distance='precomputed': leave it out")

    def run() -> tuple[Witness, tuple[str, ...]]:
        key = int(random_key(rng))
        taken: list[tuple[Ints, int]] = []

        def thin(samples: Samples) -> Samples:
            rows = random_rows(samples, most, np.random.default_rng(key))
            taken.append((rows, len(samples.in_x)))
            return samples.rows(rows)

        samples, distances = pooled_distances(x, y, distance, None, scale, thin)
        found = locate(samples, distances, several, float(level), labellings, key, distance, named)
        rows, total = taken[0] if taken else (found.rows, len(found.rows))
        return replace(found, rows=rows, n_given=total), samples.cautions

    result, cautions = run_usual(run)
    for caution in cautions:
        warnings.warn(caution, UserWarning, stacklevel=2)
    return result


def locate(
    samples: Samples,
    distances: Distances,
    several: list[Weights] | None,
    level: float,
    n_resamples: int,
    key: int,
    distance: Distance,
    names: tuple[str, str] = ("x", "y"),
) -> Witness:
    """Return where samples differ that were checked and pooled."""
    n, in_x, n_x = len(samples.in_x), samples.in_x, samples.n_x
    labellings = Labellings(n, n_x, n_resamples, key)
    families = several or default_weights(n, labellings.count)
    scan = PointScan([Neighbourhoods(each, distances, in_x) for each in families], in_x)
    table = [] if isinstance(distance, str) else columns_of(samples)
    fine = [cut(name, raw, kind, FINE) for name, kind, raw, _ in table]
    k = coarse_cells(len(table), n, labellings.count)
    coarse = [cut(name, raw, kind, k, tails=True) for name, kind, raw, _ in table] if k else []
    tests = ColumnTests(fine, n_x)
    regions = RegionScan(fine, coarse, n_x) if fine else None
    height = [int(cells.count) for cells in fine]
    starts = np.concatenate([[0], np.cumsum(height)]).astype(int)

    points: list[Floats] = []
    columns: list[Floats] = []
    boxes: list[Floats] = []
    first: list[Any] = []
    for labels in _chunks(in_x, labellings):
        checkpoint()
        points.append(scan.add(1 - labels))
        if regions is not None:
            counts = regions.cell_counts(labels)
            own = [counts[a:b] for a, b in pairwise(starts)]
            first = first or [each[:, :1].copy() for each in own]
            columns.append(tests.evidence(own))
            boxes.append(regions.largest(counts))

    light: list[Weights] = several or [*families, EnergyKernel(rank=LANDMARKS)]
    whole = adaptive_test(light, None, samples, distances, n_resamples, key)
    assert whole.null_distribution is not None
    values = {
        "whole": np.append(whole.statistic, whole.null_distribution),
        "points": np.concatenate(points),
    }
    if regions is not None:
        evidence = np.concatenate(columns, axis=1)
        values |= {"columns": evidence.max(0), "regions": np.concatenate(boxes)}
    stacked = np.stack(list(values.values()))
    pvalue = combined_pvalue(stacked)
    parts = dict(zip(values, pool_pvalues(stacked)[:, 0].tolist(), strict=True))

    own_p = scan.pvalues()
    adjusted = np.maximum(false_discovery(own_p), pvalue)
    found_columns: list[ColumnWitness] = []
    found_regions: list[Region] = []
    if regions is not None:
        alone, family = pool_pvalues(evidence)[:, 0], np.maximum(step_down(evidence), pvalue)
        without = _leaving_out(samples, [width for *_, width in table], n_resamples, key, distance)
        for place in np.argsort(-evidence[:, 0], kind="stable"):
            name, kind, raw, _ = table[place]
            about = tests.strongest(place, first[place])
            found_columns.append(
                ColumnWitness(
                    name=name,
                    kind=kind,
                    pvalue=float(alone[place]),
                    adjusted=float(family[place]),
                    significant=bool(family[place] <= level),
                    pvalue_without=without[place][0],
                    share=without[place][1],
                    description=change_in_words(fine[place], raw, about, in_x),
                )
            )
        if pvalue <= level:
            found_regions = _regions(regions, values["regions"], samples, level, pvalue, names)
    return Witness(
        pvalue=pvalue,
        parts=parts,
        level=level,
        points=PointWitness(
            excess=scan.excess,
            pvalues=own_p,
            adjusted=adjusted,
            significant=local_points(scan.several, in_x, adjusted <= level),
        ),
        columns=tuple(found_columns),
        regions=tuple(found_regions),
        n_x=n_x,
        n_y=samples.n_y,
        rows=np.arange(n),
        n_resamples=labellings.count,
        conjunctions=bool(coarse) and len(coarse) > 1,
        coordinates=None if isinstance(distance, str) else samples.values,
        in_x=in_x,
        names=names,
    )


def _chunks(in_x: Any, labellings: Labellings) -> Iterator[Any]:
    """Yield labels of x, (n, lanes) floats: the observed ones, then all labellings."""
    yield in_x[:, None].astype(np.float32)
    left = labellings.count
    for block in range(labellings.blocks):
        labels = labellings.labels(block)[:, :left]
        left -= labels.shape[1]
        for at in range(0, labels.shape[1], LANES):
            yield np.ascontiguousarray(labels[:, at : at + LANES], dtype=np.float32)


def columns_of(samples: Samples) -> list[tuple[str, str, Raw, int]]:
    """Return name, kind, values and number of coordinates of every column that is in use."""
    if not samples.made:
        none = np.zeros(len(samples.in_x), np.bool_)
        return [
            (f"column {place}", "number", Raw("number", values, none), 1)
            for place, values in enumerate(samples.values.T)
        ]
    return [
        (f"column {made.name}" if made.name.isdigit() else made.name, made.kind, raw, len(outputs))
        for made, raw in zip(samples.made, samples.raws, strict=True)
        if (outputs := made.outputs)
    ]


def _leaving_out(
    samples: Samples, widths: list[int], n_resamples: int, key: int, distance: Distance
) -> list[tuple[float, float]]:
    """Return for each column the p-value of the others together, and the share it carries."""
    if callable(distance):
        return [(math.nan, math.nan)] * len(widths)
    kernel: list[Weights] = [EnergyKernel(rank=LANDMARKS)]

    def test(points: Floats) -> tuple[float, float]:
        checkpoint()
        between = point_distances(points, float(distance))
        found = adaptive_test(kernel, None, samples, between, n_resamples, key)
        return found.pvalue, found.zscore

    _, all_z = test(samples.values)
    ends = np.cumsum(widths)
    answers = []
    for end, width in zip(ends.tolist(), widths, strict=True):
        if len(widths) == 1:
            answers.append((1.0, 1.0))
            continue
        p, z = test(np.delete(samples.values, np.s_[end - width : end], axis=1))
        answers.append((p, 1 - z / all_z if all_z > 0 else math.nan))
    return answers


def _regions(
    scan: RegionScan,
    maxima: Floats,
    samples: Samples,
    level: float,
    pvalue: float,
    names: tuple[str, str],
) -> list[Region]:
    """Return the significant regions in words."""
    # the smallest score whose adjusted p-value is still at most the level
    allowed = math.floor(level * len(maxima) + 1e-9)
    if allowed < 1:
        return []
    critical = float(np.sort(maxima)[-allowed - 1]) if allowed < len(maxima) else -math.inf
    found = []
    for choice, rows, score in scan.find(samples.in_x, critical):
        n_x, n_y = int((rows & samples.in_x).sum()), int((rows & ~samples.in_x).sum())
        share_x, share_y = n_x / samples.n_x, n_y / samples.n_y
        ratio = share_y / share_x if n_x else math.inf
        p = float((maxima >= score - 1e-9 * (1 + abs(score))).mean())
        where = " and ".join(cells.words(*some) for cells, some in choice)
        times = _times(ratio, short_name(names[1]))
        found.append(
            Region(
                description=f"{where}: {times}",
                share_x=share_x,
                share_y=share_y,
                n_x=n_x,
                n_y=n_y,
                ratio=ratio,
                pvalue=max(p, pvalue),
                where=where,
                times=times,
            )
        )
    return found


def _times(ratio: float, name: str) -> str:
    if ratio == 0:
        return f"none in {name}"
    if not math.isfinite(ratio):
        return f"only in {name}"
    return f"{ratio_in_words(ratio)} times as many in {name}"


def ratio_in_words(ratio: float) -> str:
    """Return a ratio with two digits, in full."""
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2g}"
