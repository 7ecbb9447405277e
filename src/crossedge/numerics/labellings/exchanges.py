"""Markov chains of labellings s = +-1 with law e^(tilt Q), up to a factor: Q = s'As / 2 + c's.

A step proposes to exchange the labels of two points (Metropolis and co-authors, 1953). The chain
keeps the field As + c, so the gain of Q by an exchange is known at once. Only accepted exchanges
cost a pass over two rows of A.
"""

from __future__ import annotations

import math

import numpy as np

from crossedge.numerics.labellings.packed import next_random, random_state
from crossedge.runtime.compiled import compiled_fused
from crossedge.runtime.types import Floats, Ints, Words


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
    """Run the chains, one after the other, from their present states; only A is left unchanged.

    `order`, (chains, n), has the n_x points of x first. `field` is (chains, n), and `value`,
    (chains,), is Q. `seen`, (looks, chains), receives Q after every `proposals` proposals.
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
    """Run one chain for so many proposals, and return the gain of Q."""
    n, half, gained = len(order), np.uint64(32), 0.0
    low, unit = np.uint64(0xFFFFFFFF), 2.0**-53
    for _ in range(proposals):
        word = next_random(state)
        u = int(((word >> half) * np.uint64(n_x)) >> half)
        v = n_x + int(((word & low) * np.uint64(n - n_x)) >> half)
        i, j = order[u], order[v]
        gain = 2 * (field[j] - field[i]) - 4 * A[i, j]
        # drawn in any case: the sign of a gain that is 0 up to rounding must not change later draws
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
