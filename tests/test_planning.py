"""Plans: the curve, its continuation, and what they say of pilots with and without a difference."""

import json

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import crossedge as ce
from crossedge.cli.main import main
from crossedge.planning import NORMAL, PILOT_ERROR, SMALLEST, _planned, fitted


def pilots(n_x, n_y, shift, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_x, 2)), shift * np.eye(2)[0] + rng.normal(size=(n_y, 2))


@pytest.mark.parametrize("growth", [0.5, 0.8, 1.0])
@pytest.mark.parametrize("evidence", [1.5, 4.0, 10.0])
def test_a_known_curve_is_found(evidence, growth):
    n, level = 400, 0.05
    sizes = [13, 25, 50, 100, 200]
    curve = [(m, float(ndtr(evidence * (m / n) ** growth - ndtri(1 - level)))) for m in sizes]
    found = fitted(curve, n, level, count=10**6)
    assert found.evidence == pytest.approx(evidence, rel=0.02)
    assert found.growth == pytest.approx(growth, abs=0.02)
    plan = _planned(found, curve, (100, 300), 0.8, level)
    needed = n * ((ndtri(0.8) + ndtri(0.95)) / evidence) ** (1 / growth)
    assert plan.n_x + plan.n_y == pytest.approx(needed, rel=0.05, abs=2)
    assert plan.n_y == pytest.approx(3 * plan.n_x, abs=3)
    low, high = plan.interval
    assert (low or 0) <= plan.n_x + plan.n_y <= (high or np.inf)
    assert (high is None) == (found.evidence < NORMAL * PILOT_ERROR)


def test_a_clear_difference_needs_less_than_the_pilot():
    x, y = pilots(60, 90, 1.2)
    found = ce.plan(x, y, ce.EnergyKernel(), rng=0)
    assert 4 <= found.n_x < 60
    assert found.n_y == pytest.approx(1.5 * found.n_x, abs=2)
    more = ce.plan(x, y, ce.EnergyKernel(), power=0.95, rng=0)
    assert more.n_x > found.n_x
    assert f"{found.n_x:,} and {found.n_y:,} rows" in repr(found)
    assert json.loads(found.to_json())["pilot"] == [60, 90]
    # the curve is the power that fresh samples of these sizes have
    size, power = found.curve[-1]
    rng = np.random.default_rng(1)
    fresh = [
        ce.two_sample(
            *pilots(2 * size // 5, 3 * size // 5, 1.2, rng.integers(2**31)),
            ce.EnergyKernel(),
            n_resamples=199,
            rng=rng,
        ).pvalue
        for _ in range(100)
    ]
    assert np.mean(np.array(fresh) <= 0.05) == pytest.approx(power, abs=0.25)


def test_nothing_is_planned_by_pilots_that_show_nothing():
    x, y = pilots(60, 60, 0, seed=3)
    found = ce.plan(x, y, ce.EnergyKernel(), rng=0)
    assert (found.n_x, found.n_y) == (None, None)
    assert "planning needs an assumed difference" in repr(found)
    assert found.interval[1] is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"power": 1.0}, "power=1.0 is out of range"),
        ({"power": 0.04}, "at most the level"),
        ({"n_subsamples": 3}, "at least 20"),
        ({"distance": "precomputed"}, "draws some of them"),
    ],
)
def test_complaints(options, message):
    with pytest.raises(ValueError, match=message):
        ce.plan(*pilots(20, 20, 1), **options)


def test_few_rows_are_refused():
    with pytest.raises(ValueError, match="9 and 20 rows: give at least 10"):
        ce.plan(*pilots(9, 20, 1))


def test_command(tmp_path, capsys):
    for name, sample in zip("ab", pilots(30, 30, 2), strict=True):
        np.save(tmp_path / f"{name}.npy", sample)
    paths = [str(tmp_path / f"{name}.npy") for name in "ab"]
    assert main(["plan", *paths, "--subsamples", "20"]) == 0
    assert "rows for 0.8 power at level 0.05" in capsys.readouterr().out
    assert main(["plan", *paths, "--subsamples", "20", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_x"] < 30
    assert main(["plan", paths[0]]) == 2


def test_plans_are_no_smaller_than_what_was_looked_at():
    """Where a handful of rows show it, and the interval holds the plan."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(50, 2)), rng.normal(size=(70, 2)) + 30
    found = ce.plan(x, y, ce.NearestNeighbours(1), rng=0)
    assert min(found.n_x, found.n_y) >= SMALLEST
    assert found.interval == (None, found.n_x + found.n_y)  # fewer might do as well
    assert "95% interval up to 12\n" in repr(found)


def test_a_pilot_much_larger_than_needed_is_halved_until_it_tells():
    """Where 33 and 33 rows are needed, and the usual subsamples find it in all cases."""
    found = ce.plan(*pilots(2500, 2500, 0.8), ce.EnergyKernel(), n_subsamples=40, rng=0)
    assert found.curve[0][1] < 0.7
    assert found.n_x == pytest.approx(33, rel=0.3)
    low, high = found.interval
    assert low < 66 < high < 140


def test_the_interval_has_the_error_of_the_subsamples():
    """Which is all there is if the pilot is much larger than needed."""
    sizes, n = [25, 50, 100, 200], 10**6
    curve = [(m, float(ndtr(0.25 * m**0.5 - ndtri(0.95)))) for m in sizes]
    width = []
    for count in (100, 10_000):
        fit = fitted(curve, n, 0.05, count)
        low, high = _planned(fit, curve, (n // 2, n // 2), 0.8, 0.05).interval
        assert low < ((ndtri(0.8) + ndtri(0.95)) / 0.25) ** 2 < high
        width.append(np.log(high / low))
    assert width[0] > 0.2 > 4 * width[1] / 3


@pytest.mark.parametrize("growth", [0.5, 1.0])
def test_the_error_of_a_large_pilot_falls_like_the_root_of_its_size(growth):
    """Whatever the growth: a pilot of 100 times the rows has a tenth of the error."""
    width = []
    for n in (4_000, 400_000):
        curve = [(m, float(ndtr(2.5 * (m / 100) ** growth - ndtri(0.95)))) for m in (50, 100, 200)]
        fit = fitted(curve, n, 0.05, 10**7)
        low, high = _planned(fit, curve, (n // 2, n // 2), 0.999, 0.05).interval
        width.append(np.log(high / low))
    assert width[1] == pytest.approx(width[0] / 10, rel=0.4)


def test_subsamples_that_all_differ_give_an_upper_bound_only():
    curve = [(10, 1.0)]
    plan = _planned(fitted(curve, 4000, 0.05, 100), curve, (2000, 2000), 0.8, 0.05)
    assert (plan.n_x, plan.n_y, plan.interval) == (5, 5, (None, 10))
