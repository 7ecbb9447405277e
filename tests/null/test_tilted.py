"""Tilted labellings as a law."""

import math

import numpy as np
import pytest

import crossedge as ce
from crossedge.data.distances import point_distances
from crossedge.null import Problem
from crossedge.null.either import UP
from crossedge.null.forest import ForestLaw
from crossedge.null.tilted import Tilted, tilted_labellings
from crossedge.numerics.labellings import tilted
from crossedge.statistics import STATISTICS
from null_cases import CROSS, problem_of


@pytest.fixture
def _few_chains(monkeypatch):
    """For what holds whatever the number of labellings."""
    monkeypatch.setattr(tilted, "CHAINS", tilted.CHAINS // 4)
    monkeypatch.setattr(tilted, "BLOCKS", tilted.BLOCKS // 4)


@pytest.mark.parametrize("n_x", [50, 20])
def test_far_tails_are_those_of_forests(n_x):
    """A classical tree has an exact law of its own."""
    problem = problem_of(ce.SpanningTree(), np.random.default_rng(3).normal(size=(100, 2)), n_x)
    mean, std, _ = CROSS.law.mean_and_std(CROSS, problem.moments)
    drawn, deepest = tilted_labellings(problem), 0.0
    for count in range(8 if n_x == 20 else 20, 40, 5):
        part = problem.part(CROSS, (mean - count) / std)
        exact = ForestLaw().log_pvalue(part).log_p
        log_p, reached = drawn.log_tail(part.threshold)
        if reached == part.threshold:
            assert log_p == pytest.approx(exact, abs=0.03 - 0.005 * exact)
            deepest = min(deepest, exact)
    assert deepest < -15


@pytest.mark.slow
@pytest.mark.parametrize("n_x", [1000, 400])
def test_tails_of_two_thousand_points_are_those_of_forests(n_x):
    problem = problem_of(ce.SpanningTree(), np.random.default_rng(3).normal(size=(2000, 2)), n_x)
    drawn = tilted_labellings(problem)
    for z in (1.3, 2.3, 3.1, 3.7, 4.7):
        part = problem.part(CROSS, z)
        log_p, reached = drawn.log_tail(part.threshold)
        assert reached == part.threshold
        assert log_p == pytest.approx(ForestLaw().log_pvalue(part).log_p, abs=0.1)


@pytest.mark.usefixtures("_few_chains")
@pytest.mark.parametrize("weights", [ce.NearestNeighbours(3), ce.NearestNeighbours(1, 1e-3)])
def test_neither_the_order_of_points_nor_of_samples_decides(weights):
    rng = np.random.default_rng(2)
    points = rng.normal(size=(40, 2))
    in_x = np.zeros(40, bool)
    in_x[np.argsort(points[:, 0] + 0.5 * rng.normal(size=40))[:10]] = True
    found = [ce.two_sample(points[~in_x], points[in_x], weights, null="tail")]
    order = rng.permutation(40)
    x, y = points[order][in_x[order]], points[order][~in_x[order]]
    found.append(ce.two_sample(x, y, weights, null="tail"))
    assert all(one.law == "tilted labellings" for one in found)
    np.testing.assert_allclose([one.log_pvalue for one in found], found[0].log_pvalue, rtol=1e-6)


@pytest.mark.usefixtures("_few_chains")
@pytest.mark.parametrize("weights", [ce.NearestNeighbours(5), ce.GaussianKernel(1.0)])
@pytest.mark.parametrize(("n_x", "n_y"), [(20, 20), (12, 28)])
def test_no_pvalue_is_below_that_of_a_single_labelling(weights, n_x, n_y):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(n_x, 2)) + 50, rng.normal(size=(n_y, 2))
    found = ce.two_sample(x, y, weights, null="tail")
    least = -math.log(math.comb(n_x + n_y, n_x)) + (math.log(2) if n_x == n_y else 0)
    assert least - 1e-9 <= found.log_pvalue < least + 5


@pytest.mark.usefixtures("_few_chains")
@pytest.mark.parametrize("temperature", [0.3, pytest.param(1e-4, marks=pytest.mark.slow)])
def test_log_pvalues_fall_on_and_on(temperature):
    """Where labellings do not reach, a law with four moments takes over."""
    points = np.random.default_rng(5).normal(size=(60, 2))
    problem = problem_of(ce.NearestNeighbours(3, temperature), points, 30)
    found = [Tilted().log_pvalue(problem.part(CROSS, z)).log_p for z in np.linspace(1.0, 25.0, 7)]
    assert np.isfinite(found).all()
    assert (np.diff(found) < 0).all()
    assert temperature < 0.1 or (np.diff(found) > -48).all()  # no jump


@pytest.mark.usefixtures("_few_chains")
@pytest.mark.parametrize(("bandwidth", "known"), [(0.02, 3), (2.0, 5)])
def test_sums_of_high_powers_are_used_where_tails_are_tame(bandwidth, known):
    points = np.random.default_rng(0).normal(size=(120, 2))
    pairs = ce.GaussianKernel(bandwidth).pairs(point_distances(points, 2.0))
    drawn = tilted_labellings(Problem(pairs, STATISTICS["mmd"], np.arange(120) < 12))
    assert len(drawn.moments) == known


def test_the_least_pvalue_is_that_of_a_labelling_and_of_its_mirror_image():
    """Exchange x and y: R stays, and R_x - R_y changes its sign."""
    for n_x, doubled in ((20, 2), (10, 1)):
        problem = problem_of(ce.SpanningTree(), np.random.default_rng(0).normal(size=(40, 2)), n_x)
        log_one = -math.log(math.comb(40, n_x))
        assert problem.log_least == pytest.approx(math.log(doubled) + log_one)
        assert problem.part(UP, 1.0).log_least == pytest.approx(log_one)


@pytest.mark.parametrize("statistic", ["cross", pytest.param("max", marks=pytest.mark.slow)])
def test_neither_order_decides_beyond_what_labellings_reach(statistic):
    """Values that tie with the last one in reach all count, whatever their rounding."""
    x, y = np.arange(30.0)[:, None], np.arange(30.0, 70.0)[:, None]
    shuffle = np.random.default_rng(0).permutation
    orders = [(x, y), (y, x), (shuffle(x), shuffle(y))]
    found = [
        ce.two_sample(*given, ce.NearestNeighbours(1), statistic=statistic, null="tail").log_pvalue
        for given in orders
    ]
    np.testing.assert_allclose(found, found[0], rtol=1e-6)
