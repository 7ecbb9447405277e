"""One neighbour for every point, where distances are symmetric and not far apart for the cold.

Then e^-d/temperature serves the rows of both its points, W_ij = e_ij (1 / total_i + 1 / total_j),
and no matrix is read across its rows, which takes most of the time elsewhere.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from crossedge.compiled import compiled, compiled_fused, compiled_sum
from crossedge.numerics.exponential import LOG2_E, half_to
from crossedge.numerics.extent import ALL_OTHERS, is_odd
from crossedge.numerics.mirror import SIDE
from crossedge.numerics.row_softmax import Flags, Floats, Ints, place_of
from crossedge.numerics.team import in_team

SPREAD = 64.0  # powers of two: rounding of d/temperature stays below 1e-14
FARTHEST = 1e280  # distances: sums of them are numbers
COLDEST = 1e-200  # 2^SPREAD / temperature is a number
ROUNDING = 2.0**-46  # of the largest distance, for each point: what a product of matrices leaves


@lru_cache(maxsize=16)
def probes(n: int) -> Floats:
    """Two vectors u and v: for symmetric D, u'Dv = v'Du, and for others hardly ever (Freivalds)."""
    return np.random.default_rng(0).uniform(-1.0, 1.0, (2, n))


@compiled
def symmetric_weights(
    threads: int,
    distances: Floats,
    temperature: float,
    probe: Floats,
    total: Floats,
    nearest: Ints,
    decay: Floats,
    out: Floats,
) -> bool:
    """Write W to `out`, e^-d/temperature to `decay`, the sums of its rows and who is nearest.

    Or say no, where distances are not as above, or not distances at all.
    """
    if temperature < COLDEST:
        return False
    n, per, stop = len(total), LOG2_E / temperature, np.zeros(1, np.bool_)
    along, most = np.empty((2, n)), np.empty(n)
    given = distances, per, probe, stop, total, nearest, most, along, decay
    in_team(threads, _decays, n, SIDE, given)
    if stop[0]:
        return False
    across = 0.0
    for i in range(n):
        across += probe[0, i] * along[1, i] - probe[1, i] * along[0, i]
    if abs(across) > ROUNDING * n * most.max():
        return False
    in_team(threads, _weights, n, SIDE, (1.0 / total, decay, out))
    return True


@compiled
def _decays(
    first: int,
    last: int,
    distances: Floats,
    per: float,
    probe: Floats,
    stop: Flags,
    total: Floats,
    nearest: Ints,
    most: Floats,
    along: Floats,
    decay: Floats,
) -> None:
    """Rows first ... last - 1, with their products with the probes and their largest distance."""
    for i in range(first, last):
        if stop[0]:
            return
        row, u, v, target = distances[i], probe[0], probe[1], decay[i]
        before = _decay(row[:i], per, u, v, target)
        after = _decay(row[i + 1 :], per, u[i + 1 :], v[i + 1 :], target[i + 1 :])
        target[i] = 0.0
        total[i] = before[0] + after[0]
        along[0, i], along[1, i] = before[1] + after[1], before[2] + after[2]
        bits, itself = row.view(np.int64), np.float64(row[i]).view(np.int64)
        largest = max(max(before[4], after[4]), itself)
        most[i] = np.int64(largest).view(np.float64)
        strange = is_odd(min(min(before[3], after[3]), itself), largest)
        if strange or most[i] > FARTHEST or most[i] * per > SPREAD:
            stop[0] = True
        elif before[3] <= after[3]:
            nearest[i] = place_of(before[3], bits[:i])
        else:
            nearest[i] = i + 1 + place_of(after[3], bits[i + 1 :])


@compiled_sum
def _decay(
    row: Floats, per: float, u: Floats, v: Floats, out: Floats
) -> tuple[float, float, float, np.int64, np.int64]:
    """2^-d per, its sum, d'u and d'v, and the least and the largest of the bits of d."""
    total, along_u, along_v, least, largest = 0.0, 0.0, 0.0, ALL_OTHERS, np.int64(0)
    for j in range(len(row)):
        bits = np.float64(row[j]).view(np.int64)
        least, largest = min(least, bits), max(largest, bits)
        out[j] = half_to(row[j] * per)
        total += out[j]
        along_u += row[j] * u[j]
        along_v += row[j] * v[j]
    return total, along_u, along_v, least, largest


@compiled_fused
def _weights(first: int, last: int, share: Floats, decay: Floats, out: Floats) -> None:
    for i in range(first, last):
        target, e = out[i], decay[i]
        for j in range(len(target)):
            target[j] = e[j] * (share[i] + share[j])
