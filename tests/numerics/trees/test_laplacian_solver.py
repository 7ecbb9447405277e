"""Windows, blocks, sampled elimination and conjugate gradients, each against plain code."""

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from crossedge.numerics.trees.blocks import balance, blocks_of
from crossedge.numerics.trees.conjugate_gradients import COLUMNS, rows_of, solve_block
from crossedge.numerics.trees.sampled_star_mesh import factor_of
from crossedge.numerics.trees.sparse_marginals import sparse_tree_marginals
from crossedge.numerics.trees.windows import windows
from sparse_graphs import neighbour_graph, random_graph


def laplacian(n, i, j, w):
    L = np.zeros((n, n))
    np.add.at(L, (i, j), -w)
    L += L.T
    return L - np.diag(L.sum(1))


def product_of(factor):
    """M, from the stars that were taken out: that of k is s (e_k - p) (e_k - p)'."""
    n = len(factor.order)
    M = np.zeros((n, n))
    for k, vertex in enumerate(factor.order):
        row = slice(factor.start[k], factor.start[k + 1])
        column = np.zeros(n)
        column[vertex] = 1.0
        column[factor.neighbour[row]] -= factor.share[row]
        M += factor.total[k] * np.outer(column, column)
    return M


@pytest.mark.parametrize("copies", [1, 2])
def test_sampled_elimination_is_right_in_expectation(copies):
    rng = np.random.default_rng(0)
    n = 8
    i, j = random_graph(n, 25, rng)
    w = rng.exponential(size=len(i)) ** 2
    L = laplacian(n, i, j, w)
    found = np.array([product_of(factor_of(n, i, j, w, seed, copies)) for seed in range(3000)])
    error = found.std(0) / np.sqrt(len(found))
    assert (np.abs(found.mean(0) - L) <= 4.5 * error + 1e-12).all()


def test_trees_are_eliminated_exactly():
    rng = np.random.default_rng(1)
    i, j = random_graph(50, 0, rng)
    w = rng.exponential(size=len(i))
    np.testing.assert_allclose(
        product_of(factor_of(50, i, j, w, 0)), laplacian(50, i, j, w), atol=1e-12
    )


def solve(n, i, j, w, tolerance):
    rng = np.random.default_rng(2)
    signs = rng.choice([-1.0, 1.0], (len(i), COLUMNS)) * np.sqrt(w)[:, None]
    right = np.zeros((n, COLUMNS))
    np.add.at(right, i, signs)
    np.add.at(right, j, -signs)
    rows, factor = rows_of(n, i, j, w), factor_of(n, i, j, w, 0)
    x, steps = solve_block(rows, factor, right.copy(), tolerance)
    return right, x, steps


def test_solutions_have_the_tolerance():
    rng = np.random.default_rng(3)
    n = 600
    i, j, length = neighbour_graph(rng.normal(size=(n, 3)))
    w = np.exp(-10 * length)
    L = laplacian(n, i, j, w)
    for tolerance in (1e-1, 1e-3, 1e-6):
        right, x, _ = solve(n, i, j, w, tolerance)
        exact = np.linalg.lstsq(L, right, rcond=1e-13)[0]
        error = x - exact
        energy = np.einsum("ic,ij,jc->c", error, L, error)
        assert (energy <= 2 * tolerance**2 * np.einsum("ic,ic->c", exact, right)).all()


@pytest.mark.parametrize(("d", "span"), [(2, 1.0), (3, 30.0), (3, 131.0), (10, 20.0)])
def test_few_steps_whatever_the_range_of_weights(d, span):
    """At a span of 131 temperatures conductances go down to 1e-57."""
    counts = []
    for n in (250, 1500):
        points = np.random.default_rng(n).normal(size=(n, d))
        i, j, length = neighbour_graph(points)
        _, x, steps = solve(n, i, j, np.exp(-span * length / length.max()), 1e-8)
        assert np.isfinite(x).all()
        counts.append(steps)
    assert max(counts) <= 30
    assert counts[1] <= counts[0] + 8


