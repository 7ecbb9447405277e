"""Potentials of the smoothed tree on all pairs of points, without a matrix of all pairs.

The columns of X = L^+ B' W^1/2 Q, for random signs Q on all pairs, say everything about marginals:
mu_ij is w_ij |x_i - x_j|^2 in the mean over columns (Spielman and Srivastava, 2011). Conjugate
gradients need products with L only, for which w is computed by blocks of rows, and forgotten.

The preconditioner is a sampled factor of a sparse network. It has the given edges, with their own
conductances. The rest of all conductances of point i, in sum delta_i, leads to one more vertex, the
hub. By star-mesh elimination the hub stands for an edge delta_i delta_j / sum delta between all
pairs: the best guess that needs no more than the sums.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from crossedge.numerics.trees.conjugate_gradients import COLUMNS, PATIENCE, apply_factor
from crossedge.numerics.trees.sampled_star_mesh import Factor, factor_of
from crossedge.runtime.compiled import compiled
from crossedge.runtime.interrupts import checkpoint
from crossedge.runtime.threads import in_threads
from crossedge.runtime.types import Floats, Ints

BLOCK = 128  # rows of w at a time, in each thread
LEAST_REST = 1e-12  # of the sum of conductances, for the hub: a positive one keeps it connected


def streamed_tree_potentials(
    points: Floats,
    temperature: float,
    i: Ints,
    j: Ints,
    probes: int = 64,
    seed: int = 0,
    tolerance: float = 1e-2,
) -> Floats:
    """Return (n, probes) potentials Z such that mu_ij is close to w_ij |z_i - z_j|^2.

    Parameters
    ----------
    points : (n, d) array
        The points, with Euclidean distances d_ij and conductances w_ij = e^(-d_ij / temperature).
    temperature : float
        At least a fiftieth or so of the longest edge of the minimum spanning tree: there are no
        windows here, and the potentials of far points would hide those of near ones.
    i, j : (edges,) arrays
        A connected sparse graph, such as nearest neighbours and the minimum spanning tree.
    probes : int, optional
        A multiple of 8. The relative standard error of mu is sqrt(2 / probes).
    seed : int, optional
        The seed of the signs and of the factor.
    tolerance : float, optional
        The error of the solution, relative to it, in the norm of the energy.
    """
    n = len(points)
    sources, total = np.zeros((n, probes)), np.empty(n)

    def of_rows(first: int) -> None:
        w = _conductances(points, temperature, first)
        rows = slice(first, first + len(w))
        total[rows] = w.sum(1) - 1.0  # w_ii = 1 counts for nothing
        _add_signed(np.sqrt(w), first, np.uint64(seed), sources[rows])

    in_threads(of_rows, range(0, n, BLOCK))
    factor = _factor(points, temperature, i, j, total, seed)
    return _solve(points, temperature, factor, sources, tolerance) / sqrt(probes)


def _conductances(points: Floats, temperature: float, first: int) -> Floats:
    """Return w between a block of rows and all points."""
    from scipy.spatial.distance import cdist

    w: Floats = cdist(points[first : first + BLOCK], points)
    w *= -1.0 / temperature
    np.exp(w, out=w)
    return w


def _factor(
    points: Floats, temperature: float, i: Ints, j: Ints, total: Floats, seed: int
) -> Factor:
    """Factor the sparse network with its hub, which is the last vertex."""
    n = len(points)
    w = np.exp(-np.linalg.norm(points[i] - points[j], axis=1) / temperature)
    rest = total - np.bincount(i, w, n) - np.bincount(j, w, n)
    rest = np.maximum(rest, LEAST_REST * total)
    ends = np.append(i, np.arange(n)), np.append(j, np.full(n, n))
    return factor_of(n + 1, *ends, np.append(w, rest), seed)


def _solve(
    points: Floats, temperature: float, factor: Factor, r: Floats, tolerance: float
) -> Floats:
    """Solve L x = r by conjugate gradients; r is overwritten."""
    x, p = np.zeros_like(r), np.zeros_like(r)
    before, energy, least, steps, last = None, 0.0, np.inf, 0, PATIENCE
    while steps < last:
        checkpoint()
        steps += 1
        z = _precondition(factor, r)
        error = np.einsum("ic,ic->c", r, z)
        p *= 0.0 if before is None else error / before
        p += z
        q = _product(points, temperature, p)
        step = error / np.einsum("ic,ic->c", p, q)
        x += step * p
        r -= step * q
        energy, before = energy + step * error, error
        worst = float(np.max(error / energy))
        if worst <= tolerance**2:
            break
        if worst < 0.5 * least:
            least, last = worst, steps + PATIENCE
    return x


def _precondition(factor: Factor, r: Floats) -> Floats:
    n = len(r)
    out = np.empty_like(r)

    def of_columns(first: int) -> None:
        given, found = np.zeros((n + 1, COLUMNS)), np.empty((n + 1, COLUMNS))
        given[:n] = r[:, first : first + COLUMNS]
        apply_factor(*factor, given, found)
        out[:, first : first + COLUMNS] = found[:n]

    in_threads(of_columns, range(0, r.shape[1], COLUMNS))
    return out


def _product(points: Floats, temperature: float, x: Floats) -> Floats:
    """Return L x."""
    out = np.empty_like(x)

    def of_rows(first: int) -> None:
        w = _conductances(points, temperature, first)
        rows = slice(first, first + len(w))
        out[rows] = w.sum(1)[:, None] * x[rows] - w @ x

    in_threads(of_rows, range(0, len(x), BLOCK))
    return out


@compiled
def _add_signed(root: Floats, first: int, key: np.uint64, out: Floats) -> None:
    """Add B' W^1/2 Q for a block of rows; a pair has the same signs in both its rows.

    The signs of pair i < j are the bits of a hash of i, j and the key (splitmix64).
    """
    probes = out.shape[1]
    for row in range(len(root)):
        i, sums = first + row, out[row]
        for j in range(root.shape[1]):
            if i == j:
                continue
            low, high = min(i, j), max(i, j)
            value = root[row, j] if i < j else -root[row, j]
            for word in range(0, probes, 64):
                pair = (np.uint64(low) << np.uint64(32)) + np.uint64(high)
                stream = key * np.uint64(0xD1342543DE82EF95) + np.uint64(word)
                bits = (pair * np.uint64(0x9E3779B97F4A7C15)) ^ (
                    stream * np.uint64(0xA0761D6478BD642F)
                )
                bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
                bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
                signs = np.int64(bits ^ (bits >> np.uint64(31)))
                for c in range(min(64, probes - word)):
                    sums[word + c] += value if (signs >> c) & 1 else -value
