"""Sums over the weights without row effects, from which the moments are computed.

A product of powers of R and L is a sum over tuples of pairs and points. The mean of a tuple depends
only on how many points occur in it an odd number of times. Row effects, W_uv = V_uv + a_u + a_v,
add to R a multiple of L and a constant. They are removed first, so that V has row sums 0, and the
centred degrees have sum 0. Nearly all sums over tuples then vanish, and no large ones are left to
cancel, even if a point is far away from all others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crossedge.runtime.arrays import is_tensor
from crossedge.runtime.threads import in_threads, one_blas_thread
from crossedge.runtime.types import Array

PROBES = 48  # vectors for the largest eigenvalues, and as many for the rest of a trace
BLOCK_ROWS = 128  # rows of an array in a block, the unit of work of a thread
# A tensor is split into at most so many blocks, of at least so many rows.
TENSOR_BLOCKS, LEAST_TENSOR_ROWS = 4, 64


class Centred(NamedTuple):
    """The weights V without row effects, and the centred degrees of W."""

    V: Array
    degree: Array


class SecondSums(NamedTuple):
    """The sums that variances need."""

    total: Array  # m, the sum of W over pairs
    squares: Array  # sum of V^2 over pairs
    degree2: Array  # sum of squared degrees


class ThirdSums(NamedTuple):
    """The sums that third moments need."""

    cubes: Array  # sum of V^3 over pairs
    triangles: Array  # tr V^3
    degree3: Array  # sum of cubed degrees
    degree_squares: Array  # sum over points of degree times the row sum of V^2
    degree_degree: Array  # deg' V deg


def second_sums(W: Array, centred: Centred) -> SecondSums:
    """Return the sums of a matrix."""
    flat = centred.V.reshape(-1)
    return SecondSums(W.sum() / 2, (flat @ flat) / 2, centred.degree @ centred.degree)


def third_sums(centred: Centred, *, nearly: bool = False) -> ThirdSums:
    """Return the sums of a matrix. Only the triangles cost more than a pass over V.

    With `nearly` they are estimated, which changes a skewness by less than 0.01.
    """
    V, degree = centred
    squared = V * V
    return ThirdSums(
        cubes=(squared.reshape(-1) @ V.reshape(-1)) / 2,
        triangles=estimated_triangles(V) if nearly else triangles(V),
        degree3=(degree**3).sum(),
        degree_squares=(degree * squared.sum(1)).sum(),
        degree_degree=degree @ (V @ degree),
    )


def triangles(V: Array) -> Array:
    """Return the trace of V^3, from the blocks of V^2 on and below the diagonal."""
    if is_tensor(V):
        size = max(-(-len(V) // TENSOR_BLOCKS), LEAST_TENSOR_ROWS)
        return sum(_triangles_of(V, first, size) for first in range(0, len(V), size))
    return sum(
        in_threads(lambda first: _triangles_of(V, first, BLOCK_ROWS), range(0, len(V), BLOCK_ROWS))
    )


def estimated_triangles(V: Array) -> Array:
    """Return an estimate of the trace of V^3 for an array, dense or sparse, by few products.

    The part in the space of the largest eigenvalues is exact. Random signs z estimate the rest: the
    mean of z' V^3 z is the trace (Hutchinson, 1989; Meyer and co-authors, 2021).
    """
    random = np.random.default_rng(0)
    signs = random.choice([-1.0, 1.0], size=(2, V.shape[0], PROBES))
    with one_blas_thread():
        space = np.linalg.qr(V @ signs[0])[0]
    rest = signs[1] - space @ (space.T @ signs[1])
    once = V @ np.concatenate([space, rest / np.sqrt(PROBES)], axis=1)
    return ((V @ once) * once).sum()


def _triangles_of(V: Array, first: int, size: int) -> Array:
    """Return the part of tr V^3 of a block of rows; terms below the diagonal count twice."""
    rows, last = V[first : first + size], first + size
    terms = (rows @ V[:, :last]) * rows[:, :last]
    return 2 * terms[:, :first].sum() + terms[:, first:].sum()
