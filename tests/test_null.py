from math import comb

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from brute_force import all_labellings, cross_counts
from crossedge.null import permutations
from crossedge.null.laws import exact_law
from crossedge.null.moments import centred_sums, label_moments
from crossedge.null.permutations import Labellings, observe, permute, relabel
from crossedge.numerics.labellings import LANES, draw_labels, list_labels, packed, unpacked
from crossedge.numerics.packed_labellings import coin_digits, draw_packed
from crossedge.randomness import random_key
from crossedge.statistics import STATISTICS
from random_weights import random_graph

CROSS = STATISTICS["cross"]


def cross_moments(graph, n_x, n_y):
    return exact_law(CROSS, label_moments(graph, n_x, n_y))


def permute_cross(graph, n_x, n_resamples, rng):
    return permute(graph, CROSS, label_moments(graph, n_x, graph.n - n_x), n_resamples, rng)


def drawn_labels(how, key, n, n_x, blocks):
    """(labellings, n) of 0 and 1, by numpy or by compiled loops."""
    if how == "numpy":
        return np.concatenate([draw_labels(key, b, n, n_x, LANES).T for b in range(blocks)])
    digits = coin_digits(n, n_x) if how == "compiled" else how
    words = [draw_packed(np.uint64(key), b, n, n_x, digits) for b in range(blocks)]
    return np.concatenate([unpacked(one).T for one in words])


@pytest.fixture(params=["products", "counters", "compiled draws"])
def engine(request, monkeypatch):
    """Every way from weights to the values of random labellings."""
    if request.param != "products":
        monkeypatch.setattr(permutations, "PRODUCTS", 0)
    if request.param == "compiled draws":
        monkeypatch.setattr(permutations, "NUMBERS", 0)
    return request.param


sizes = st.integers(1, 5)


