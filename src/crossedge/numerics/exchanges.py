"""Labellings with probability proportional to e^(tilt Q), Q = s'As / 2 + c's for labels s = +-1.

A chain exchanges the labels of two points at a time (Metropolis and co-authors, 1953). It keeps the
field As + c, so that what an exchange would add to Q is known at once, and only those that are
accepted cost a pass over two rows of A.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from crossedge.compiled import compiled_fused
from crossedge.numerics.labellings import Words
from crossedge.numerics.packed_labellings import next_random, random_state

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@compiled_fused
def run_chains(
    A: Floats,
    tilt: float,
    n_x: int,
    order: Ints,
    field: Floats,
    value: Floats,
    seen: Floats,
    proposals: int,
    key: np.uint64,
    block: int,
) -> None:
    """Chains one after the other, from where they stand; all arrays but A are written to.

    order is (chains, n), with n_x points in x first; field (chains, n), value (chains,), and seen
    (looks, chains) has the values of Q after every so many proposals.
    """
    state, linear = random_state(key, block), not A.any()
    for chain in range(len(order)):
        for look in range(len(seen)):
            value[chain] += _exchange(
                A, linear, tilt, n_x, order[chain], field[chain], state, proposals
            )
            seen[look, chain] = value[chain]


@compiled_fused
def _exchange(
    A: Floats,
    linear: bool,
    tilt: float,
    n_x: int,
    order: Ints,
    field: Floats,
    state: Words,
    proposals: int,
) -> float:
    """What Q gains."""
    n, half, gained = len(order), np.uint64(32), 0.0
    low, unit = np.uint64(0xFFFFFFFF), 2.0**-53
    for _ in range(proposals):
        word = next_random(state)
        u = int(((word >> half) * np.uint64(n_x)) >> half)
        v = n_x + int(((word & low) * np.uint64(n - n_x)) >> half)
        i, j = order[u], order[v]
        gain = 2 * (field[j] - field[i]) - 4 * A[i, j]
        # drawn in any case, so that a gain of 0 but for rounding does not change what follows
        uniform = unit * (next_random(state) >> np.uint64(11))
        if gain < 0 and uniform >= math.exp(tilt * gain):
            continue
        order[u], order[v] = j, i
        gained += gain
        if not linear:
            of_i, of_j = A[i], A[j]
            for k in range(n):
                field[k] += 2 * (of_j[k] - of_i[k])
    return gained
