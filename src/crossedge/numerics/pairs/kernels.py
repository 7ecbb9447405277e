"""Kernels of two samples, W_ij = f(d_ij), a mean over bandwidths, with their slopes.

With the gradient G in W, the gradient in point i is the sum over j of G_ij f'(d_ij) / d_ij (a_i -
a_j). So the ratio f'(d) / d is stored in place of the distances.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from crossedge.numerics.exponential import decay_of
from crossedge.numerics.mirror import team_for
from crossedge.numerics.pairs.points import distances_from
from crossedge.numerics.pairs.sums import sum_of
from crossedge.runtime.compiled import compiled, compiled_fused
from crossedge.runtime.team import in_team
from crossedge.runtime.types import Floats

ROWS = 16  # in a part, the unit of work of a thread
PROFILES = ("gaussian", "laplace", "inverse multiquadric", "energy")  # what the loops know
GAUSSIAN, LAPLACE, MULTIQUADRIC, ENERGY = range(4)
LARGEST_RATIO = 1e150  # of a distance to a bandwidth: its square is finite, the kernel has vanished


class KernelParts(NamedTuple):
    """W of a kernel, f'(d) / d, and sums over the rows of W."""

    W: Floats  # (n, n)
    ratio: Floats  # (n, n): 0 between equal points
    degree: Floats  # (n,)
    own: Floats  # (n,): the part of the degree inside the sample of the point


def kernel_parts(
    given: Floats, are_points: bool, n_x: int, profile: str, bandwidths: Sequence[float]
) -> KernelParts:
    """Return W and its slope, from (d, n) points or from their (n, n) distances."""
    n, kind, per = given.shape[1], PROFILES.index(profile), 1.0 / np.asarray(bandwidths)
    W, ratio, (degree, own) = np.empty((n, n)), np.empty((n, n)), np.empty((2, n))
    _weigh_all(team_for(n), given, are_points, n_x, kind, per, W, ratio, degree, own)
    return KernelParts(W, ratio, degree, own)


def spread_of_kernel(ratio: Floats, gradient: Floats, first: int, last: int) -> Floats:
    """Return the gradient in the distances over the distances, for the rows first ... last - 1.

    `gradient` is that in W as if all of its entries were independent.
    """
    out = np.empty((last - first, len(ratio)))
    _spread_all(team_for(len(out)), first, gradient, ratio, out)
    return out


@compiled
def _weigh_all(
    threads: int,
    given: Floats,
    are_points: bool,
    n_x: int,
    kind: int,
    per: Floats,
    W: Floats,
    ratio: Floats,
    degree: Floats,
    own: Floats,
) -> None:
    rest = given, are_points, n_x, kind, per, W, ratio, degree, own
    in_team(threads, _weigh, len(W), ROWS, rest)


@compiled
def _weigh(
    first: int,
    last: int,
    given: Floats,
    are_points: bool,
    n_x: int,
    kind: int,
    per: Floats,
    W: Floats,
    ratio: Floats,
    degree: Floats,
    own: Floats,
) -> None:
    buffer = np.empty(len(W))
    for i in range(first, last):
        row, weight, slope = buffer, W[i], ratio[i]
        if are_points:
            distances_from(given, i, row)
        else:
            row = given[i]
        weight[:], slope[:] = 0.0, 0.0
        for level in range(len(per)):
            if kind == GAUSSIAN:
                _gaussian(row, per[level], weight, slope)
            elif kind == LAPLACE:
                _laplace(row, per[level], weight, slope)
            elif kind == MULTIQUADRIC:
                _multiquadric(row, per[level], weight, slope)
            else:
                _energy(row, weight, slope)
        if len(per) > 1:
            for j in range(len(weight)):
                weight[j] /= len(per)
                slope[j] /= len(per)
        weight[i] = slope[i] = 0.0
        in_x, in_y = sum_of(weight[:n_x]), sum_of(weight[n_x:])
        degree[i] = in_x + in_y
        own[i] = in_x if i < n_x else in_y


@compiled_fused
def _gaussian(row: Floats, per: float, weight: Floats, slope: Floats) -> None:
    for j in range(len(row)):
        u = min(row[j] * per, LARGEST_RATIO)
        value = decay_of(u * u / 2.0)
        weight[j] += value
        slope[j] -= value * per * per if row[j] > 0.0 else 0.0


@compiled_fused
def _laplace(row: Floats, per: float, weight: Floats, slope: Floats) -> None:
    for j in range(len(row)):
        value = decay_of(row[j] * per)
        weight[j] += value
        slope[j] -= value * per / row[j] if row[j] > 0.0 else 0.0


@compiled_fused
def _multiquadric(row: Floats, per: float, weight: Floats, slope: Floats) -> None:
    for j in range(len(row)):
        u = min(row[j] * per, LARGEST_RATIO)
        value = 1.0 / np.sqrt(1.0 + u * u)
        weight[j] += value
        slope[j] -= value * value * value * per * per if row[j] > 0.0 else 0.0


@compiled_fused
def _energy(row: Floats, weight: Floats, slope: Floats) -> None:
    for j in range(len(row)):
        weight[j] -= row[j]
        slope[j] -= 1.0 / row[j] if row[j] > 0.0 else 0.0


@compiled
def _spread_all(threads: int, start: int, G: Floats, ratio: Floats, out: Floats) -> None:
    in_team(threads, _spread, len(out), ROWS, (start, G, ratio, out))


@compiled
def _spread(first: int, last: int, start: int, G: Floats, ratio: Floats, out: Floats) -> None:
    for row in range(first, last):
        gradient, slope, target = G[start + row], ratio[start + row], out[row]
        for j in range(len(target)):
            target[j] = 2.0 * gradient[j] * slope[j]
