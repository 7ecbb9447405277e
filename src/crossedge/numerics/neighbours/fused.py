"""The loss of the smoothed nearest neighbour from points to gradients, in four passes over rows.

This is the paper's main configuration. Distances d that are few temperatures t long have one factor
e_ij = e^(-d_ij/t) for both rows i and j. With the shares s_i = 1 / sum_j e_ij,

    P(i chooses j) = e_ij s_i,   W_ij = e_ij (s_i + s_j),   deg_i = 1 + sum_j e_ij s_j.

Only d and e are stored. Let G_ij be the gradient in W, in the notation of `pairs.sums`, and M_i the
mean of G_ij over the choices of i. The gradient in the distance of i and j is then

    e_ij / t (s_i (M_i - G_ij) + s_j (M_j - G_ij)).

G_ij and M_i are taken relative to G at the nearest point of i, so that nothing cancels where that
point has nearly all the weight. M_i is linear in the numbers b, c, x and y of G, so its parts are
summed before these are known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crossedge.numerics.exponential import LOG2_E, half_to
from crossedge.numerics.extent import MAGNITUDE_BITS
from crossedge.numerics.mirror import team_for
from crossedge.numerics.neighbours.row_softmax import place_of
from crossedge.numerics.neighbours.symmetric_softmax import LARGEST_EXPONENT, LOWEST_TEMPERATURE
from crossedge.numerics.pairs.points import distances_from
from crossedge.numerics.pairs.sums import Direction, PairSums, row_effects, sums_of_rows
from crossedge.runtime.compiled import compiled, compiled_sum
from crossedge.runtime.team import in_team
from crossedge.runtime.types import Bools, Floats, Ints

ROWS = 16  # in a part, the unit of work of a thread


@dataclass(frozen=True)
class FusedNearest:
    """The smoothed nearest neighbour of two samples, the first n_x points being those of x."""

    n_x: int
    temperature: float
    distances: Floats  # (n, n)
    decay: Floats  # (n, n): e_ij; the gradient overwrites it
    share: Floats  # (n,): s_i
    nearest: Ints  # (n,)
    to_own: Floats  # (n,): the sum of e over the other points of the same sample
    by_degree: Floats  # (n,): M_i of the centred degrees, relative to the nearest point
    by_weight: Floats  # (n,): M_i of W, relative to the nearest point
    sums: PairSums

    def spread(self, direction: Direction, rows: slice) -> Floats:
        """Return rows of the gradient in the distance of two points, over that distance.

        It takes the place of `decay`, so it can be asked for once.
        """
        given = rows.start, rows.stop, self.n_x, self.temperature, *direction[1:]
        of_points = self.share, self.nearest, self.to_own, self.by_degree, self.by_weight
        matrices = self.distances, self.decay
        _spread_all(
            team_for(rows.stop - rows.start), *given, self.sums.degree, *of_points, *matrices
        )
        return self.decay[rows]


def fused_nearest(
    given: Floats, are_points: bool, n_x: int, temperature: float
) -> FusedNearest | None:
    """Return the sums of W and what their gradient needs, from (d, n) points or their distances.

    Return None if some distance is many temperatures long, where e would lose digits.
    """
    if not temperature >= LOWEST_TEMPERATURE:
        return None
    n = given.shape[1]
    threads, D, E = team_for(n), np.empty((n, n)) if are_points else given, np.empty((n, n))
    total, degree, own, to_own, squares, by_degree, by_weight = np.empty((7, n))
    nearest = np.empty(n, np.int64)
    if not _decay_all(threads, given, are_points, temperature, D, E, total, nearest):
        return None
    share = 1.0 / total
    _sum_all(threads, n_x, E, share, degree, own, to_own)
    centred, effect = row_effects(degree)
    _mean_all(threads, E, share, nearest, centred, effect, squares, by_degree, by_weight)
    sums = sums_of_rows(n_x, own, degree, squares, centred, effect)
    parts = nearest, to_own, by_degree, by_weight
    return FusedNearest(n_x, temperature, D, E, share, *parts, sums)


@compiled
def _decay_all(
    threads: int,
    points: Floats,
    are_points: bool,
    temperature: float,
    D: Floats,
    E: Floats,
    total: Floats,
    nearest: Ints,
) -> bool:
    """Write d, e, the row sums of e and the nearest points; return False if e loses digits."""
    stop = np.zeros(1, np.bool_)
    given = points, are_points, LOG2_E / temperature, D, E, total, nearest, stop
    in_team(threads, _decays, len(total), ROWS, given)
    return not stop[0]


@compiled
def _decays(
    first: int,
    last: int,
    points: Floats,
    are_points: bool,
    per: float,
    D: Floats,
    E: Floats,
    total: Floats,
    nearest: Ints,
    stop: Bools,
) -> None:
    for i in range(first, last):
        if stop[0]:
            return
        row, target = D[i], E[i]
        if are_points:
            distances_from(points, i, row)
        before, after = _decay(row[:i], per, target[:i]), _decay(row[i + 1 :], per, target[i + 1 :])
        target[i] = 0.0
        total[i] = before[0] + after[0]
        longest = np.int64(max(before[2], after[2])).view(np.float64)
        if not longest * per <= LARGEST_EXPONENT:  # also where it is not finite
            stop[0] = True
            return
        bits = row.view(np.int64)
        if before[1] <= after[1]:
            nearest[i] = place_of(before[1], bits[:i])
        else:
            nearest[i] = i + 1 + place_of(after[1], bits[i + 1 :])


@compiled_sum
def _decay(row: Floats, per: float, out: Floats) -> tuple[float, np.int64, np.int64]:
    """Write 2^(-d per); return its sum, and the smallest and largest bits of d."""
    total, least, most = 0.0, MAGNITUDE_BITS, np.int64(0)
    for j in range(len(row)):
        bits = np.float64(row[j]).view(np.int64)
        least, most = min(least, bits), max(most, bits)
        out[j] = half_to(row[j] * per)
        total += out[j]
    return total, least, most


@compiled
def _sum_all(
    threads: int,
    n_x: int,
    E: Floats,
    share: Floats,
    degree: Floats,
    own: Floats,
    to_own: Floats,
) -> None:
    """Write degrees, the sums of W inside the sample of each point, and those of e."""
    in_team(threads, _sums, len(E), ROWS, (n_x, E, share, degree, own, to_own))


@compiled
def _sums(
    first: int,
    last: int,
    n_x: int,
    E: Floats,
    share: Floats,
    degree: Floats,
    own: Floats,
    to_own: Floats,
) -> None:
    for i in range(first, last):
        to_x, from_x = _two_sums(E[i, :n_x], share[:n_x])
        to_y, from_y = _two_sums(E[i, n_x:], share[n_x:])
        in_x, in_y = to_x * share[i] + from_x, to_y * share[i] + from_y
        degree[i] = in_x + in_y
        own[i], to_own[i] = (in_x, to_x) if i < n_x else (in_y, to_y)


@compiled_sum
def _two_sums(e: Floats, share: Floats) -> tuple[float, float]:
    plain, shared = 0.0, 0.0
    for j in range(len(e)):
        plain += e[j]
        shared += e[j] * share[j]
    return plain, shared


@compiled
def _mean_all(
    threads: int,
    E: Floats,
    share: Floats,
    nearest: Ints,
    degree: Floats,
    effect: Floats,
    squares: Floats,
    by_degree: Floats,
    by_weight: Floats,
) -> None:
    """Write the row sums of V^2, and the parts of M_i."""
    given = E, share, nearest, degree, effect, squares, by_degree, by_weight
    in_team(threads, _means, len(E), ROWS, given)


@compiled_sum
def _means(
    first: int,
    last: int,
    E: Floats,
    share: Floats,
    nearest: Ints,
    degree: Floats,
    effect: Floats,
    squares: Floats,
    by_degree: Floats,
    by_weight: Floats,
) -> None:
    others = effect.copy()
    for i in range(first, last):
        e, s, near, own_effect = E[i], share[i], nearest[i], effect[i]
        near_degree, near_weight = degree[near], e[near] * (s + share[near])
        square, of_degree, of_weight = 0.0, 0.0, 0.0
        others[i] = -own_effect  # no square of a point with itself, which may be larger by far
        for j in range(len(e)):
            w = e[j] * (s + share[j])
            square += (w - own_effect - others[j]) ** 2
            of_degree += e[j] * (degree[j] - near_degree)
            of_weight += e[j] * (w - near_weight)
        squares[i], others[i] = square, own_effect
        by_degree[i], by_weight[i] = of_degree * s, of_weight * s


@compiled
def _spread_all(
    threads: int,
    start: int,
    stop: int,
    n_x: int,
    temperature: float,
    b: float,
    c: float,
    x: float,
    y: float,
    degree: Floats,
    share: Floats,
    nearest: Ints,
    to_own: Floats,
    by_degree: Floats,
    by_weight: Floats,
    D: Floats,
    E: Floats,
) -> None:
    """Overwrite e by the gradient in the distances over the distances."""
    n, per = len(share), 1.0 / temperature
    mean_own, mean_other, slope = np.empty(n), np.empty(n), np.empty(n)
    near_slope, near_weight = np.empty(n), np.empty(n)
    for i in range(n):
        near, inside, own = nearest[i], x if i < n_x else y, to_own[i] * share[i]
        near_is_own = (near < n_x) == (i < n_x)
        mean = b * by_degree[i] + c * by_weight[i] + inside * (own - 1.0 if near_is_own else own)
        mean_own[i] = (mean if near_is_own else mean - inside) * per
        mean_other[i] = (mean + inside if near_is_own else mean) * per
        slope[i], near_slope[i] = b * per * degree[i], b * per * degree[near]
        near_weight[i] = E[i, near] * (share[i] + share[near])
    rows = c * per, mean_own, mean_other, slope, near_slope, share, near_weight
    in_team(threads, _spreads, stop - start, ROWS, (start, n_x, *rows, D, E))


@compiled
def _spreads(
    first: int,
    last: int,
    start: int,
    n_x: int,
    c: float,
    to_own: Floats,
    to_other: Floats,
    degree: Floats,
    near_degree: Floats,
    share: Floats,
    near_weight: Floats,
    D: Floats,
    E: Floats,
) -> None:
    for i in range(start + first, start + last):
        for left, right in ((0, n_x), (n_x, len(share))):
            mean = to_own if (left < n_x) == (i < n_x) else to_other
            _spread(
                mean[i],
                degree[i],
                near_degree[i],
                share[i],
                near_weight[i],
                c,
                mean[left:right],
                degree[left:right],
                near_degree[left:right],
                share[left:right],
                near_weight[left:right],
                D[i, left:right],
                E[i, left:right],
            )


@compiled
def _spread(
    mean_i: float,
    degree_i: float,
    near_degree_i: float,
    share_i: float,
    near_weight_i: float,
    c: float,
    mean: Floats,
    degree: Floats,
    near_degree: Floats,
    share: Floats,
    near_weight: Floats,
    d: Floats,
    e: Floats,
) -> None:
    for j in range(len(e)):
        w = e[j] * (share_i + share[j])
        from_i = mean_i - (degree[j] - near_degree_i) - c * (w - near_weight_i)
        from_j = mean[j] - (degree_i - near_degree[j]) - c * (w - near_weight[j])
        change = e[j] * (share_i * from_i + share[j] * from_j)
        e[j] = change / d[j] if d[j] > 0.0 else 0.0