def test_parts_are_solved_at_once():
    rng = np.random.default_rng(4)
    i, j = random_graph(40, 60, rng)
    two, w = (np.append(i, i + 40), np.append(j, j + 40)), rng.exponential(size=2 * len(i))
    right, x, _ = solve(81, *two, w, 1e-9)  # the last vertex has no edges
    np.testing.assert_allclose(laplacian(81, *two, w) @ x, right, atol=1e-6)


def bottlenecks(n, i, j, length):
    """The longest edge on the best path, by brute force."""
    best = np.full((n, n), np.inf)
    best[i, j] = best[j, i] = length
    for k in range(n):
        best = np.minimum(best, np.maximum(best[:, [k]], best[k]))
    return best[i, j]


def test_windows_hold_every_edge_once_at_its_bottleneck():
    rng = np.random.default_rng(5)
    n = 60
    i, j = random_graph(n, 100, rng)
    length = np.round(rng.exponential(100.0, len(i)))
    b, t, core, margin = bottlenecks(n, i, j, length), 0.5, 15.0, 20.0
    seen, last, is_parted = np.zeros(len(i), int), -np.inf, False
    found = list(windows(n, i, j, length, t, core, margin))
    assert len(found) > 5
    for window in found:
        inside = window.edges[window.in_core]
        seen[inside] += 1
        assert b[inside].min() > last
        c, last = b[inside].min(), b[inside].max()
        assert last <= c + core * t
        np.testing.assert_allclose(window.exponent, (length[window.edges] - c) / t)
        assert window.exponent.min() >= -margin
        # the ends of an edge in the core are joined inside the core
        part = parts(window, window.exponent <= core)
        assert (part[window.i] == part[window.j])[window.in_core].all()
        is_parted |= parts(window, window.exponent <= np.inf).max() > 0
    assert (seen == 1).all()
    assert is_parted


def parts(window, kept):
    ends = window.i[kept], window.j[kept]
    graph = coo_array((np.ones(kept.sum()), ends), (window.n, window.n))
    return connected_components(graph, directed=False)[1]


def test_one_window_holds_everything_if_it_can():
    rng = np.random.default_rng(6)
    i, j = random_graph(30, 40, rng)
    (only,) = windows(30, i, j, rng.random(len(i)) * 50, 1.0, 15.0, 20.0)
    assert only.in_core.all()


@pytest.mark.parametrize("seed", range(5))
def test_blocks_by_brute_force(seed):
    """Two edges share a block unless some vertex separates them."""
    rng = np.random.default_rng(seed)
    n = 14
    i, j = random_graph(n, 6, rng)
    together = np.ones((len(i), len(i)), bool)
    for cut in range(n):
        kept = (i != cut) & (j != cut)
        graph = coo_array((np.ones(kept.sum()), (i[kept], j[kept])), (n, n))
        part = connected_components(graph, directed=False)[1]
        side = np.where(i == cut, part[j], part[i])
        together &= side[:, None] == side
    # no single vertex parts an edge from itself, and being together is transitive here
    block = blocks_of(n, i, j)
    np.testing.assert_array_equal(block[:, None] == block, together)


def test_balanced_marginals_add_up_in_every_block():
    rng = np.random.default_rng(7)
    n = 30
    i, j = random_graph(n, 12, rng)
    mu = sparse_tree_marginals(n, i, j, rng.exponential(size=len(i)), 1.0).mu
    error = 0.1 * mu * (1 - mu)
    noisy = np.clip(mu + error * rng.normal(size=len(i)), 0, 1)
    found = balance(noisy, error**2, n, i, j)
    block = blocks_of(n, i, j)
    np.testing.assert_allclose(np.bincount(block, found), np.bincount(block, mu), rtol=1e-9)
    assert (found[np.bincount(block)[block] == 1] == 1).all()
