"""The generating function of the crossing edges of a forest, over all labellings.

G(z, u) is the sum over all labellings of z^(edges that cross) u^(points in x). From the leaves to
the root, each point needs two numbers only: the sums over the labellings of its branch with the
point itself in x, and in y. A branch (a, b) that hangs on an edge of weight w multiplies the two
numbers of the point below it by a + z^w b and z^w a + b. At z = e^tilt and u = e^lean, each pair is
divided by its sum at once, so nothing leaves the range of doubles. The same divisors serve at all
angles of z and u.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from crossedge.runtime.compiled import compiled, compiled_fused
from crossedge.runtime.team import in_team
from crossedge.runtime.types import Floats, Ints

LANES = 8  # angles side by side, for vector instructions
TASK_ANGLES = 8 * LANES  # that one thread takes at a time


@compiled
def peel(n: int, i: Ints, j: Ints) -> tuple[Ints, Ints]:
    """Return the points in an order in which leaves come first, (n,), and the edge each hangs on.

    The edge of the last point of each tree is -1. If the graph has cycles, both are -1 from where
    only cycles are left. Each point keeps the exclusive or of its edges: at a leaf, its only edge.
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
def alone(label: Ints, lean: float) -> tuple[Floats, Floats, float]:
    """Return the two numbers of each point alone, scaled to sum 1, and the log of all divisors.

    A label is 1 for a point in x, -1 for a point in y, and 0 for a free one.
    """
    n, log_g = len(label), 0.0
    in_x, in_y = np.empty(n), np.empty(n)
    for v in range(n):
        in_x[v], in_y[v] = label[v] > 0, label[v] < 0
        if label[v] == 0:
            in_x[v], in_y[v] = 1.0 / (1.0 + math.exp(-lean)), 1.0 / (1.0 + math.exp(lean))
            log_g += max(lean, 0.0) + math.log1p(math.exp(-abs(lean)))
        elif label[v] > 0:
            log_g += lean
    return in_x, in_y, log_g


@compiled
def expected_counts(
    below: Ints, weight: Ints, label: Ints, tilt: float, lean: float, divisor: Floats
) -> tuple[float, float, float]:
    """Return log G, and the means of crossing edges and of points in x under the tilted law.

    The means are derivatives of log G in tilt and lean, carried along. The divisors are written.
    """
    n = len(below)
    in_x, in_y, log_g = alone(label, lean)
    by_lean, by_tilt = in_x * in_y, np.zeros(n)
    points, edges = in_x.sum(), 0.0
    for v in range(n):
        p, w = below[v], weight[v]
        divisor[v] = 1.0
        if p < 0:
            continue
        z = math.exp(tilt * w)
        a, b, c, d = in_x[v], in_y[v], in_x[p], in_y[p]
        one, two = a + z * b, z * a + b
        total = c * one + d * two
        x, y = c * one / total, d * two / total
        one_tilt, two_tilt = (1 - z) * by_tilt[v] + w * z * b, (z - 1) * by_tilt[v] + w * z * a
        x_tilt = (by_tilt[p] * one + c * one_tilt) / total
        more_edges = x_tilt + (d * two_tilt - by_tilt[p] * two) / total
        x_lean = (by_lean[p] * one + c * (1 - z) * by_lean[v]) / total
        more_points = x_lean + (d * (z - 1) * by_lean[v] - by_lean[p] * two) / total
        log_g += math.log(total)
        edges += more_edges
        points += more_points
        in_x[p], in_y[p] = x, y
        by_tilt[p], by_lean[p] = x_tilt - x * more_edges, x_lean - x * more_points
        divisor[v] = total
    return log_g, edges, points


@compiled
def values_at(
    threads: int,
    below: Ints,
    weight: Ints,
    label: Ints,
    tilt: float,
    lean: float,
    divisor: Floats,
    theta: Floats,
    phi: Floats,
) -> npt.NDArray[np.complex128]:
    """Return G at z = e^(tilt + i theta) and u = e^(lean + i phi), relative to G at angles 0."""
    found = np.empty((len(theta), 2))
    given = below, weight, label, tilt, lean, divisor, theta, phi, found
    in_team(threads, _values_at, len(theta), TASK_ANGLES, given)
    return found[:, 0] + 1j * found[:, 1]


@compiled_fused
def _values_at(
    first: int,
    last: int,
    below: Ints,
    weight: Ints,
    label: Ints,
    tilt: float,
    lean: float,
    divisor: Floats,
    theta: Floats,
    phi: Floats,
    found: Floats,
) -> None:
    n, (in_x, in_y, _) = len(below), alone(label, lean)
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
            x[:, k], x_i[:, k] = in_x * math.cos(phi[at]), in_x * math.sin(phi[at])
            y[:, k], y_i[:, k] = in_y, 0.0
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
