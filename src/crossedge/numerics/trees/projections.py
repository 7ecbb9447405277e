"""Marginals of a sparse smoothed tree from random projections, one solve of the Laplacian each.

Let Pi = W^1/2 B L^+ B' W^1/2, over the edges; its diagonal is mu. It is a projection, so that
sum_f Pi_ef^2 = mu_e. For random signs q and y = Pi q, the products s = q_e y_e have mean mu_e and
variance v = mu_e (1 - mu_e), and are close to normal. The logarithm of the likelihood of N of them,

    -N/2 log v - sum (s - mu)^2 / (2 v),

is largest at a root of a cubic in the means s1 of s and s2 of s^2,

    -2 mu^3 + (2 + 2 s1) mu^2 - (1 + 2 s2) mu + s2 = 0,

which is positive at 0 and negative at 1. For any law of s with this mean and this variance, the
estimate has the asymptotic variance

    Var(2 mu^2 s + (1 - 2 mu) s^2) / (N (1 - 2 v)^2),

which for a normal s is 2 v^2 / (N (1 - 2 v)): small both for small mu and for mu near 1. The mean
of y^2 alone (Spielman and Srivastava, 2011) has 2 mu^2 / N.

The Jacobian of mu in log w is J_ef = delta_ef mu_e - Pi_ef^2. With z = Pi (g q),

    (J g)_e = v_e g_e - E[(y_e - mu_e q_e) (z_e - mu_e g_e q_e)],

since Pi_ee = mu_e is known. J 1 = 0, so a mean can be taken off g, which makes the noise smaller.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from math import ceil

import numpy as np
import numpy.typing as npt

from crossedge.numerics.labellings.packed import next_random, random_state
from crossedge.numerics.trees.conjugate_gradients import COLUMNS, Rows, rows_of, solve_block
from crossedge.numerics.trees.sampled_star_mesh import Factor, factor_of
from crossedge.runtime.compiled import compiled
from crossedge.runtime.threads import in_threads
from crossedge.runtime.types import Floats, Ints

Signs = npt.NDArray[np.uint8]  # (edges,): a bit for each column
MOST_SUMS = 1 << 26  # numbers in the sums of all chunks of probes together: half a gigabyte
MOST_CHUNKS = 64
PRIOR_PROBES = 32  # the weight of the normal law in estimates of variances
LEAST_SPREAD = 1e-5  # mu (1 - mu) below which moments are not told apart
SOLVE_PRECISION = 0.02  # of a solve, as a fraction of the accuracy asked for


def probes_for(accuracy: float) -> int:
    """Return the number of probes for a relative standard error, in whole blocks."""
    return ceil(2.0 / accuracy**2 / COLUMNS) * COLUMNS


def normal_variance(mu: Floats, probes: int) -> Floats:
    """Return the asymptotic variance of estimates from normal products."""
    v = mu * (1.0 - mu)
    return 2.0 * v * v / (1.0 - 2.0 * v) / probes


@dataclass(frozen=True)
class Projector:
    """A network that is ready for projections of random signs."""

    i: Ints
    j: Ints
    root: Floats  # (edges,): square roots of conductances
    rows: Rows
    factor: Factor
    probes: int
    tolerance: float
    key: np.uint64

    def marginals(self) -> tuple[Floats, Floats]:
        """Return estimates of mu, and their variances."""
        ones = np.ones(len(self.i))

        def chunk(blocks: range) -> Floats:
            sums = np.zeros((len(self.i), 4))
            for block in blocks:
                signs = _draw_signs(len(self.i), self.key, block)
                _add_moments(self.i, self.j, self.root, self._solve(signs, ones), signs, sums)
            return sums

        sums: Floats = reduce(np.add, in_threads(chunk, self._chunks()))
        moments = np.ascontiguousarray((sums / self.probes).T)
        mu = _likeliest(moments[0], moments[1])
        return mu, self._variance(mu, *moments)

    def _variance(self, mu: Floats, s1: Floats, s2: Floats, s3: Floats, s4: Floats) -> Floats:
        """Return the variance of estimates by the four moments of s.

        Few probes do not tell it well, so the normal law counts as some more of them. Where mu is
        near 0 or 1 the difference of moments is mostly rounding, and the normal law alone counts.
        """
        v, normal, N = mu * (1.0 - mu), normal_variance(mu, self.probes), self.probes
        a, b = 2.0 * mu * mu, 1.0 - 2.0 * mu
        spread = a * a * (s2 - s1 * s1) + 2.0 * a * b * (s3 - s1 * s2) + b * b * (s4 - s2 * s2)
        observed = np.maximum(spread, 0.0) / (1.0 - 2.0 * v) ** 2 / N
        mixed = (PRIOR_PROBES * normal + N * observed) / (PRIOR_PROBES + N)
        return np.where(v > LEAST_SPREAD, mixed, normal)

    def jacobian_times(self, mu: Floats, gradient: Floats) -> Floats:
        """Return an estimate of J g."""
        v = mu * (1.0 - mu)
        total = float(v.sum())
        g = gradient - (float(v @ gradient) / total if total > 0 else 0.0)
        ones = np.ones(len(g))

        def chunk(blocks: range) -> Floats:
            sums = np.zeros(len(g))
            for block in blocks:
                signs = _draw_signs(len(g), self.key, block)
                y, z = self._solve(signs, ones), self._solve(signs, g)
                _add_products(self.i, self.j, self.root, mu, g, y, z, signs, sums)
            return sums

        sums: Floats = reduce(np.add, in_threads(chunk, self._chunks()))
        return v * g - sums / self.probes

    def _solve(self, signs: Signs, factor: Floats) -> Floats:
        """Return the potentials L^+ B' W^1/2 (g q), a column for each probe."""
        sources = np.zeros((len(self.rows.start) - 1, COLUMNS))
        _add_sources(self.i, self.j, self.root, factor, signs, sources)
        return solve_block(self.rows, self.factor, sources, self.tolerance)[0]

    def _chunks(self) -> list[range]:
        """Split the blocks of probes, in the same way whatever the number of threads."""
        blocks = self.probes // COLUMNS
        count = max(1, min(MOST_CHUNKS, blocks, MOST_SUMS // (4 * max(len(self.i), 1))))
        borders = [blocks * part // count for part in range(count + 1)]
        return [range(*borders[part : part + 2]) for part in range(count)]


def projector_of(
    n: int, i: Ints, j: Ints, conductance: Floats, accuracy: float, seed: int
) -> Projector:
    """Prepare a network, which may have several parts, for projections."""
    place = _places(n, i, j)
    i, j = place[i], place[j]
    rows, factor = rows_of(n, i, j, conductance), factor_of(n, i, j, conductance, seed)
    tolerance, key = SOLVE_PRECISION * min(accuracy, 0.1), np.uint64(seed)
    return Projector(i, j, np.sqrt(conductance), rows, factor, probes_for(accuracy), tolerance, key)


def _places(n: int, i: Ints, j: Ints) -> Ints:
    """Number the vertices so that neighbours are close in memory."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    ends = np.concatenate([i, j]), np.concatenate([j, i])
    graph = coo_array((np.ones(2 * len(i), np.int8), ends), (n, n)).tocsr()
    place = np.empty(n, np.int64)
    place[reverse_cuthill_mckee(graph, symmetric_mode=True)] = np.arange(n)
    return place


@compiled
def _draw_signs(edges: int, key: np.uint64, block: int) -> Signs:
    state, signs = random_state(key, block + 1), np.empty(edges, np.uint8)
    for first in range(0, edges, 8):
        bits = next_random(state)
        for edge in range(first, min(first + 8, edges)):
            signs[edge] = bits & np.uint64(255)
            bits >>= np.uint64(8)
    return signs


@compiled
def _add_sources(
    i: Ints, j: Ints, root: Floats, factor: Floats, signs: Signs, sources: Floats
) -> None:
    for edge in range(len(i)):
        one, other, bits = sources[i[edge]], sources[j[edge]], np.int64(signs[edge])
        current = root[edge] * factor[edge]
        for c in range(COLUMNS):
            signed = current if (bits >> c) & 1 else -current
            one[c] += signed
            other[c] -= signed


@compiled
def _add_moments(i: Ints, j: Ints, root: Floats, x: Floats, signs: Signs, sums: Floats) -> None:
    """Add up the first four powers of s = q y for every edge, where y = W^1/2 B x."""
    for edge in range(len(i)):
        one, other, bits = x[i[edge]], x[j[edge]], np.int64(signs[edge])
        for c in range(COLUMNS):
            y = root[edge] * (one[c] - other[c])
            s = y if (bits >> c) & 1 else -y
            square = s * s
            sums[edge, 0] += s
            sums[edge, 1] += square
            sums[edge, 2] += square * s
            sums[edge, 3] += square * square


@compiled
def _add_products(
    i: Ints,
    j: Ints,
    root: Floats,
    mu: Floats,
    g: Floats,
    y: Floats,
    z: Floats,
    signs: Signs,
    sums: Floats,
) -> None:
    """Add up (q y - mu) (q z - mu g) for every edge."""
    for edge in range(len(i)):
        a, b, bits = i[edge], j[edge], np.int64(signs[edge])
        for c in range(COLUMNS):
            sign = root[edge] if (bits >> c) & 1 else -root[edge]
            without = sign * (y[a, c] - y[b, c]) - mu[edge]
            sums[edge] += without * (sign * (z[a, c] - z[b, c]) - mu[edge] * g[edge])


@compiled
def _likeliest(s1: Floats, s2: Floats) -> Floats:
    """Return the root of the cubic in [0, 1], by Newton's method inside a shrinking bracket."""
    mu = np.empty_like(s1)
    for edge in range(len(mu)):
        first, second = s1[edge], s2[edge]
        low, high = 0.0, 1.0
        x = min(second, 1.0)
        for _ in range(60):
            value = ((-2.0 * x + 2.0 + 2.0 * first) * x - 1.0 - 2.0 * second) * x + second
            if value > 0.0:
                low = x
            else:
                high = x
            slope = (-6.0 * x + 4.0 + 4.0 * first) * x - 1.0 - 2.0 * second
            step = value / slope if slope != 0.0 else 1.0
            before, x = x, x - step
            if not low <= x <= high:
                x = 0.5 * (low + high)
            if abs(x - before) <= 1e-14 * x:
                break
        mu[edge] = x
    return mu
