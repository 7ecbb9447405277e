"""Labellings of units in strata, with as many units of each sample in a stratum as in the data.

Labels are codes, the numbers of samples: (units, lanes) bytes, one column for each labelling. The
units of a stratum get them sample by sample: first those of sample 0 among all its units, then
those of sample 1 among the others, and so on. Each step is a labelling by 0 and 1, as in draws.py.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from typing import NamedTuple

import numpy as np

from crossedge.numerics.labellings.draws import draw_labels, list_labels
from crossedge.runtime.types import Ints, Labels

Choose = Callable[[int, int, int], Labels]  # step, units, units to choose -> 0 and 1


class Group(NamedTuple):
    """Strata with the same number of units of each sample."""

    places: Ints  # (units of a stratum, strata): indices of units
    counts: tuple[int, ...]  # the number of units of each sample


def groups_of(stratum: Ints, counts: Ints) -> list[Group]:
    """Return the strata, grouped, for the stratum of each unit and the (strata, samples) counts."""
    order, sizes = np.argsort(stratum, kind="stable"), counts.sum(1)
    starts = np.cumsum(sizes) - sizes
    alike, group = np.unique(counts, axis=0, return_inverse=True)
    group = group.reshape(-1)
    return [
        Group(
            order[starts[group == place] + np.arange(row.sum())[:, None]],
            tuple(int(count) for count in row),
        )
        for place, row in enumerate(alike)
    ]


def labellings_up_to(counts: Ints, limit: int) -> int | None:
    """Return the number of labellings, or None if there are more than the limit."""
    total = 1
    for row in counts.tolist():
        left = 0
        for count in row:  # multinomial coefficients, as products of binomials
            for chosen in range(1, min(count, left) + 1):
                # the binomials C(m, chosen) of m = left + count only grow up to here
                if comb(left + count, chosen) * total > limit:
                    return None
            left += count
            total *= comb(left, count)
    return total


def draw_codes(key: int, block: int, groups: list[Group], units: int, lanes: int) -> Labels:
    """Draw (units, lanes) codes, uniform and independent; lanes must be a multiple of 64."""
    codes = np.empty((units, lanes), np.uint8)
    for place, (places, counts) in enumerate(groups):
        stream = (block * len(groups) + place) * len(counts)
        wide = places.shape[1] * lanes

        def draw(step: int, m: int, k: int, stream: int = stream, wide: int = wide) -> Labels:
            if 2 * k > m:  # draw the fewer ones
                return 1 - draw_labels(key, stream + step, m, m - k, wide)
            return draw_labels(key, stream + step, m, k, wide)

        found = _codes(counts, wide, draw)
        codes[places] = found.reshape(*places.shape, lanes)
    return codes


def list_codes(ranks: Ints, groups: list[Group], units: int) -> Labels:
    """Return the (units, lanes) codes of these ranks among all labellings."""
    codes = np.empty((units, len(ranks)), np.uint8)
    rest = ranks
    for places, counts in groups:
        for of_stratum in places.T:

            def choose(_: int, m: int, k: int) -> Labels:
                nonlocal rest
                rest, rank = np.divmod(rest, comb(m, k))
                return list_labels(rank, m, k)

            codes[of_stratum] = _codes(counts, len(ranks), choose)
    return codes


def _codes(counts: tuple[int, ...], lanes: int, choose: Choose) -> Labels:
    """Return (units, lanes) codes with so many units of each sample."""
    present = [sample for sample, count in enumerate(counts) if count]
    left, last = sum(counts), present[-1]
    codes = np.full((left, lanes), last, np.uint8)
    still: Ints | None = None  # the units without a code, (left, lanes); None for all
    for sample in present[:-1]:
        k = counts[sample]
        chosen = choose(sample, left, k)
        if still is None and len(present) == 2:
            codes[chosen == 1] = sample
            break
        order = np.argsort(chosen, axis=0, kind="stable")  # those not chosen come first
        still = order if still is None else np.take_along_axis(still, order, axis=0)
        left -= k
        np.put_along_axis(codes, still[left:], np.uint8(sample), axis=0)
        still = still[:left]
    return codes
