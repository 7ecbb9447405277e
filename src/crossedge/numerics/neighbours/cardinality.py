"""Choose exactly k of n items with probability proportional to the product of their odds.

This is the paper's smoothed k-NN model, one row for each point. Let the odds be b_i / a_i, and
alpha_j(i) the weight of choosing j among the first i items, beta_j(i) among items i and later. Then

    alpha_j(i+1) = a_i alpha_j(i) + b_i alpha_{j-1}(i),     and beta likewise from the end,
    P(i chosen)  = b_i sum_j alpha_j(i) beta_{k-1-j}(i+1) / Z,
    P(i left)    = a_i sum_j alpha_j(i) beta_{k-j}(i+1) / Z.

Only positive numbers are added. Distances are measured from the k-th smallest, and the smaller of
a_i and b_i carries the exponential, so neither exceeds 1. For a direction c of the log-odds,

    d P(i chosen) = P(i chosen) P(i left) (c_i + E[C | i chosen] - E[C | i left]),

where C is the sum of c over the other items chosen. The same sweeps on dual numbers compute it,
precisely even where a probability is close to 0 or 1.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crossedge.numerics.exponential import decay_of
from crossedge.numerics.tolerances import COLD, TIE
from crossedge.runtime.compiled import compiled, compiled_fused
from crossedge.runtime.types import Floats

LEAST_POSITIVE = 5e-324  # the smallest subnormal double
LARGEST = float(np.finfo(np.float64).max)  # finite, unlike infinity, so that 0 times it is 0
TILTED = 32  # from this k on odds are tilted: sums of their products could leave the range
CHUNK = 32  # entries of a row that are searched together


@compiled_fused
def decays(
    first: int,
    last: int,
    distances: Floats,
    k: int,
    temperature: float,
    kth: Floats,
    nearest: npt.NDArray[np.int64],
    out: Floats,
) -> None:
    """Write e^(-|d - kth| / temperature) for rows first ... last - 1, and kth, the k-th smallest d.

    The diagonal does not count. For k < TILTED, the columns of the k smallest go to `nearest`.
    Where the temperature is too low to tell rounding from a difference, near-ties count as ties.
    """
    n = len(distances)
    others = np.empty(n - 1)
    smallest = np.empty(k)
    per = min(1.0 / max(temperature, LEAST_POSITIVE), LARGEST)
    for i in range(first, last):
        row, target = distances[i], out[i]
        if k < TILTED:
            _k_smallest(row, i, smallest, nearest[i])
            kth[i] = smallest[k - 1]
        else:
            others[:i] = row[:i]
            others[i:] = row[i + 1 :]
            kth[i] = np.partition(others, k - 1)[k - 1]
        zero = kth[i]
        blur = (TIE - 1) * zero if temperature <= COLD * zero else 0.0
        for j in range(n):
            gap = abs(row[j] - zero)
            gap = gap if gap > blur else 0.0
            target[j] = decay_of(gap * per)


@compiled
def _k_smallest(row: Floats, itself: int, smallest: Floats, places: npt.NDArray[np.int64]) -> None:
    """Write the k smallest entries but the row's own, in order; skip chunks without a small one."""
    k = len(smallest)
    smallest[:] = np.inf
    for first in range(0, len(row), CHUNK):
        part = row[first : first + CHUNK]
        if least_of(part) < smallest[k - 1]:
            for at in range(len(part)):
                if part[at] < smallest[k - 1] and first + at != itself:
                    rank = k - 1
                    while rank > 0 and smallest[rank - 1] > part[at]:
                        smallest[rank] = smallest[rank - 1]
                        places[rank] = places[rank - 1]
                        rank -= 1
                    smallest[rank] = part[at]
                    places[rank] = first + at


@compiled
def least_of(values: Floats) -> float:
    """Return the smallest value, or infinity if there are none."""
    least = np.inf
    for value in values:
        least = min(least, value)
    return least


@compiled
def _tilt(a: Floats, b: Floats, k: int) -> None:
    """Scale all odds so that independent choices take k items on average; the model is the same."""
    low, high = -60.0, 60.0
    for _ in range(30):
        middle = 0.5 * (low + high)
        factor = np.exp(middle)
        expected = 0.0
        for i in range(len(a)):
            expected += factor * b[i] / (a[i] + factor * b[i])
        if expected < k:
            low = middle
        else:
            high = middle
    factor = np.exp(0.5 * (low + high))
    for i in range(len(a)):
        both = a[i] + factor * b[i]
        a[i] /= both
        b[i] *= factor / both


@compiled
def _odds(
    row: int, distances: Floats, decay: Floats, kth: Floats, k: int, a: Floats, b: Floats
) -> None:
    """Write a and b of one row, from decay = exp(-|d - kth| / temperature)."""
    for i in range(len(a)):
        near = distances[row, i] <= kth[row]
        a[i] = decay[row, i] if near else 1.0
        b[i] = 1.0 if near else decay[row, i]
    a[row], b[row] = 1.0, 0.0  # never its own neighbour
    if k >= TILTED:
        _tilt(a, b, k)


