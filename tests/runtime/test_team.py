"""Loops that start threads themselves, and blocks that stay in registers."""

import gc
import weakref

import numpy as np
import pytest
import torch

import crossedge as ce
from crossedge.numerics.exponential import LOWEST_POWER, half_to
from crossedge.numerics.extent import largest_of
from crossedge.numerics.mirror import mirrored
from crossedge.numerics.trees.marginals import _scale
from crossedge.numerics.trees.star_mesh_panels import _add_two
from crossedge.runtime import threads
from crossedge.runtime.compiled import compiled
from crossedge.runtime.team import in_team
from crossedge.runtime.threads import in_threads, team_size


@compiled
def _count(first, last, step, seen, parts):
    parts[first] = last
    for i in range(first, last):
        seen[i] += step


@compiled
def _count_all(many, n, size, step, seen, parts):
    in_team(many, _count, n, size, (step, seen, parts))


@compiled
def _count_twice(many, n, size, step, seen, parts):
    in_team(many, _count, n, size, (step, seen, parts))
    in_team(1, _count, n, size, (step, seen, parts))


@pytest.mark.parametrize("many", [1, 2, 5])
@pytest.mark.parametrize(("n", "size"), [(1, 64), (64, 64), (65, 64), (1000, 7), (5, 1)])
def test_every_row_is_done_once_in_parts_that_start_at_multiples(many, n, size):
    if many > 1 and threads._openmp() is None:
        pytest.skip("torch has no OpenMP that we know here")
    for loop, times in ((_count_all, 1), (_count_twice, 2)):
        seen, parts = np.zeros(n), np.zeros(n, np.int64)
        loop(many, n, size, 2.5, seen, parts)
        assert (seen == 2.5 * times).all()
        starts = np.arange(0, n, size)
        assert (parts[starts] == np.minimum(starts + size, n)).all()
        assert np.count_nonzero(parts) == len(starts)


@compiled
def _fail(first, last, at, seen):
    for i in range(first, last):
        if i == at:
            raise MemoryError("as if")
        seen[i] += 1.0


@compiled
def _fail_all(many, at, seen):
    in_team(many, _fail, len(seen), 16, (at, seen))


@pytest.mark.parametrize("many", [1, 2])
def test_a_part_that_fails_is_an_error(many):
    if many > 1 and threads._openmp() is None:
        pytest.skip("torch has no OpenMP that we know here")
    seen = np.zeros(100)
    _fail_all(many, -1, seen)
    assert (seen == 1).all()
    with pytest.raises(MemoryError):
        _fail_all(many, 40, seen)
    assert (seen[48:] == 2).all()  # the others are done all the same


def test_no_rows_no_work():
    _count_all(1, 0, 64, 1.0, np.zeros(0), np.zeros(0, np.int64))


def test_a_team_only_where_there_is_one(monkeypatch):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        if threads._openmp() is not None:
            assert team_size() == 2
        assert in_threads(lambda _: team_size(), [0, 1]) == [1, 1]  # inside of another
        assert in_threads(lambda _: team_size(), [0]) == [team_size()]  # one block has all threads
        monkeypatch.setattr(threads, "_openmp", lambda: None)
        assert team_size() == 1
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("family", [ce.SpanningTree(0.7), ce.NearestNeighbours(1, 0.7)])
def test_any_number_of_threads_gives_the_same(family):
    points = torch.from_numpy(np.random.default_rng(0).normal(size=(300, 3)))
    direction = torch.from_numpy(np.random.default_rng(1).normal(size=(300, 300)))
    found, before = [], torch.get_num_threads()
    for many in (1, 2, 3):
        torch.set_num_threads(many)
        distances = torch.cdist(points, points).requires_grad_()
        weights = family(distances)
        weights.backward(direction)
        found.append((weights.detach(), distances.grad))
    torch.set_num_threads(before)
    for weights, gradient in found[1:]:
        torch.testing.assert_close(weights, found[0][0], rtol=1e-12, atol=0)
        torch.testing.assert_close(gradient, found[0][1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("family", [ce.SpanningTree(1.0), ce.NearestNeighbours(1, 1.0)])
def test_weights_are_let_go_at_once(family):
    """Without a search for cycles: W must not refer to itself by way of its gradient."""
    gc.collect()
    gc.disable()
    try:
        distances = torch.rand(5, 5, dtype=torch.float64).requires_grad_()
        weights = family(distances)
        node = weakref.ref(weights)
        del weights
        assert node() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (4, 4), (7, 5), (64, 64), (61, 3), (3, 61)])
def test_tiles_are_transposed(rows, columns):
    matrix = np.random.default_rng(0).normal(size=(80, 80))
    tile = np.full((64, 66), np.nan)
    mirrored(matrix, 9, 9 + rows, 5, 5 + columns, tile)
    assert (tile[:rows, :columns] == matrix[5 : 5 + columns, 9 : 9 + rows].T).all()
    assert np.isnan(tile[rows:]).all()
    assert np.isnan(tile[:, columns:]).all()


