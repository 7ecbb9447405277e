"""The sums of W that a loss needs, and the gradient in W that follows from them.

Every statistic, standardised or not, is a function of the within-sums R_x and R_y, of their total
m with the sum between the samples, of the squares of V, the weights without row effects, and of the
centred degrees. So its gradient in W is

    G_ij = a + b (deg_i + deg_j) + c W_ij + (x if i and j are in x, y if both are in y),

a few numbers, with the centred degrees and W itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crossedge.numerics.mirror import team_for
from crossedge.runtime.compiled import compiled, compiled_fused, compiled_sum
from crossedge.runtime.team import in_team
from crossedge.runtime.types import Floats

ROWS = 32  # of a matrix in a part, the unit of work of a thread


class PairSums(NamedTuple):
    """Sums over the pairs of points of two samples, the first n_x points being those of x."""

    x: float  # R_x, the sum of W inside x
    y: float
    total: float  # m, the sum of W over all pairs
    squares: float  # the sum of V^2 over all pairs
    degree2: float  # the sum of the squares of the centred degrees
    degree: Floats  # (n,): the centred degrees
    effect: Floats  # (n,): V_ij = W_ij - effect_i - effect_j


def row_effects(degree: Floats) -> tuple[Floats, Floats]:
    """Return the centred degrees, and the effects that leave no row sums."""
    n, mean = len(degree), float(degree.mean())
    centred = degree - mean
    return centred, centred / max(n - 2, 1) + mean / (2 * max(n - 1, 1))


def pair_sums(W: Floats, n_x: int) -> PairSums:
    """Return the sums of a matrix of weights."""
    degree, own = np.empty((2, len(W)))
    _degrees(team_for(len(W)), n_x, W, degree, own)
    return sums_with_squares(W, n_x, degree, own)


def sums_with_squares(W: Floats, n_x: int, degree: Floats, own: Floats) -> PairSums:
    """Return the sums of a matrix of weights, given its row sums inside each sample and in all."""
    centred, effect = row_effects(degree)
    squares = np.empty(len(W))
    # V is orthogonal to row effects, so rounding errors of the effects hardly change the squares
    _squares(team_for(len(W)), W, effect, squares)
    return sums_of_rows(n_x, own, degree, squares, centred, effect)


def sums_of_rows(
    n_x: int, own: Floats, degree: Floats, squares: Floats, centred: Floats, effect: Floats
) -> PairSums:
    """Return the sums over pairs, from those over the rows of W."""
    return PairSums(
        x=float(own[:n_x].sum()) / 2,
        y=float(own[n_x:].sum()) / 2,
        total=float(degree.sum()) / 2,
        squares=float(squares.sum()) / 2,
        degree2=float(centred @ centred),
        degree=centred,
        effect=effect,
    )


@compiled
def _degrees(threads: int, n_x: int, W: Floats, degree: Floats, own: Floats) -> None:
    in_team(threads, _rows_of_degrees, len(W), ROWS, (n_x, W, degree, own))


@compiled
def _rows_of_degrees(
    first: int, last: int, n_x: int, W: Floats, degree: Floats, own: Floats
) -> None:
    for i in range(first, last):
        in_x, in_y = sum_of(W[i, :n_x]), sum_of(W[i, n_x:])
        degree[i] = in_x + in_y
        own[i] = in_x if i < n_x else in_y


@compiled_sum
def sum_of(row: Floats) -> float:
    total = 0.0
    for j in range(len(row)):
        total += row[j]
    return total


@compiled
def _squares(threads: int, W: Floats, effect: Floats, out: Floats) -> None:
    in_team(threads, _rows_of_squares, len(W), ROWS, (W, effect, out))


@compiled
def _rows_of_squares(first: int, last: int, W: Floats, effect: Floats, out: Floats) -> None:
    for i in range(first, last):
        # without the pair of a point and itself, which may be larger by many orders
        out[i] = _squares_of(W[i, :i], effect[i], effect[:i]) + _squares_of(
            W[i, i + 1 :], effect[i], effect[i + 1 :]
        )


@compiled_sum
def _squares_of(row: Floats, own: float, effect: Floats) -> float:
    total = 0.0
    for j in range(len(row)):
        total += (row[j] - own - effect[j]) ** 2
    return total


class Direction(NamedTuple):
    """The gradient G of a loss by the weight of a pair, in the notation above."""

    a: float
    b: float
    c: float
    x: float
    y: float


def gradient_in_weights(direction: Direction, sums: PairSums, W: Floats, n_x: int) -> Floats:
    """Return G / 2 as a matrix: the gradient in W as if all of its entries were independent."""
    out = np.empty_like(W)
    a, b, c, x, y = (number / 2 for number in direction)
    add_direction(team_for(len(W)), W, n_x, b * sums.degree + a / 2, c, x, y, out)
    return out


@compiled
def add_direction(
    threads: int, W: Floats, n_x: int, b: Floats, c: float, x: float, y: float, out: Floats
) -> None:
    """Write b_i + b_j + c W_ij, and x or y more inside the samples; `out` may be W."""
    in_team(threads, _rows_of_gradient, len(W), ROWS, (W, n_x, b, c, x, y, out))


@compiled_fused
def _rows_of_gradient(
    first: int,
    last: int,
    W: Floats,
    n_x: int,
    b: Floats,
    c: float,
    x: float,
    y: float,
    out: Floats,
) -> None:
    for i in range(first, last):
        row, target = W[i], out[i]
        to_x, to_y = b[i] + (x if i < n_x else 0.0), b[i] + (0.0 if i < n_x else y)
        for j in range(n_x):
            target[j] = to_x + b[j] + c * row[j]
        for j in range(n_x, len(row)):
            target[j] = to_y + b[j] + c * row[j]
        target[i] = 0.0
