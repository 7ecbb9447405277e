"""Star-mesh elimination where conductances e^(-d/temperature) leave the range of doubles.

Let b_ij be the longest edge on the path from i to j in the minimum spanning tree. Conductances and
resistances matter only at the scale of b: R_ij is e^(b_ij/t) up to a factor of n^2, and an edge
with d_ij far above b_ij has no influence on any resistance. So every pair has a scale of its own,

    w_ij = W_ij e^(-c_ij/t),   R_ij = r_ij e^(c_ij/t),

where c_ij is b_ij rounded down to the start of a band; bands are a few hundred temperatures wide.
W and r stay in range, and terms that underflow are negligible. Like b, c is an ultrametric: the two
largest of c_ij, c_jk, c_ik are equal. Hence in every step of the recursion (star_mesh.py) one of
two ways to write a term has only factors e^(-(c - c')/t) <= 1, the table `decay` below.

At temperature 0 every distinct length of a tree edge is a band. W is 1 on edges of minimum spanning
trees and 0 elsewhere, and the result is the average over all minimum spanning trees.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crossedge.numerics.tolerances import TIE
from crossedge.runtime.compiled import compiled, inlined
from crossedge.runtime.types import Floats, Ints

BAND_WIDTH = 300.0  # temperatures: e^300 squared is still a double


class Bands(NamedTuple):
    """Scales for pairs of points, in the order of arrival of Prim's algorithm."""

    of_pair: Ints  # (n, n): the band of b_ij
    start: Floats  # (bands,): c, ascending
    decay: Floats  # (bands, bands): e^(-|c - c'|/t)


class BandedMesh(NamedTuple):
    """The result of elimination, as in star_mesh.py, with every pair at its own scale."""

    weight: Floats  # (n, n): row k, left of the diagonal, is W_k when k was taken out
    total: Floats  # (n,): s_k at the scale of `nearest`
    nearest: Ints  # (n,): the lowest band of vertex k with an earlier vertex
    resistance: Floats  # (n, n): r


def band_starts(key: Floats, temperature: float) -> Floats:
    """Return the ascending starts of bands, from (n,) tree edge lengths; the first is unused."""
    starts: list[float] = []
    for length in np.sort(key[1:]).tolist():
        near = starts and length <= max(starts[-1] * TIE, starts[-1] + BAND_WIDTH * temperature)
        if not near:
            starts.append(length)
    return np.array(starts)


def bands_of(key: Floats, temperature: float) -> Bands:
    """Return the bands, from the lengths of tree edges in order of arrival."""
    start = band_starts(key, temperature)
    gaps = np.abs(start[:, None] - start)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        decay = np.where(gaps > 0, np.exp(-gaps / temperature), 1.0)
    rank = np.searchsorted(start, key, side="right") - 1
    return Bands(_largest_on_the_way(rank), start, decay)


@compiled
def _largest_on_the_way(rank: Ints) -> Ints:
    """Return the (n, n) largest rank on the tree path between two arrivals."""
    n = len(rank)
    largest = np.zeros((n, n), np.int64)
    for a in range(n):
        most = 0
        for b in range(a + 1, n):
            most = max(most, rank[b])
            largest[a, b] = most
            largest[b, a] = most
    return largest


def solve_banded(conductance: Floats, bands: Bands) -> BandedMesh:
    """Compute effective resistances for (n, n) conductances W, which are overwritten."""
    return BandedMesh(conductance, *_solve_banded(conductance, bands.of_pair, bands.decay))


