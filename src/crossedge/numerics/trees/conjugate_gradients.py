"""Conjugate gradients for Laplacians: several right-hand sides at once, with a sampled factor.

Columns lie side by side in memory, so that one pass over the graph serves all of them. A Laplacian
is applied by differences, (L x)_i = sum_j w_ij (x_i - x_j): the rounding errors of strong edges are
then equal and opposite at both ends, and do not disturb the weak edges between clusters.

The error e of a solution is measured by the energy e' L e, which is the sum over edges of
w (e_i - e_j)^2. It equals r' L^+ r for the residual r. The factor M is close to L, so r' M^-1 r,
which conjugate gradients compute anyway, estimates it.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np

from crossedge.numerics.trees.sampled_star_mesh import Factor
from crossedge.runtime.compiled import compiled_fused
from crossedge.runtime.interrupts import checkpoint
from crossedge.runtime.types import Floats, Ints

COLUMNS = 8  # right-hand sides of a block: a row fills one line of the cache
PATIENCE = 25  # steps in which the error must halve
LEAST_POSITIVE = 2.0**-1022


class Rows(NamedTuple):
    """A symmetric network by rows: the neighbours of each vertex and their conductances."""

    start: Ints  # (n + 1,)
    neighbour: Ints  # (2 edges,)
    conductance: Floats  # (2 edges,)


def rows_of(n: int, i: Ints, j: Ints, conductance: Floats) -> Rows:
    """Return the rows of a network; parallel edges stay apart."""
    ends, others = np.concatenate([i, j]), np.concatenate([j, i])
    order = np.argsort(ends, kind="stable")
    start = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(ends, minlength=n), out=start[1:])
    return Rows(start, others[order], np.concatenate([conductance, conductance])[order])


def solve_block(rows: Rows, factor: Factor, right: Floats, tolerance: float) -> tuple[Floats, int]:
    """Solve L x = b for (n, COLUMNS) columns b, which are overwritten and sum to 0.

    Stop once the energy of the error is below tolerance^2 times that of the solution, or once
    rounding keeps it from falling. Return x, up to a constant for each component, and the number of
    steps.
    """
    network, step = (*rows, *factor), cast(Any, _step)
    x, z, p, q = (np.zeros_like(right) for _ in range(4))
    before, energy = np.zeros(COLUMNS), np.zeros(COLUMNS)
    least, steps, last = np.inf, 0, PATIENCE
    while steps < last:
        checkpoint()
        error = step(*network, x, right, z, p, q, before, energy)
        steps += 1
        worst = float(np.max(error / np.maximum(energy, LEAST_POSITIVE)))
        if worst <= tolerance**2:
            break
        if worst < 0.5 * least:
            least, last = worst, steps + PATIENCE
    return x, steps


@compiled_fused
def _step(
    start: Ints,
    neighbour: Ints,
    conductance: Floats,
    order: Ints,
    first: Ints,
    near: Ints,
    share: Floats,
    total: Floats,
    x: Floats,
    r: Floats,
    z: Floats,
    p: Floats,
    q: Floats,
    before: Floats,
    energy: Floats,
) -> Floats:
    """Advance by one step; return r' M^-1 r from before it, and add to the energy of x.

    `before` has the value of r' M^-1 r from the step before, or 0 in the first step.
    """
    apply_factor(order, first, near, share, total, r, z)
    n = len(r)
    error, curvature, step = np.zeros(COLUMNS), np.zeros(COLUMNS), np.zeros(COLUMNS)
    for i in range(n):
        for c in range(COLUMNS):
            error[c] += r[i, c] * z[i, c]
    for c in range(COLUMNS):
        step[c] = error[c] / before[c] if before[c] > 0.0 else 0.0
    for i in range(n):
        for c in range(COLUMNS):
            p[i, c] = z[i, c] + step[c] * p[i, c]
    for i in range(n):
        sums = q[i]
        for c in range(COLUMNS):
            sums[c] = 0.0
        own = p[i]
        for place in range(start[i], start[i + 1]):
            w, other = conductance[place], p[neighbour[place]]
            for c in range(COLUMNS):
                sums[c] += w * (own[c] - other[c])
        for c in range(COLUMNS):
            curvature[c] += own[c] * sums[c]
    for c in range(COLUMNS):
        step[c] = error[c] / curvature[c] if curvature[c] > 0.0 else 0.0
        energy[c] += step[c] * error[c]
        before[c] = error[c]
    for i in range(n):
        for c in range(COLUMNS):
            x[i, c] += step[c] * p[i, c]
            r[i, c] -= step[c] * q[i, c]
    return error


@compiled_fused
def apply_factor(
    order: Ints, first: Ints, near: Ints, share: Floats, total: Floats, r: Floats, z: Floats
) -> None:
    """Write M^-1 r to z: what flows into a vertex passes on to its neighbours, and back."""
    n = len(order)
    for i in range(n):
        for c in range(COLUMNS):
            z[i, c] = r[i, c]
    for k in range(n):
        own = z[order[k]]
        for place in range(first[k], first[k + 1]):
            other, p = z[near[place]], share[place]
            for c in range(COLUMNS):
                other[c] += p * own[c]
    for k in range(n - 1, -1, -1):
        own = z[order[k]]
        per = 1.0 / total[k] if total[k] > 0.0 else 0.0
        for c in range(COLUMNS):
            own[c] *= per
        for place in range(first[k], first[k + 1]):
            other, p = z[near[place]], share[place]
            for c in range(COLUMNS):
                own[c] += p * other[c]
