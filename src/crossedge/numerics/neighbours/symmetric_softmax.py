"""The smoothed nearest neighbour for symmetric distances that are few temperatures long.

Then e_ij = e^(-d_ij/temperature) serves both rows i and j: W_ij = e_ij (1 / total_i + 1 / total_j).
No matrix is read by columns, which takes most of the time in row_softmax.py.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from crossedge.numerics.exponential import LOG2_E, half_to
from crossedge.numerics.extent import MAGNITUDE_BITS, is_odd
from crossedge.numerics.mirror import SIDE
from crossedge.numerics.neighbours.row_softmax import place_of
from crossedge.runtime.compiled import compiled, compiled_fused, compiled_sum
from crossedge.runtime.team import in_team
from crossedge.runtime.types import Bools, Floats, Ints

LARGEST_EXPONENT = 64.0  # of 2^(-d per): the rounding of d/temperature stays below 1e-14
LARGEST_DISTANCE = 1e280  # sums of distances stay finite
LOWEST_TEMPERATURE = 1e-200  # 2^LARGEST_EXPONENT / temperature stays finite
SYMMETRY_TOLERANCE = 2.0**-46  # of the largest distance, per point: rounding in matrix products


@lru_cache(maxsize=16)
def probes(n: int) -> Floats:
    """Return random u and v: u'Dv = v'Du if D is symmetric, and hardly ever if not (Freivalds)."""
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
    """Write W to `out`, e^(-d/temperature) to `decay`, its row sums and each nearest point.

    Return False where the distances are not as above, or not valid.
    """
    if temperature < LOWEST_TEMPERATURE:
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
    if abs(across) > SYMMETRY_TOLERANCE * n * most.max():
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
    stop: Bools,
    total: Floats,
    nearest: Ints,
    most: Floats,
    along: Floats,
    decay: Floats,
) -> None:
    """Write rows first ... last - 1, their products with the probes, and their largest distance."""
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
        if strange or most[i] > LARGEST_DISTANCE or most[i] * per > LARGEST_EXPONENT:
            stop[0] = True
        elif before[3] <= after[3]:
            nearest[i] = place_of(before[3], bits[:i])
        else:
            nearest[i] = i + 1 + place_of(after[3], bits[i + 1 :])


@compiled_sum
def _decay(
    row: Floats, per: float, u: Floats, v: Floats, out: Floats
) -> tuple[float, float, float, np.int64, np.int64]:
    """Write 2^(-d per); return its sum, d'u, d'v, and the smallest and largest bits of d."""
    total, along_u, along_v, least, largest = 0.0, 0.0, 0.0, MAGNITUDE_BITS, np.int64(0)
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
