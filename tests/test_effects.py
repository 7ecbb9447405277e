"""How large a difference is: known answers, enumeration, and coverage by simulation."""

import json
from itertools import combinations
from math import prod

import matplotlib.pyplot as plt
import numpy as np
import pytest

import crossedge as ce
from crossedge.effects import as_edges, local_powers, mean_product
from crossedge.weights.edge_list import EdgeList


def _samples(rng, n_x=60, n_y=40, d=2, shift=1.0):
    y = rng.normal(size=(n_y, d))
    y[:, 0] += shift
    return rng.normal(size=(n_x, d)), y


@pytest.mark.parametrize(
    "weights", [ce.NearestNeighbours(3), ce.SpanningTree(), ce.SpanningTree(0.3)]
)
@pytest.mark.parametrize("tied", [False, True])
def test_the_estimate_is_that_of_divergence(weights, tied):
    x, y = _samples(np.random.default_rng(0))
    x, y = (np.round(x), np.round(y)) if tied else (x, y)
    found = ce.effect_size(x, y, weights)
    assert found.divergence == pytest.approx(ce.divergence(x, y, weights), abs=1e-12)
    assert found.interval[0] < found.divergence < found.interval[1]


def test_powers_of_the_mean_label_by_enumeration():
    """With ties: 3 atoms of 2 points each, whose pairs have weights of their own."""
    rng = np.random.default_rng(0)
    i, j = np.triu_indices(3)
    edges = EdgeList(np.array([0, 0, 1, 1, 2, 2]), i, j, rng.random(len(i)))
    signs = np.array([1.0, -1.0, 1.0, 1.0, -1.0, 1.0])
    W = edges.dense()
    for order, found in enumerate(local_powers(edges, signs), 1):
        for u in range(6):
            subsets = list(combinations([v for v in range(6) if v != u], order))
            below = sum(prod(W[u, v] for v in some) for some in subsets)
            above = sum(prod(W[u, v] * signs[v] for v in some) for some in subsets)
            assert found[u] == pytest.approx(above / below)
    assert mean_product(edges, signs) == pytest.approx(signs @ W @ signs / W.sum())
    assert mean_product(as_edges(edges), signs) == mean_product(edges, signs)


def test_how_often_the_nearest_neighbour_is_of_the_own_sample():
    x, y = [0.0, 1.0, 2.1, 3.3, 4.6], [10.0, 11.0, 12.1, 13.3, 14.6]
    found = ce.effect_size(x, y, tolerance=0.5)
    assert found.same_neighbour == 1.0
    assert found.same_neighbour_by_chance == pytest.approx(4 / 9)
    assert found.divergence == 1.0
    assert found.interval[0] < 0.9  # ten points prove little, though no edge crosses
    assert found.interval[1] == 1.0


def test_samples_without_a_crossing_still_have_an_interval():
    along = np.arange(50.0) ** 1.1
    low, high = ce.effect_size(along, along + 1000).interval
    assert 0.7 < low < 0.97
    assert high == 1.0


@pytest.mark.parametrize(("shift", "true"), [(0.0, 0.0), (2.0, 0.550)])
def test_coverage_and_level_at_the_tolerance(shift, true):
    """Normal samples in the plane; D by integration, as in benchmarks/effects.py."""
    rng = np.random.default_rng(1)
    found = [ce.effect_size(*_samples(rng, 80, 80, 2, shift), tolerance=true) for _ in range(150)]
    covered = np.mean([each.interval[0] <= true <= each.interval[1] for each in found])
    assert covered > 0.89  # 0.95 less three standard errors
    assert np.mean([each.tolerance_pvalue <= 0.05 for each in found]) < 0.11
    errors = [each.standard_error for each in found]
    if true:
        spread = np.std([each.divergence for each in found])
        assert 0.8 < np.sqrt(np.mean(np.square(errors))) / spread < 1.25


def test_only_the_upper_bound_on_a_classifier_holds_in_many_columns():
    """The best classifier errs for 15.9%, whatever the number of columns of noise."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(300, 50)), rng.normal(size=(300, 50)) + 2 * np.eye(50)[0]
    found = ce.effect_size(x, y)
    least, most = found.classifier_error
    assert 0.159 < least < most  # what neighbours see is not all
    assert f"wrong for at most {most:.1%} of the points" in repr(found)
    assert f"for at least {least:.1%} if neighbours see the whole difference" in repr(found)


def test_the_same_rows_tell_nothing():
    x, _ = _samples(np.random.default_rng(0))
    for y in (x, x[::-1]):
        found = ce.effect_size(x, y, tolerance=0.1)
        assert found.same_rows
        assert found.interval == (0, 1)
        assert (found.tolerance_pvalue, found.equivalence_pvalue) == (1, 1)
        assert "have the same rows" in repr(found)
    assert not ce.effect_size(x, np.concatenate([x[:-1], x[:1] + 1])).same_rows
    coins = np.arange(60.0) % 2  # equal by coincidence
    assert not ce.effect_size(coins, coins).same_rows


def test_results_in_all_forms():
    x, y = _samples(np.random.default_rng(0))
    found = ce.effect_size(x, y, tolerance=0.1)
    facts = json.loads(found.to_json())
    assert facts["interval"] == [*found.interval]
    numbers = [*found.interval, *found.classifier_error, found.divergence, found.standard_error]
    assert {type(number) for number in numbers} == {float}
    assert facts["weights"] == "3-nearest neighbours"
    assert "own sample" in repr(found)
    assert found._repr_html_().startswith("<table")
    plt.figure()
    axes = found.plot()
    assert list(axes.lines[0].get_xdata()) == [*found.interval]
    plt.close("all")
    assert found.tolerance_pvalue + found.equivalence_pvalue == pytest.approx(1)
    assert ce.effect_size(x, y).tolerance_pvalue is None
    assert ce.effect_size(x, y, max_points=50, rng=0).n_x == 30


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"confidence": 1.0}, ValueError, "confidence=1.0 is out of range"),
        ({"tolerance": 1.5}, ValueError, "tolerance=1.5 is out of range"),
        ({"tolerance": "a"}, TypeError, "tolerance='a' is no number"),
        ({"weights": ce.GaussianKernel()}, TypeError, "which is no graph"),
        ({"max_points": 6, "rng": 0}, ValueError, "at least 5 of each"),
        ({"scale": "x"}, ValueError, "scale"),
    ],
)
def test_bad_input(options, error, says):
    x, y = _samples(np.random.default_rng(0))
    with pytest.raises(error, match=says):
        ce.effect_size(x, y, **options)


def test_divergence_and_pictures_need_no_weights():
    x, y = _samples(np.random.default_rng(0))
    assert ce.divergence(x, y) == ce.divergence(x, y, ce.SpanningTree())
    axes = ce.plots.plot_graph(x, y, ax=plt.figure().gca())
    assert sum(len(part.get_segments()) for part in axes.collections[:2]) == 99
    plt.close("all")