@compiled
def _solve_banded(weight: Floats, band: Ints, decay: Floats) -> tuple[Floats, Ints, Floats]:
    n = len(weight)
    total = np.ones(n)
    nearest = np.zeros(n, np.int64)
    p = np.empty(n)
    for k in range(n - 1, 0, -1):
        row, far = weight[k], band[k]
        nearest[k] = far[:k].min()
        s = 0.0
        for j in range(k):
            p[j] = row[j] * decay[nearest[k], far[j]]
            s += p[j]
        total[k] = s
        for j in range(k):
            p[j] /= s
        for i in range(k):
            target, scale = weight[i], band[i]
            for j in range(i):
                if far[j] >= scale[j]:
                    target[j] += p[i] * row[j] * decay[scale[j], far[j]]
                else:  # then k, i is at the scale of i, j
                    target[j] += p[j] * row[i]
    resistance = np.zeros((n, n))
    v = np.empty(n)
    for k in range(1, n):
        row, far, here = weight[k], band[k], decay[nearest[k]]
        for j in range(k):
            v[j] = 0.0
        for i in range(k):
            g, r, scale = row[i] / total[k], resistance[i], band[i]
            for j in range(k):
                v[j] += g * r[j] * _decay_on_return(decay, here, far[i], far[j], scale[j])
        inner = 0.0
        for j in range(k):
            inner += row[j] / total[k] * v[j]
        for j in range(k):
            resistance[k, j] = v[j] + (1.0 / total[k] - 0.5 * inner) * here[far[j]]
            resistance[j, k] = resistance[k, j]
    return total, nearest, resistance


@inlined
def _decay_on_return(decay: Floats, here: Floats, to_i: int, to_j: int, between: int) -> Any:
    """Return the scale of p_ki R_ij relative to R_kj, for bands from k and between i and j."""
    if between > to_j:  # then k, i is in the band of i, j, and their scales cancel
        return here[to_j]
    return here[to_i] * decay[between, to_j]


@compiled
def tangent_of_banded(mesh: BandedMesh, d_conductance: Floats, bands: Bands) -> Floats:
    """Return dr for (n, n) changes of the conductances W, which are overwritten."""
    weight, total, nearest, resistance = mesh
    d_weight, band, decay = d_conductance, bands.of_pair, bands.decay
    n = len(weight)
    d_total = np.zeros(n)
    p = np.empty(n)
    dp = np.empty(n)
    for k in range(n - 1, 0, -1):
        row, d_row, far, here = weight[k], d_weight[k], band[k], decay[nearest[k]]
        ds = 0.0
        for j in range(k):
            ds += d_row[j] * here[far[j]]
        d_total[k] = ds
        for j in range(k):
            p[j] = row[j] * here[far[j]] / total[k]
            dp[j] = (d_row[j] * here[far[j]] - p[j] * ds) / total[k]
        for i in range(k):
            target, scale = d_weight[i], band[i]
            for j in range(i):
                if far[j] >= scale[j]:
                    target[j] += (p[i] * d_row[j] + dp[i] * row[j]) * decay[scale[j], far[j]]
                else:
                    target[j] += p[j] * d_row[i] + dp[j] * row[i]
    d_resistance = np.zeros((n, n))
    v = np.empty(n)
    dv = np.empty(n)
    for k in range(1, n):
        row, d_row, far, here = weight[k], d_weight[k], band[k], decay[nearest[k]]
        for j in range(k):
            v[j] = 0.0
            dv[j] = 0.0
        for i in range(k):
            g = row[i] / total[k]
            dg = (d_row[i] - g * d_total[k]) / total[k]
            r, dr, scale = resistance[i], d_resistance[i], band[i]
            for j in range(k):
                factor = _decay_on_return(decay, here, far[i], far[j], scale[j])
                v[j] += g * r[j] * factor
                dv[j] += (g * dr[j] + dg * r[j]) * factor
        d_inner = 0.0
        for j in range(k):
            g = row[j] / total[k]
            d_inner += g * dv[j] + (d_row[j] - g * d_total[k]) / total[k] * v[j]
        for j in range(k):
            d_own = -d_total[k] / total[k] / total[k] - 0.5 * d_inner
            d_resistance[k, j] = dv[j] + d_own * here[far[j]]
            d_resistance[j, k] = d_resistance[k, j]
    return d_resistance