@pytest.mark.parametrize("width", [0, 1, 8, 9, 16, 17, 24, 25, 40])
@pytest.mark.parametrize(("first", "last"), [(0, 0), (3, 3), (2, 9), (0, 10)])
def test_sums_of_rows(width, first, last):
    rng = np.random.default_rng(0)
    rows, factors = rng.normal(size=(10, 40)), rng.normal(size=(2, 10))
    found = rng.normal(size=(2, 40))
    expected = found + factors[:, first:last] @ rows[first:last]
    untouched = found[:, width:].copy()
    _add_two(found[0], found[1], factors[0], factors[1], rows, first, last, width)
    np.testing.assert_allclose(found[:, :width], expected[:, :width], rtol=1e-13)
    assert (found[:, width:] == untouched).all()


def test_powers_of_a_half():
    x = np.concatenate([[0.0, 5e-324, 0.5, 1.0, 999.5], np.geomspace(1e-17, LOWEST_POWER, 20_000)])
    np.testing.assert_allclose([half_to(one) for one in x], np.exp2(-x), rtol=4e-16)


ODD = [np.nan, -np.nan, np.inf, -np.inf, -1.0, -5e-324]
SMOOTH = [ce.SpanningTree(0.5), ce.NearestNeighbours(1, 0.5), ce.NearestNeighbours(3, 0.5)]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("place", [(0, 0), (3, 7), (99, 98), (50, 50)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_odd_distances_are_refused_wherever_they_stand(odd, place, dtype):
    distances = torch.rand(2, 100, 100).to(dtype)
    distances[1][place] = odd
    if dtype == torch.float32 and abs(odd) == 5e-324:
        pytest.skip("0 there")
    for weights in (*SMOOTH, ce.SpanningTree((0.0, 1.0)), ce.NearestNeighbours(2, "median")):
        with pytest.raises(ValueError, match="NaN, infinite or negative"):
            weights(distances)
        with pytest.raises(ValueError, match="NaN, infinite or negative"):
            ce.sample_edges(weights, distances[1], rng=0)


@pytest.mark.parametrize("weights", SMOOTH)
def test_a_zero_may_have_a_sign(weights):
    distances = torch.rand(6, 6, dtype=torch.float64).fill_diagonal_(0.0)
    distances[2, 3] = 0.0
    signed = torch.where(distances == 0, -0.0, distances)
    torch.testing.assert_close(weights(signed), weights(distances), rtol=0, atol=0)


@pytest.mark.parametrize("weights", SMOOTH)
def test_numbers_that_torch_has_not_yet_negated(weights):
    """Parts of conjugates have a bit for that, which arrays do not know."""
    distances = torch.rand(6, 6, dtype=torch.float64)
    cotangent = torch.rand(6, 6, dtype=torch.float64)
    negated = torch.complex(distances, -distances).conj().imag
    assert negated.is_neg()
    found = []
    for given, along in ((distances, cotangent), (negated, torch._neg_view(-cotangent))):
        leaf = given.detach().requires_grad_()
        W = weights(leaf)
        W.backward(along)
        found.append((W.detach(), leaf.grad))
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=0)


@pytest.mark.parametrize("temperature", ["median", 1e307])
def test_trees_where_the_sum_of_two_distances_is_no_double(temperature):
    distances = torch.tensor([[0, 1.0, 1.2], [1.0, 0, 1.5], [1.2, 1.5, 0]], dtype=torch.float64)
    scale = 1e308
    level = temperature if temperature == "median" else temperature / scale
    expected = ce.SpanningTree(level)(distances)
    large = (distances * scale).requires_grad_()
    W = ce.SpanningTree(temperature)(large)
    torch.testing.assert_close(W, expected, rtol=1e-12, atol=0)
    W.backward(distances)
    assert large.grad.isfinite().all()


@pytest.mark.parametrize("temperature", [6e-309, 7e-309, 9e-309, 3e-308])
def test_one_neighbour_where_the_inverse_temperature_is_hardly_a_double(temperature):
    distances = torch.tensor([[0, 1.0, 2.0], [1.0, 0, 1.0], [2.0, 1.0, 0]], dtype=torch.float64)
    expected = ce.NearestNeighbours(1, 1.0)(distances)
    found = ce.NearestNeighbours(1, temperature)(distances * temperature)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=0)


def test_the_largest_distance():
    assert largest_of(np.array([[0.0, 3.5], [2.0, 1e308]])) == 1e308
    assert largest_of(np.full((2, 2), 5e-324)) == 5e-324
    assert largest_of(np.full((2, 2), -0.0)) == 0


@pytest.mark.parametrize(
    ("largest", "power"),
    [(1.0, 2.0), (0.75, 1.0), (-3.0, 4.0), (0.0, 1.0), (5e-324, 2.0**-1022), (1.7e308, 2.0**1023)],
)
def test_cotangents_are_measured_by_a_power_of_two(largest, power):
    gradient = np.zeros((3, 3))
    gradient[1, 2] = largest
    assert _scale(gradient) == power
    gradient[0, 0] = np.nan
    assert _scale(gradient) == 1.0
