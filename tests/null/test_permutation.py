"""The permutation distribution, by every engine."""

from math import comb

import numpy as np
import pytest
import torch

import crossedge as ce
from brute_force import all_labellings, cross_counts
from crossedge.moments import LabelMoments
from crossedge.null import labellings
from crossedge.null.labellings import Labellings, observe, permute, relabel
from crossedge.null.stopping import AtCount
from crossedge.statistics import STATISTICS
from crossedge.statistics.mean_discrepancies import mmd_deviation
from crossedge.weights import DenseWeights
from random_weights import random_graph, random_matrix

CROSS = STATISTICS["cross"]


def permute_cross(graph, n_x, n_resamples, rng):
    return permute(graph, CROSS, LabelMoments(graph, n_x, graph.n - n_x), n_resamples, rng)


@pytest.fixture(params=["products", "counters", "compiled draws"])
def engine(request, monkeypatch):
    """Every way from weights to the values of random labellings."""
    if request.param != "products":
        monkeypatch.setattr(labellings, "MATRIX_WORK", 0)
    if request.param == "compiled draws":
        monkeypatch.setattr(labellings, "FEW_LABELS", 0)
    return request.param


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("atoms", [50, 20])
@pytest.mark.parametrize("n_x", [20, 35])
def test_the_engine_counts_what_the_definition_says(engine, whole, atoms, n_x):
    graph = random_graph(50, atoms, 0.4, 5, whole)
    drawn = Labellings(50, n_x, 1500, 0)
    found = relabel(graph, drawn, range(drawn.blocks))
    labels = np.concatenate([drawn.labels(b).T for b in range(drawn.blocks)])
    assert (labels.sum(1) == n_x).all()
    expected = cross_counts(graph.dense(), labels)
    assert graph.is_count == (whole and atoms == 50)
    np.testing.assert_allclose(graph.total - found.x - found.y, expected, rtol=1e-12)


@pytest.mark.parametrize("whole", [True, False])
def test_permutations_do_not_depend_on_threads(engine, whole):
    graph = random_graph(400, 400, 0.02, 5, whole)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = permute_cross(graph, 160, 3000, 42).values
        torch.set_num_threads(3)
        together = permute_cross(graph, 160, 3000, 42).values
    finally:
        torch.set_num_threads(threads)
    np.testing.assert_array_equal(alone, together)
    assert len(alone) == 3000
    assert (alone != permute_cross(graph, 160, 3000, 43).values).any()


def test_counters_and_products_see_the_same_labellings(monkeypatch):
    graph = random_graph(60, 60, 0.2, 5, True)
    products = permute_cross(graph, 25, 3000, 42).values
    monkeypatch.setattr(labellings, "MATRIX_WORK", 0)
    np.testing.assert_array_equal(products, permute_cross(graph, 25, 3000, 42).values)


@pytest.mark.parametrize("n_x", [2, 4, 7])
def test_all_labellings_where_they_are_few(n_x):
    graph = random_graph(9, 9, 0.6, 1)
    total = comb(9, n_x)
    null = permute_cross(graph, n_x, total, 0)
    expected = cross_counts(graph.dense(), all_labellings(9, n_x))
    assert null.exact
    np.testing.assert_allclose(np.sort(null.values), np.sort(expected), rtol=1e-12)
    assert not permute_cross(graph, n_x, total - 1, 0).exact


def test_observed_value_of_any_labelling():
    graph = random_graph(30, 12, 0.5, 8)
    in_x = np.random.default_rng(0).random(30) < 0.4
    expected = cross_counts(graph.dense(), [in_x.astype(float)])[0]
    x, y, _ = observe(graph, in_x)
    assert graph.total - x - y == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n_x", [20, 35])
def test_the_dense_engine_counts_what_the_definition_says(n_x):
    W = random_matrix(50, 1)
    drawn = Labellings(50, n_x, 1500, 0)
    x, y, deviation = relabel(DenseWeights(W), drawn, range(drawn.blocks), True)
    z = np.concatenate([drawn.labels(block).T for block in range(drawn.blocks)])
    z = z.astype(float)
    for found, part in ((x, z), (y, 1 - z)):
        np.testing.assert_allclose(found, ((part @ W) * part).sum(1) / 2, rtol=1e-11)
    np.testing.assert_allclose(deviation, mmd_deviation(W, z.T), rtol=1e-11)


def test_early_stopping_is_besag_and_clifford():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(50, 2)), rng.normal(size=(50, 2))
    weights = ce.SpanningTree(0.3)
    whole = ce.two_sample(x, y, weights, n_resamples=30_000, rng=0)
    stopped = ce.two_sample(x, y, weights, n_resamples=30_000, rng=0, early_stopping=50)
    extreme = np.flatnonzero(whole.null_distribution <= whole.statistic + 1e-9)
    assert len(stopped.null_distribution) == extreme[49] + 1
    assert stopped.pvalue == pytest.approx(50 / (extreme[49] + 1))
    np.testing.assert_array_equal(
        stopped.null_distribution, whole.null_distribution[: extreme[49] + 1]
    )
    far = ce.two_sample(x, y + 3, weights, n_resamples=30_000, rng=0, early_stopping=50)
    assert far.pvalue == 1 / 30_001
    assert len(far.null_distribution) == 30_000


def test_labellings_beyond_counting_are_drawn():
    rng = np.random.default_rng(0)
    found = ce.two_sample(
        rng.normal(size=20),
        rng.normal(size=15),
        ce.SpanningTree(),
        n_resamples=10**9,
        early_stopping=5,
        rng=0,
    )
    assert "random labellings, stopped early" in found.method


def test_stopping_early_with_all_labellings_changes_nothing():
    graph = random_graph(8, 8, 0.6, 1)
    moments = LabelMoments(graph, 4, 4)
    cross = STATISTICS["cross"]
    everything = permute(graph, cross, moments, 1000, 0)
    stopped = permute(graph, cross, moments, 1000, 0, AtCount(1), -1e9)
    assert everything.exact
    assert stopped.exact
    np.testing.assert_array_equal(stopped.values, everything.values)
