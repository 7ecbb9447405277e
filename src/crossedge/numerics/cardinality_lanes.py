"""The sweeps of cardinality.py for a few neighbours: several rows side by side, as vector lanes.

With k this small, one row has too little to do for vector instructions; LANES rows have enough. The
sweep from the end is not kept: it meets the one from the front item by item. No slices in these
loops: each would count references.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crossedge.compiled import compiled, compiled_fused

Floats = npt.NDArray[np.float64]

LANES = 32


@compiled_fused
def choose_few(
    first: int, last: int, distances: Floats, decay: Floats, kth: Floats, k: int, out: Floats
) -> None:
    """P(chosen) for rows first ... last - 1 of (n, n) distances."""
    n = len(distances)
    leave, take, found = np.empty((n, LANES)), np.empty((n, LANES)), np.empty((n, LANES))
    before = np.zeros((n + 1, k + 1, LANES))
    before[0, 0] = 1.0
    after = np.zeros((k + 1, LANES))
    chosen, scale = np.empty(LANES), np.empty(LANES)
    for row in range(first, last, LANES):
        _odds(row, last, distances, decay, kth, leave, take)
        for i in range(n):
            for lane in range(LANES):
                before[i + 1, 0, lane] = leave[i, lane] * before[i, 0, lane]
            for j in range(1, k + 1):
                for lane in range(LANES):
                    stay, rise = before[i, j, lane], before[i, j - 1, lane]
                    before[i + 1, j, lane] = leave[i, lane] * stay + take[i, lane] * rise
        after[:] = 0.0
        after[0] = 1.0
        for lane in range(LANES):
            scale[lane] = 1.0 / before[n, k, lane]
        for i in range(n - 1, -1, -1):
            for lane in range(LANES):
                chosen[lane] = before[i, 0, lane] * after[k - 1, lane]
            for j in range(1, k):
                for lane in range(LANES):
                    chosen[lane] += before[i, j, lane] * after[k - 1 - j, lane]
            for lane in range(LANES):
                found[i, lane] = take[i, lane] * chosen[lane] * scale[lane]
            for j in range(k, 0, -1):
                for lane in range(LANES):
                    stay, rise = after[j, lane], after[j - 1, lane]
                    after[j, lane] = leave[i, lane] * stay + take[i, lane] * rise
            for lane in range(LANES):
                after[0, lane] *= leave[i, lane]
        for lane in range(min(LANES, last - row)):
            for i in range(n):
                out[row + lane, i] = found[i, lane]


@compiled_fused
def choose_few_tangent(
    first: int,
    last: int,
    distances: Floats,
    decay: Floats,
    kth: Floats,
    k: int,
    direction: Floats,
    out: Floats,
) -> None:
    """The change of P(chosen) along a (last - first, n) direction of the log-odds.

    With x, y the weights of choosing k - 1, or k, among the others: the formula of cardinality.py
    times x y, which may underflow only where the change is no number worth having.
    """
    n = len(distances)
    leave, take, found = np.empty((n, LANES)), np.empty((n, LANES)), np.empty((n, LANES))
    along = np.empty((n, LANES))
    before, d_before = np.zeros((n + 1, k + 1, LANES)), np.zeros((n + 1, k + 1, LANES))
    before[0, 0] = 1.0
    after, d_after = np.zeros((k + 1, LANES)), np.zeros((k + 1, LANES))
    x, dx, y, dy = np.empty(LANES), np.empty(LANES), np.empty(LANES), np.empty(LANES)
    scale = np.empty(LANES)
    for row in range(first, last, LANES):
        _odds(row, last, distances, decay, kth, leave, take)
        for lane in range(LANES):
            at = min(row + lane, last - 1) - first
            for i in range(n):
                along[i, lane] = direction[at, i]
        for i in range(n):
            for lane in range(LANES):
                before[i + 1, 0, lane] = leave[i, lane] * before[i, 0, lane]
            for j in range(1, k + 1):
                for lane in range(LANES):
                    stay, rise = before[i, j, lane], before[i, j - 1, lane]
                    before[i + 1, j, lane] = leave[i, lane] * stay + take[i, lane] * rise
                for lane in range(LANES):
                    rise = d_before[i, j - 1, lane] + along[i, lane] * before[i, j - 1, lane]
                    stay = d_before[i, j, lane]
                    d_before[i + 1, j, lane] = leave[i, lane] * stay + take[i, lane] * rise
        after[:] = 0.0
        after[0] = 1.0
        d_after[:] = 0.0
        for lane in range(LANES):
            scale[lane] = 1.0 / before[n, k, lane]
        for i in range(n - 1, -1, -1):
            for lane in range(LANES):
                y[lane] = before[i, k, lane] * after[0, lane]
                dy[lane] = d_before[i, k, lane] * after[0, lane]
                x[lane] = 0.0
                dx[lane] = 0.0
            for j in range(k):
                for lane in range(LANES):
                    u, v = before[i, j, lane], after[k - 1 - j, lane]
                    x[lane] += u * v
                    dx[lane] += d_before[i, j, lane] * v + u * d_after[k - 1 - j, lane]
                for lane in range(LANES):
                    u, v = before[i, j, lane], after[k - j, lane]
                    y[lane] += u * v
                    dy[lane] += d_before[i, j, lane] * v + u * d_after[k - j, lane]
            for lane in range(LANES):
                change = along[i, lane] * x[lane] * y[lane] + (
                    dx[lane] * y[lane] - dy[lane] * x[lane]
                )
                odds = leave[i, lane] * take[i, lane]
                found[i, lane] = odds * change * scale[lane] * scale[lane]
            for j in range(k, 0, -1):
                for lane in range(LANES):
                    rise = d_after[j - 1, lane] + along[i, lane] * after[j - 1, lane]
                    stay = d_after[j, lane]
                    d_after[j, lane] = leave[i, lane] * stay + take[i, lane] * rise
                for lane in range(LANES):
                    stay, rise = after[j, lane], after[j - 1, lane]
                    after[j, lane] = leave[i, lane] * stay + take[i, lane] * rise
            for lane in range(LANES):
                after[0, lane] *= leave[i, lane]
        for lane in range(min(LANES, last - row)):
            for i in range(n):
                out[row + lane, i] = found[i, lane]


@compiled
def _odds(
    row: int,
    last: int,
    distances: Floats,
    decay: Floats,
    kth: Floats,
    leave: Floats,
    take: Floats,
) -> None:
    """(n, LANES) weights of leaving and taking item i, for rows from `row` on."""
    n = len(distances)
    for lane in range(LANES):
        at = min(row + lane, last - 1)  # past the end, the last row again
        for i in range(n):
            near = distances[at, i] <= kth[at]
            leave[i, lane] = decay[at, i] if near else 1.0
            take[i, lane] = 1.0 if near else decay[at, i]
        leave[at, lane], take[at, lane] = 1.0, 0.0  # never its own neighbour