@given(n_x=sizes, n_y=sizes, seed=st.integers(0, 999), density=st.sampled_from([0.0, 0.4, 1.0]))
def test_moments_are_those_of_all_labellings(n_x, n_y, seed, density):
    n = n_x + n_y
    for atoms in {n, max(1, n // 2)}:
        graph = random_graph(n, atoms, density, seed)
        counts = cross_counts(graph.dense().numpy(), all_labellings(n, n_x))
        moments = cross_moments(graph, n_x, n_y)
        assert moments.mean == pytest.approx(counts.mean(), abs=1e-12)
        assert moments.std == pytest.approx(counts.std(), abs=1e-12)
        if counts.std() > 1e-9:
            skewness = ((counts - counts.mean()) ** 3).mean() / counts.std() ** 3
            assert moments.skewness == pytest.approx(skewness, abs=1e-9)
        else:
            assert moments.std == moments.skewness == 0


def test_moments_of_a_large_graph():
    """Nothing cancels where m^3 is nine orders above the third moment."""
    n = 3000
    graph = random_graph(n, n, 0.003, 0)
    values = permute_cross(graph, 1000, 200_000, 0).values
    moments = cross_moments(graph, 1000, 2000)
    assert moments.mean == pytest.approx(values.mean(), abs=4 * values.std() / 200_000**0.5)
    assert moments.std == pytest.approx(values.std(), rel=0.01)
    assert moments.skewness == pytest.approx(stats.skew(values), abs=0.03)


def test_the_paper_formula_for_the_variance():
    graph = random_graph(40, 40, 0.3, 1)
    n_x, n_y, n = 15, 25, 40
    W = graph.dense().numpy()
    chi1 = n_x * n_y / (n * (n - 1))
    chi2 = 4 * (n_x - 1) * (n_y - 1) / ((n - 2) * (n - 3))
    m = W.sum() / 2
    variance = (  # lemma 2
        chi1 * (1 - chi2) * (W.sum(0) ** 2).sum()
        + chi1 * chi2 * (W**2).sum() / 2
        + chi1 * (chi2 - 4 * chi1) * m**2
    )
    assert cross_moments(graph, n_x, n_y).std == pytest.approx(variance**0.5, rel=1e-12)


def test_centred_sums_are_those_of_the_matrix_without_row_effects():
    graph = random_graph(30, 20, 0.5, 2)
    W = graph.dense().numpy()
    W -= (1 - np.eye(30)) * W.sum() / (30 * 29)
    s, degree = centred_sums(graph), W.sum(0)
    effect = degree / 28  # the row sums are 0 without it
    W -= (1 - np.eye(30)) * (effect + effect[:, None])
    np.testing.assert_allclose(W.sum(0), 0, atol=1e-12)
    expected = {
        "squares": (W**2).sum() / 2,
        "cubes": (W**3).sum() / 2,
        "degree2": (degree**2).sum(),
        "degree3": (degree**3).sum(),
        "degree_squares": degree @ (W**2).sum(0),
        "degree_degree": degree @ W @ degree,
        "triangles": np.trace(W @ W @ W),
    }
    for name, value in expected.items():
        assert getattr(s, name) == pytest.approx(value, rel=1e-9), name


@pytest.mark.parametrize("how", ["numpy", "compiled"])
@pytest.mark.parametrize(
    ("n", "n_x"), [(1000, 500), (1000, 1), (777, 776), (64, 20), (2, 1), (5, 2), (900, 100)]
)
def test_drawn_labellings_have_the_right_number(how, n, n_x):
    labels = drawn_labels(how, 3, n, n_x, 1)
    assert labels.shape == (LANES, n)
    assert (labels.sum(1) == n_x).all()


@pytest.mark.parametrize(("n", "n_x"), [(6, 3), (7, 2), (8, 7), (5, 1), (17, 2)])
@pytest.mark.parametrize("how", ["numpy", "compiled", 0, 1, 10])
def test_drawn_labellings_are_uniform(how, n, n_x):
    code = drawn_labels(how, 9, n, n_x, 60) @ (1 << np.arange(n))
    counts = np.unique(code, return_counts=True)[1]
    assert len(counts) == comb(n, n_x)
    assert stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize("how", ["numpy", 4])
def test_drawn_labellings_are_independent(how):
    labels = drawn_labels(how, 1, 40, 16, 200)
    centred = labels - 0.4
    # between points, whose covariance is known, and between neighbouring lanes, where it is 0
    covariance = centred.T @ centred / len(labels)
    off = covariance[~np.eye(40, dtype=bool)]
    np.testing.assert_allclose(off, -0.24 / 39, atol=5 * 0.24 / len(labels) ** 0.5)
    for lag in (1, 64, LANES):
        overlap = (centred[:-lag] * centred[lag:]).sum(1).mean()
        assert abs(overlap) < 5 * 0.24 * (40 / len(labels)) ** 0.5


@pytest.mark.parametrize(("n", "n_x"), [(8, 3), (12, 6), (20, 1), (2, 1), (14, 4)])
def test_enumeration_visits_each_labelling_once(n, n_x):
    total = comb(n, n_x)
    starts = range(0, total, 100)
    found = [list_labels(first, min(100, total - first), n, n_x).T for first in starts]
    np.testing.assert_array_equal(np.concatenate(found), all_labellings(n, n_x))


def test_packed_labels_come_back():
    labels = np.random.default_rng(0).integers(0, 2, (40, LANES), dtype=np.uint8)
    np.testing.assert_array_equal(unpacked(packed(labels)), labels)
    np.testing.assert_array_equal(unpacked(packed(labels[:, :70]))[:, :70], labels[:, :70])


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("atoms", [50, 20])
@pytest.mark.parametrize("n_x", [20, 35])
def test_the_engine_counts_what_the_definition_says(engine, whole, atoms, n_x):
    graph = random_graph(50, atoms, 0.4, 5, whole)
    labellings = Labellings(50, n_x, 1500, 0)
    found = relabel(graph, labellings, range(labellings.blocks))
    labels = np.concatenate([labellings.labels(b).T for b in range(labellings.blocks)])
    assert (labels.sum(1) == n_x).all()
    expected = cross_counts(graph.dense().numpy(), labels)
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
    monkeypatch.setattr(permutations, "PRODUCTS", 0)
    np.testing.assert_array_equal(products, permute_cross(graph, 25, 3000, 42).values)


@pytest.mark.parametrize("n_x", [2, 4, 7])
def test_all_labellings_where_they_are_few(n_x):
    graph = random_graph(9, 9, 0.6, 1)
    total = comb(9, n_x)
    null = permute_cross(graph, n_x, total, 0)
    expected = cross_counts(graph.dense().numpy(), all_labellings(9, n_x))
    assert null.exact
    np.testing.assert_allclose(np.sort(null.values), np.sort(expected), rtol=1e-12)
    assert not permute_cross(graph, n_x, total - 1, 0).exact


def test_observed_value_of_any_labelling():
    graph = random_graph(30, 12, 0.5, 8)
    in_x = np.random.default_rng(0).random(30) < 0.4
    expected = cross_counts(graph.dense().numpy(), [in_x.astype(float)])[0]
    x, y, _ = observe(graph, in_x)
    assert graph.total - x - y == pytest.approx(expected, rel=1e-12)


def test_every_source_of_randomness():
    assert random_key(7) == random_key(7) == random_key(np.random.default_rng(7))
    generator = torch.Generator().manual_seed(7)
    first, second = random_key(generator), random_key(generator)
    assert first != second
    assert first == random_key(torch.Generator().manual_seed(7))
    assert random_key(None) != random_key(None)


@pytest.mark.parametrize("rng", ["seed", 1.5, np.random.RandomState(0), -1])
def test_no_other_source(rng):
    with pytest.raises((TypeError, ValueError), match="rng"):
        random_key(rng)
