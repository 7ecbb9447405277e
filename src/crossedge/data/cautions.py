"""What a careful statistician would say of two tables before any test, one line each.

These looks change nothing: neither the points nor the p-value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import NormalDist

import numpy as np

from crossedge.runtime.interrupts import checkpoint
from crossedge.runtime.types import Bools, Floats, Ints

FEW_ROWS = 20  # a sample with fewer rows is called tiny
MOST_OF_DISTANCE = 0.9  # the share of the squared distance from which one column drowns the rest
RARE = 1e-6  # how rarely independent rows may look sorted, over all columns
ROWS_LOOKED_AT = 20_000  # of each sample, for the order of the rows
COLUMNS_LOOKED_AT = 64  # likewise
DEPENDENT = "make the p-value too small"  # how a line on rows that depend on each other ends
TIMES_AS_OFTEN = 10  # shared rows must be more frequent than repeated ones by this factor


def look_out(
    points: Floats, in_x: Bools, names: Sequence[str], unscaled: bool = False
) -> tuple[str, ...]:
    """Return what the user should know of two samples of points, in one line each.

    `names` has for each coordinate the name of the column that it comes from.
    """
    found = [*_tiny(in_x), *_shared_rows(points, in_x), *_order(points, in_x, names)]
    hint = "scale the columns, as with scale='robust' (--scale robust)"
    return (*found, *(_drowned(points, names, hint) if unscaled else ()))


def long_tails(points: Floats, names: Sequence[str]) -> tuple[str, ...]:
    """Return a line if one column drowns the others though it was scaled, by a few far values.

    A scaled column has spread 1, and categories that are rare have less. So the others count for
    one such column at least.
    """
    hint = "its far values outweigh the rest: take ranks, as with scale='rank' (--scale rank)"
    return tuple(_drowned(points, names, hint, least=1.0))


def _tiny(in_x: Bools) -> Iterator[str]:
    n_x, n_y = int(in_x.sum()), int((~in_x).sum())
    if min(n_x, n_y) < FEW_ROWS:
        yield (
            f"the samples have {n_x:,} and {n_y:,} rows: with fewer than {FEW_ROWS} "
            "only large differences can be found"
        )


def _drowned(points: Floats, names: Sequence[str], hint: str, least: float = 0.0) -> Iterator[str]:
    """Name a column that makes nearly all of the distance: shares are those of the variance.

    The others together are taken to have at least the variance `least`.
    """
    top = np.abs(points).max() or 1.0
    shares: dict[str, float] = {}
    for name, coordinate in zip(names, points.T, strict=True):
        shares[name] = shares.get(name, 0.0) + float((coordinate / top).var())
    most = max(shares, key=lambda name: shares[name])
    own = shares.pop(most)
    total = own + max(sum(shares.values()), least / top / top)
    if shares and own > MOST_OF_DISTANCE * total > 0:
        yield (
            f"column {most!r} makes {100 * own / total:.4g}% of the squared distance and drowns "
            f"the others: {hint}"
        )


def _shared_rows(points: Floats, in_x: Bools) -> Iterator[str]:
    """Count rows that stand in both samples, if they are no coincidence of discrete values."""
    shared = _count_shared(points, in_x)
    if shared:
        yield (
            f"{shared:,} of {int(in_x.sum()):,} rows of the first sample stand in the second, "
            "too: samples that share rows look more alike than their distributions are"
        )


def have_same_rows(points: Floats, in_x: Bools) -> bool:
    """Return whether both samples have the same rows, in any order, and not by coincidence."""
    n_x = int(in_x.sum())
    return 2 * n_x == len(in_x) and _count_shared(points, in_x) == n_x


def _count_shared(points: Floats, in_x: Bools) -> int:
    """Return how many rows of x are rows of y; 0 if it may be by chance."""
    keys = _keys(points)
    distinct, place = np.unique(keys, return_inverse=True)
    of_x = np.bincount(place[in_x], minlength=len(distinct))
    of_y = np.bincount(place[~in_x], minlength=len(distinct))
    shared = int(np.minimum(of_x, of_y).sum())
    repeated = int((of_x[of_x > 1] - 1).sum() + (of_y[of_y > 1] - 1).sum())
    # by chance, rows repeat within samples about as often as between them
    return shared if shared > TIMES_AS_OFTEN * repeated else 0


def _keys(points: Floats) -> Ints:
    """Return a number for each row, equal for equal rows and, but for 2^-64, only for these."""
    multipliers = np.random.default_rng(0).integers(1, 2**63, points.shape[1], np.uint64) | 1
    keys = np.zeros(len(points), np.uint64)
    for column, multiplier in zip(points.T, multipliers, strict=True):
        checkpoint()
        bits = np.ascontiguousarray(column + 0.0).view(np.uint64)  # -0.0 is 0.0
        keys = (keys ^ (bits * multiplier)) * np.uint64(0x9E3779B97F4A7C15)
        keys ^= keys >> np.uint64(29)
    return keys.view(np.int64)


def _order(points: Floats, in_x: Bools, names: Sequence[str]) -> Iterator[str]:
    """Name a column whose ranks are correlated from row to row beyond chance.

    Over all orders of n rows the lag-one correlation of ranks has mean -1 / (n - 1) and a variance
    of about 1 / n, and is nearly normal.
    """
    columns = min(points.shape[1], COLUMNS_LOOKED_AT)
    limit = -NormalDist().inv_cdf(RARE / (2 * columns))
    for sample, rows in (("first", in_x), ("second", ~in_x)):
        own = points[rows][:ROWS_LOOKED_AT, :columns]
        n = len(own)
        if n < FEW_ROWS:
            continue
        for name, column in zip(names, own.T, strict=False):
            checkpoint()
            _, place, counts = np.unique(column, return_inverse=True, return_counts=True)
            ranks = (np.cumsum(counts) - (counts + 1) / 2)[place]
            ranks -= ranks.mean()
            total = ranks @ ranks
            if total > 0 and (ranks[1:] @ ranks[:-1] / total + 1 / (n - 1)) * n**0.5 > limit:
                yield (
                    f"the rows of the {sample} sample are sorted or clustered by {name!r}: "
                    "sorting is harmless, but rows that depend on each other, as in time series, "
                    f"{DEPENDENT}"
                )
                break