@compiled
def _sweep(a: Floats, b: Floats, alpha: Floats, beta: Floats) -> None:
    """Write (n + 1, k + 1) alpha and beta: row i, column j is alpha_j(i)."""
    n, k = len(a), alpha.shape[1] - 1
    alpha[0] = 0.0
    beta[n] = 0.0
    alpha[0, 0] = 1.0
    beta[n, 0] = 1.0
    for i in range(n):
        alpha[i + 1, 0] = a[i] * alpha[i, 0]
        for j in range(1, k + 1):
            alpha[i + 1, j] = a[i] * alpha[i, j] + b[i] * alpha[i, j - 1]
    for i in range(n - 1, -1, -1):
        beta[i, 0] = a[i] * beta[i + 1, 0]
        for j in range(1, k + 1):
            beta[i, j] = a[i] * beta[i + 1, j] + b[i] * beta[i + 1, j - 1]


@compiled
def choose_marginals(
    first: int, last: int, distances: Floats, decay: Floats, kth: Floats, k: int, out: Floats
) -> None:
    """Write P(chosen) for rows first ... last - 1 of (n, n) distances."""
    n = len(distances)
    a, b = np.empty(n), np.empty(n)
    alpha, beta = np.empty((n + 1, k + 1)), np.empty((n + 1, k + 1))
    for row in range(first, last):
        _odds(row, distances, decay, kth, k, a, b)
        _sweep(a, b, alpha, beta)
        for i in range(n):
            chosen = 0.0
            for j in range(k):
                chosen += alpha[i, j] * beta[i + 1, k - 1 - j]
            out[row, i] = b[i] * chosen / alpha[n, k]


@compiled
def choose_tangent(
    first: int,
    last: int,
    distances: Floats,
    decay: Floats,
    kth: Floats,
    k: int,
    direction: Floats,
    out: Floats,
) -> None:
    """Write the change of P(chosen) along a (last - first, n) direction of the log-odds."""
    n = len(distances)
    a, b = np.empty(n), np.empty(n)
    alpha, beta = np.empty((n + 1, k + 1)), np.empty((n + 1, k + 1))
    d_alpha, d_beta = np.zeros((n + 1, k + 1)), np.zeros((n + 1, k + 1))
    for row in range(first, last):
        _odds(row, distances, decay, kth, k, a, b)
        _sweep(a, b, alpha, beta)
        c = direction[row - first]
        for i in range(n):
            for j in range(1, k + 1):
                fresh = d_alpha[i, j - 1] + c[i] * alpha[i, j - 1]
                d_alpha[i + 1, j] = a[i] * d_alpha[i, j] + b[i] * fresh
        for i in range(n - 1, -1, -1):
            for j in range(1, k + 1):
                fresh = d_beta[i + 1, j - 1] + c[i] * beta[i + 1, j - 1]
                d_beta[i, j] = a[i] * d_beta[i + 1, j] + b[i] * fresh
        for i in range(n):
            chosen, d_chosen, left, d_left = 0.0, 0.0, 0.0, 0.0
            for j in range(k):
                before, after = alpha[i, j], beta[i + 1, k - 1 - j]
                chosen += before * after
                d_chosen += d_alpha[i, j] * after + before * d_beta[i + 1, k - 1 - j]
            for j in range(k + 1):
                before, after = alpha[i, j], beta[i + 1, k - j]
                left += before * after
                d_left += d_alpha[i, j] * after + before * d_beta[i + 1, k - j]
            out[row, i] = 0.0
            if chosen > 0.0 and left > 0.0:
                spread = (b[i] * chosen / alpha[n, k]) * (a[i] * left / alpha[n, k])
                out[row, i] = spread * (c[i] + d_chosen / chosen - d_left / left)


@compiled
def draw_neighbours(
    distances: Floats, decay: Floats, kth: Floats, k: int, uniforms: Floats
) -> npt.NDArray[np.int64]:
    """Draw k neighbours of every point, as (n k, 2) edges, from (n, n) uniform numbers."""
    n = len(distances)
    a, b = np.empty(n), np.empty(n)
    alpha, beta = np.empty((n + 1, k + 1)), np.empty((n + 1, k + 1))
    edges = np.empty((n * k, 2), np.int64)
    count = 0
    for row in range(n):
        _odds(row, distances, decay, kth, k, a, b)
        _sweep(a, b, alpha, beta)
        wanted = k
        for i in range(n):
            # conditional on the number still wanted among the items from i on
            take = b[i] * beta[i + 1, wanted - 1] if wanted > 0 else 0.0
            leave = a[i] * beta[i + 1, wanted]
            if uniforms[row, i] * (take + leave) < take:
                edges[count, 0], edges[count, 1] = row, i
                count += 1
                wanted -= 1
    return edges
