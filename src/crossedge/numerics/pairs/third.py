"""The sums that third moments need, and their gradient in W.

V is W without row effects, and deg are the centred degrees. The sums are

    triangles = tr V^3,                 cubes = sum of V^3 over pairs,       degree3 = sum of deg^3,
    degree_squares = sum_ij deg_i V_ij^2,       degree_degree = deg' V deg.

The product V V is left to the caller, who gives its entries below the diagonal. Removing row
effects is a projection, so a gradient H in V has the gradient H without row effects in W.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from crossedge.numerics.mirror import SIDE, reflect, team_for
from crossedge.numerics.pairs.products import Matrix
from crossedge.numerics.pairs.sums import PairSums, add_direction, row_effects
from crossedge.runtime.compiled import compiled, compiled_fused, compiled_sum
from crossedge.runtime.team import in_team
from crossedge.runtime.types import Floats

ROWS = 16  # in a part, the unit of work of a thread


class ThirdParts(NamedTuple):
    """V and V V in one precision, and sums over their rows."""

    V: Matrix  # (n, n)
    walks: Matrix  # (n, n): V V, on and below the diagonal
    squares: Floats  # (n,): row sums of V^2
    onward: Floats  # (n,): V deg
    cubes: float
    triangles: float


def without_effects(W: Floats, effect: Floats, precision: type) -> Matrix:
    """Return V in the given precision."""
    out: Matrix = np.empty(W.shape, precision)
    _remove(team_for(len(W)), W, effect, out)
    return out


@compiled
def _remove(threads: int, W: Floats, effect: Floats, out: Matrix) -> None:
    in_team(threads, _rows_without, len(W), ROWS, (W, effect, out))


@compiled_fused
def _rows_without(first: int, last: int, W: Floats, effect: Floats, out: Matrix) -> None:
    for i in range(first, last):
        row, target, own = W[i], out[i], effect[i]
        for j in range(len(row)):
            target[j] = row[j] - own - effect[j]
        target[i] = 0.0


def third_parts(V: Matrix, walks: Matrix, degree: Floats) -> ThirdParts:
    """Return the sums over rows of V and V V."""
    squares, onward, cubes, triangles = np.empty((4, len(V)))
    _sum_all(team_for(len(V)), V, walks, degree, squares, onward, cubes, triangles)
    return ThirdParts(V, walks, squares, onward, float(cubes.sum()), 2 * float(triangles.sum()))


@compiled
def _sum_all(
    threads: int,
    V: Matrix,
    walks: Matrix,
    degree: Floats,
    squares: Floats,
    onward: Floats,
    cubes: Floats,
    triangles: Floats,
) -> None:
    given = V, walks, degree, squares, onward, cubes, triangles
    in_team(threads, _sums, len(V), ROWS, given)


@compiled_sum
def _sums(
    first: int,
    last: int,
    V: Matrix,
    walks: Matrix,
    degree: Floats,
    squares: Floats,
    onward: Floats,
    cubes: Floats,
    triangles: Floats,
) -> None:
    for i in range(first, last):
        row, walk = V[i], walks[i]
        square, onto, cube, triangle = 0.0, 0.0, 0.0, 0.0
        for j in range(len(row)):
            v = np.float64(row[j])
            square += v * v
            onto += v * degree[j]
        for j in range(i):
            v = np.float64(row[j])
            cube += v * v * v
            triangle += v * walk[j]
        squares[i], onward[i], cubes[i], triangles[i] = square, onto, cube, triangle


def gradient_with_third(
    second: Sequence[float], third: Sequence[float], sums: PairSums, parts: ThirdParts, n_x: int
) -> Floats:
    """Return the gradient in W as if all of its entries were independent.

    `second` has the derivatives of a loss in R_x, R_y, m and the sums of V^2 and of the squared
    degrees, and `third` those in cubes, triangles, degree3, degree_squares and degree_degree.
    """
    x, y, total, squares, degree2 = second
    cubes, triangles, degree3, degree_squares, degree_degree = third
    degree, n = sums.degree, len(parts.V)
    threads, out, rows = team_for(n), np.empty(parts.V.shape), np.empty(n)
    numbers = 6 * triangles, 3 * cubes, 2 * degree_squares, 2 * degree_degree, 2 * squares
    _gradient(threads, *numbers, parts.V, parts.walks, degree, out, rows)
    in_degree = 2 * degree2 * degree + 3 * degree3 * degree**2
    in_degree += degree_squares * parts.squares + 2 * degree_degree * parts.onward
    _, effect = row_effects(rows)
    b = in_degree - in_degree.mean() - effect + total / 2
    add_direction(threads, out, n_x, b / 2, 0.5, x / 2, y / 2, out)
    return out


@compiled
def _gradient(
    threads: int,
    walk: float,
    square: float,
    by_degree: float,
    both: float,
    itself: float,
    V: Matrix,
    walks: Matrix,
    degree: Floats,
    out: Floats,
    rows: Floats,
) -> None:
    given = walk, square, by_degree, both, itself, V, walks, degree, out
    in_team(threads, _gradients, len(V), ROWS, given)
    in_team(threads, _reflect, len(V), SIDE, (out,))
    in_team(threads, _row_sums, len(V), SIDE, (out, rows))


@compiled_fused
def _gradients(
    first: int,
    last: int,
    walk: float,
    square: float,
    by_degree: float,
    both: float,
    itself: float,
    V: Matrix,
    walks: Matrix,
    degree: Floats,
    out: Floats,
) -> None:
    for i in range(first, last):
        row, onward, target, own = V[i], walks[i], out[i], degree[i]
        for j in range(i):
            v = np.float64(row[j])
            target[j] = (
                walk * onward[j]
                + v * (itself + square * v + by_degree * (own + degree[j]))
                + both * own * degree[j]
            )
        target[i] = 0.0


@compiled
def _reflect(first: int, last: int, out: Floats) -> None:
    reflect(out, first, last)


@compiled_sum
def _row_sums(first: int, last: int, matrix: Floats, out: Floats) -> None:
    for i in range(first, last):
        row, total = matrix[i], 0.0
        for j in range(len(row)):
            total += row[j]
        out[i] = total
