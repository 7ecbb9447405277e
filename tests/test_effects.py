"""Known divergences, coverage, the level of the test against a tolerance, and ties."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import crossedge as ce
from crossedge.data.distances import pooled_distances
from crossedge.effects import as_edges, local_powers, mean_product


def normal_samples(rng, n_x, n_y, d, shift):
    return rng.normal(size=(n_x, d)), rng.normal(size=(n_y, d)) + shift * (np.arange(d) == 0)


def normal_divergence(shift, p):
    def overlap(t):
        f, g = norm.pdf(t), norm.pdf(t - shift)
        return f * g / (p * f + (1 - p) * g)

    return 1 - quad(overlap, -10, 10 + shift)[0]


def test_the_estimate_is_that_of_divergence():
    x, y = normal_samples(np.random.default_rng(0), 60, 40, 3, 1.0)
    for weights in (ce.NearestNeighbours(3), ce.SpanningTree(), ce.NearestNeighbours(2, 0.5)):
        found = ce.effect_size(x, y, weights)
        assert found.divergence == pytest.approx(float(ce.divergence(x, y, weights)), abs=1e-12)
        assert found.interval[0] <= found.divergence <= found.interval[1]


@pytest.mark.parametrize("tied", [False, True])
def test_products_and_powers_by_hand(tied):
    rng = np.random.default_rng(1)
    points = rng.normal(size=(24, 2)).round(0 if tied else 9)
    samples, distances = pooled_distances(points[:10], points[10:], 2.0)
    signs = np.where(samples.in_x, 1.0, -1.0)
    pairs = ce.NearestNeighbours(5).pairs(distances)
    W = np.asarray(pairs.dense())
    edges = as_edges(pairs)
    assert mean_product(edges, signs) == pytest.approx(signs @ W @ signs / W.sum())
    powers = local_powers(edges, signs)
    for i in range(24):
        w = np.delete(W[i], i)
        s = np.delete(signs, i)
        for degree, power in enumerate(powers, start=1):
            # the coefficient of t^degree in the product of 1 + t w_j s_j, over that without labels
            above, below = np.poly1d([1.0]), np.poly1d([1.0])
            for one, sign in zip(w, s, strict=True):
                above, below = above * np.poly1d([one * sign, 1]), below * np.poly1d([one, 1])
            assert power[i] == pytest.approx(above[degree] / below[degree], abs=1e-6)


@pytest.mark.parametrize(
    ("n_x", "n_y", "d", "shift"), [(60, 60, 2, 0.0), (60, 60, 1, 2.0), (120, 40, 2, 1.0)]
)
def test_the_interval_covers_and_the_tolerance_holds(n_x, n_y, d, shift):
    rng = np.random.default_rng(2)
    true = max(normal_divergence(shift, n_x / (n_x + n_y)), 0.0)
    covered, larger = 0, 0
    for _ in range(80):
        found = ce.effect_size(*normal_samples(rng, n_x, n_y, d, shift), tolerance=true)
        low, high = found.interval
        covered += low <= true <= high
        larger += found.tolerance_pvalue <= 0.05
    assert covered >= 69  # 95% of 80 is 76; fewer than 69 has probability 0.002
    assert larger <= 10  # 5% is 4; more than 10 has probability 0.002


def test_the_interval_is_not_too_wide():
    rng = np.random.default_rng(3)
    estimates, errors = [], []
    for _ in range(60):
        found = ce.effect_size(*normal_samples(rng, 80, 80, 2, 1.5))
        estimates.append(found.divergence)
        errors.append(found.standard_error)
    assert np.mean(errors) == pytest.approx(np.std(estimates), rel=0.35)


def test_far_and_equal_samples():
    rng = np.random.default_rng(4)
    apart = ce.effect_size(*normal_samples(rng, 50, 50, 2, 50.0), tolerance=0.5)
    assert apart.divergence == 1
    assert 0.8 < apart.interval[0] < 1
    assert apart.same_neighbour == 1
    assert apart.tolerance_pvalue < 1e-3 < 0.99 < apart.equivalence_pvalue
    same = np.ones((30, 2))
    equal = ce.effect_size(same, same)
    assert equal.interval[0] == 0
    assert equal.same_neighbour == pytest.approx(equal.same_neighbour_by_chance)


def test_results_speak_and_write_themselves():
    rng = np.random.default_rng(5)
    table = pd.DataFrame({"age": rng.normal(40, 12, 90), "city": rng.choice(["<b>", "Zug"], 90)})
    found = ce.effect_size(table[:50], table[50:], tolerance=0.2)
    assert json.loads(found.to_json()) == found.to_dict()
    assert "by chance" in repr(found)
    assert "larger than 0.2: p = " in repr(found)
    assert "<table" in found._repr_html_()


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"confidence": 1.0}, ValueError, "confidence=1.0 is out of range"),
        ({"confidence": "95%"}, TypeError, "confidence='95%' is no number"),
        ({"tolerance": -0.1}, ValueError, "tolerance=-0.1 is out of range"),
        ({"weights": ce.GaussianKernel()}, TypeError, "graph"),
        ({"scale": "tall"}, ValueError, "scale='tall' is unknown"),
    ],
)
def test_bad_arguments(change, error, words):
    x = np.random.default_rng(6).normal(size=(20, 2))
    with pytest.raises(error, match=words):
        ce.effect_size(x, x + 1, **change)


def test_samples_that_are_too_small():
    x = np.random.default_rng(7).normal(size=(4, 2))
    with pytest.raises(ValueError, match="4 and 4 points: an interval needs at least 5"):
        ce.effect_size(x, x + 1)


def test_random_points_of_many():
    x, y = normal_samples(np.random.default_rng(8), 300, 200, 2, 1.0)
    found = ce.effect_size(x, y, max_points=100, rng=0)
    assert (found.n_x, found.n_y) == (60, 40)
    assert found.to_dict() == ce.effect_size(x, y, max_points=100, rng=0).to_dict()
