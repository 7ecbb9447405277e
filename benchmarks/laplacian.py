"""Solving the Laplacians of nearest-neighbour graphs: sampled elimination against other ways.

    python benchmarks/laplacian.py              10,000 and 100,000 points
    python benchmarks/laplacian.py 1000000      other numbers of points

Ours stops at an error of 1e-6 in the norm of the energy, and solves 8 right-hand sides at a time;
seconds are for one of them. scipy stops at a residual of 1e-6 in the plain norm, which says little
where weights go down to 1e-57.
"""

from __future__ import annotations

import sys
from time import perf_counter

import numpy as np
from scipy.sparse import coo_array, diags_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import cg
from scipy.spatial import cKDTree

from crossedge.numerics.trees.conjugate_gradients import COLUMNS, solve_block
from crossedge.numerics.trees.projections import projector_of

NEIGHBOURS, TOLERANCE, PATIENCE = 10, 1e-6, 2000
CASES = ((2, 20.0), (3, 20.0), (10, 20.0), (3, 131.0))  # dimension, temperatures of the longest


def graph(n, d):
    """Return the edges of a connected graph of nearest neighbours among normal points."""
    points = np.random.default_rng(0).normal(size=(n, d))
    near = cKDTree(points).query(points, NEIGHBOURS + 1, workers=-1)[1][:, 1:]
    i, j = np.repeat(np.arange(n), NEIGHBOURS), near.ravel()
    while True:  # join every part to the nearest point outside of it
        part = connected_components(coo_array((np.ones(len(i)), (i, j)), (n, n)), directed=False)[1]
        if part.max() == 0:
            break
        for small in np.delete(np.arange(part.max() + 1), np.bincount(part).argmax()):
            inside, outside = np.flatnonzero(part == small), np.flatnonzero(part != small)
            gap, other = cKDTree(points[outside]).query(points[inside])
            i, j = np.append(i, inside[gap.argmin()]), np.append(j, outside[other[gap.argmin()]])
    pairs = np.unique(np.minimum(i, j) * n + np.maximum(i, j))
    i, j = pairs // n, pairs % n
    return i, j, np.linalg.norm(points[i] - points[j], axis=1)


def sampled(n, i, j, w, signs):
    """Return seconds to prepare, seconds for a right-hand side, and steps."""
    begin = perf_counter()
    ready = projector_of(n, i, j, w, 0.1, 0)
    prepared = perf_counter() - begin
    right = np.zeros((n, COLUMNS))
    current = signs * np.sqrt(w)[:, None]
    np.add.at(right, ready.i, current)
    np.add.at(right, ready.j, -current)
    begin = perf_counter()
    _, steps = solve_block(ready.rows, ready.factor, right, TOLERANCE)
    return prepared, (perf_counter() - begin) / COLUMNS, steps


def others(i, j, w, signs):
    """Yield the name, seconds to prepare, seconds, and steps, or what went wrong."""
    incidence = coo_array(
        (np.repeat([1.0, -1.0], len(i)), (np.tile(np.arange(len(i)), 2), np.append(i, j)))
    ).tocsr()
    # the last point is grounded
    grounded = (incidence.T @ diags_array(w) @ incidence).tocsr()[:-1, :-1]
    right = (incidence.T @ (signs[:, 0] * np.sqrt(w)))[:-1]

    def solve(preconditioner):
        steps = 0

        def count(_):
            nonlocal steps
            steps += 1

        begin = perf_counter()
        with np.errstate(all="ignore"):
            x, failed = cg(
                grounded, right, rtol=TOLERANCE, maxiter=PATIENCE, M=preconditioner, callback=count
            )
        seconds = perf_counter() - begin
        return seconds, f"{steps}" if not failed and np.isfinite(x).all() else f"none in {steps}"

    yield "Jacobi", 0.0, *solve(diags_array(1 / grounded.diagonal()))
    try:
        import pyamg
    except ImportError:
        return
    begin = perf_counter()
    levels = pyamg.smoothed_aggregation_solver(grounded)
    prepared = perf_counter() - begin
    yield "multigrid", prepared, *solve(levels.aspreconditioner())


def main() -> None:
    sizes = [int(size) for size in sys.argv[1:]] or [10_000, 100_000]
    sampled(2, np.array([0]), np.array([1]), np.ones(1), np.ones((1, COLUMNS)))  # compile
    print("| points | d | least weight | way | prepare, s | solve, s | steps |")
    print("|---|---|---|---|---|---|---|")
    for n in sizes:
        for d, span in CASES:
            i, j, length = graph(n, d)
            w = np.exp(-span * length / length.max())
            signs = np.random.default_rng(1).choice([-1.0, 1.0], (len(i), COLUMNS))
            start = f"| {n:,} | {d} | {w.min():.0e} |"
            prepared, seconds, steps = sampled(n, i, j, w, signs)
            print(f"{start} sampled elimination | {prepared:.2f} | {seconds:.3f} | {steps} |")
            for name, before, after, count in others(i, j, w, signs):
                print(f"{start} {name} | {before:.2f} | {after:.3f} | {count} |", flush=True)


if __name__ == "__main__":
    main()
