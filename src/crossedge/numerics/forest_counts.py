"""How many edges of a forest cross, over all labellings: its generating function.

G(z, u) is the sum over all labellings of z^(edges that cross) u^(points in x). From the leaves up,
each point needs two numbers only: the sums over the labellings of its branch, itself in x or in y.
A branch (a, b) that hangs on an edge of weight w multiplies those of the point below it by
a + z^w b and z^w a + b. At z = e^tilt and u = e^lean, all is divided by its sum at once, so nothing
leaves the range of doubles, and the same divisors do at all angles of z and u.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from crossedge.compiled import compiled, compiled_fused
from crossedge.numerics.team import in_team

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LANES = 8  # angles side by side
PART = 8 * LANES


@compiled
def peel(n: int, i: Ints, j: Ints) -> tuple[Ints, Ints]:
    """(n,), (n,): points in an order in which leaves come first, each with the edge it hangs on.

    Both -1 from where on only circles are left, and the edge of the last point of each tree too.
    The exclusive or of the edges of a leaf is the one that it has.
    """
    degree, edges = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for e in range(len(i)):
        for v in (i[e], j[e]):
            degree[v] += 1
            edges[v] ^= e
    order, hangs_on = np.full(n, -1), np.full(n, -1)
    last = 0
    for v in range(n):
        if degree[v] <= 1:
            order[last] = v
            last += 1
    for place in range(n):
        if place == last:
            break
        v = order[place]
        if degree[v] == 1:
            e = edges[v]
            hangs_on[place] = e
            other = i[e] + j[e] - v
            degree[other] -= 1
            edges[other] ^= e
            degree[v] = 0
            if degree[other] == 1:
                order[last] = other
                last += 1
    return order, hangs_on


@compiled
def expected_counts(
    below: Ints, weight: Ints, tilt: float, lean: float, divisor: Floats
) -> tuple[float, float, float]:
    """Log G, and the means of the edges that cross and of the points in x by the tilted law.

    They are the derivatives of log G in tilt and lean, which go along. The divisors are written.
    """
    n = len(below)
    share = 1.0 / (1.0 + math.exp(-lean))
    in_x, by_lean, by_tilt = np.full(n, share), np.full(n, share * (1 - share)), np.zeros(n)
    log_g = n * (max(lean, 0.0) + math.log1p(math.exp(-abs(lean))))
    points, edges = n * share, 0.0
    for v in range(n):
        p, w = below[v], weight[v]
        divisor[v] = 1.0
        if p < 0:
            continue
        z = math.exp(tilt * w)
        a, a_tilt, a_lean, c = in_x[v], by_tilt[v], by_lean[v], in_x[p]
        x, y = c * (a + z * (1 - a)), (1 - c) * (z * a + (1 - a))
        total = x + y
        x_tilt = by_tilt[p] * (a + z * (1 - a)) + c * ((1 - z) * a_tilt + w * z * (1 - a))
        y_tilt = (1 - c) * ((z - 1) * a_tilt + w * z * a) - by_tilt[p] * (z * a + (1 - a))
        x_lean = by_lean[p] * (a + z * (1 - a)) + c * (1 - z) * a_lean
        y_lean = (1 - c) * (z - 1) * a_lean - by_lean[p] * (z * a + (1 - a))
        log_g += math.log(total)
        edges += (x_tilt + y_tilt) / total
        points += (x_lean + y_lean) / total
        in_x[p] = x / total
        by_tilt[p] = (x_tilt - x / total * (x_tilt + y_tilt)) / total
        by_lean[p] = (x_lean - x / total * (x_lean + y_lean)) / total
        divisor[v] = total
    return log_g, edges, points


@compiled
def values_at(
    threads: int,
    below: Ints,
    weight: Ints,
    tilt: float,
    lean: float,
    divisor: Floats,
    theta: Floats,
    phi: Floats,
) -> npt.NDArray[np.complex128]:
    """G at z = e^(tilt + i theta) and u = e^(lean + i phi), over that at angles 0."""
    found = np.empty((len(theta), 2))
    given = below, weight, tilt, lean, divisor, theta, phi, found
    in_team(threads, _values_at, len(theta), PART, given)
    return found[:, 0] + 1j * found[:, 1]


@compiled_fused
def _values_at(
    first: int,
    last: int,
    below: Ints,
    weight: Ints,
    tilt: float,
    lean: float,
    divisor: Floats,
    theta: Floats,
    phi: Floats,
    found: Floats,
) -> None:
    n, share = len(below), 1.0 / (1.0 + math.exp(-lean))
    x, x_i = np.empty((n, LANES)), np.empty((n, LANES))
    y, y_i = np.empty((n, LANES)), np.empty((n, LANES))
    whole, whole_i = np.empty(LANES), np.empty(LANES)
    z, z_i = np.empty((weight.max() + 1, LANES)), np.empty((weight.max() + 1, LANES))
    for start in range(first, last, LANES):
        stop = min(start + LANES, last)
        for k in range(LANES):
            at = min(start + k, stop - 1)
            for w in range(len(z)):
                size = math.exp(tilt * w)
                z[w, k], z_i[w, k] = size * math.cos(w * theta[at]), size * math.sin(w * theta[at])
            x[:, k], x_i[:, k] = share * math.cos(phi[at]), share * math.sin(phi[at])
            y[:, k], y_i[:, k] = 1.0 - share, 0.0
            whole[k], whole_i[k] = 1.0, 0.0
        for v in range(n):
            p = below[v]
            if p < 0:
                for k in range(LANES):
                    a, b = x[v, k] + y[v, k], x_i[v, k] + y_i[v, k]
                    whole[k], whole_i[k] = (
                        whole[k] * a - whole_i[k] * b,
                        whole[k] * b + whole_i[k] * a,
                    )
                continue
            per, w = 1.0 / divisor[v], weight[v]
            for k in range(LANES):
                a, b, c, d = x[v, k], x_i[v, k], y[v, k], y_i[v, k]
                e, f = z[w, k] * per, z_i[w, k] * per
                one, one_i = a * per + (e * c - f * d), b * per + (e * d + f * c)
                two, two_i = c * per + (e * a - f * b), d * per + (e * b + f * a)
                a, b, c, d = x[p, k], x_i[p, k], y[p, k], y_i[p, k]
                x[p, k], x_i[p, k] = a * one - b * one_i, a * one_i + b * one
                y[p, k], y_i[p, k] = c * two - d * two_i, c * two_i + d * two
        for k in range(stop - start):
            found[start + k, 0], found[start + k, 1] = whole[k], whole_i[k]
