"""Moments over all labellings, against enumeration and the paper's formulas."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import crossedge as ce
from brute_force import all_labellings, cross_counts
from crossedge.data.distances import point_distances
from crossedge.moments import Form, LabelMoments
from crossedge.moments.edges import EdgeSums
from crossedge.null.labellings import permute
from crossedge.statistics import STATISTICS
from crossedge.weights import DenseWeights
from random_weights import random_graph, random_matrix

CROSS = STATISTICS["cross"]
SIZES = st.integers(1, 5)


def cross_moments(graph, n_x, n_y):
    return CROSS.law.null_moments(CROSS, LabelMoments(graph, n_x, n_y))


@given(n_x=SIZES, n_y=SIZES, seed=st.integers(0, 999), density=st.sampled_from([0.0, 0.4, 1.0]))
def test_moments_are_those_of_all_labellings(n_x, n_y, seed, density):
    n = n_x + n_y
    for atoms in {n, max(1, n // 2)}:
        graph = random_graph(n, atoms, density, seed)
        counts = cross_counts(graph.dense(), all_labellings(n, n_x))
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
    values = permute(graph, CROSS, LabelMoments(graph, 1000, 2000), 100_000, 0).values
    moments = cross_moments(graph, 1000, 2000)
    assert moments.mean == pytest.approx(values.mean(), abs=4 * values.std() / 100_000**0.5)
    assert moments.std == pytest.approx(values.std(), rel=0.01)
    assert moments.skewness == pytest.approx(stats.skew(values), abs=0.03)


def test_the_paper_formula_for_the_variance():
    graph = random_graph(40, 40, 0.3, 1)
    n_x, n_y, n = 15, 25, 40
    W = graph.dense()
    chi1 = n_x * n_y / (n * (n - 1))
    chi2 = 4 * (n_x - 1) * (n_y - 1) / ((n - 2) * (n - 3))
    m = W.sum() / 2
    variance = (  # lemma 2
        chi1 * (1 - chi2) * (W.sum(0) ** 2).sum()
        + chi1 * chi2 * (W**2).sum() / 2
        + chi1 * (chi2 - 4 * chi1) * m**2
    )
    assert cross_moments(graph, n_x, n_y).std == pytest.approx(variance**0.5, rel=1e-12)


def test_sums_are_those_of_the_matrix_without_row_effects():
    graph = random_graph(30, 20, 0.5, 2)
    W = graph.dense()
    W -= (1 - np.eye(30)) * W.sum() / (30 * 29)
    degree = W.sum(0)
    effect = degree / 28  # the row sums are 0 without it
    W -= (1 - np.eye(30)) * (effect + effect[:, None])
    np.testing.assert_allclose(W.sum(0), 0, atol=1e-12)
    sums = EdgeSums(graph)
    found = {**sums.second()._asdict(), **sums.third()._asdict()}
    expected = {
        "total": graph.total,
        "squares": (W**2).sum() / 2,
        "cubes": (W**3).sum() / 2,
        "degree2": (degree**2).sum(),
        "degree3": (degree**3).sum(),
        "degree_squares": degree @ (W**2).sum(0),
        "degree_degree": degree @ W @ degree,
        "triangles": np.trace(W @ W @ W),
    }
    assert found == {name: pytest.approx(value, rel=1e-9) for name, value in expected.items()}


def all_within(W, n_x):
    """R_x and R_y for every labelling."""
    z = all_labellings(len(W), n_x).astype(float)
    return [((part @ W) * part).sum(1) / 2 for part in (z, 1 - z)]


@given(n_x=SIZES, n_y=SIZES, seed=st.integers(0, 999), density=st.sampled_from([0.0, 0.3, 1.0]))
def test_all_joint_moments_are_those_of_enumeration(n_x, n_y, seed, density):
    W = random_matrix(n_x + n_y, seed, density)
    x, y = all_within(W, n_x)
    r, l = 2 * (x + y) - W.sum() / 2, 2 * (x - y)  # noqa: E741
    found = LabelMoments(DenseWeights(W), n_x, n_y)
    close = {"rel": 1e-9, "abs": 1e-11 * (1 + W.sum()) ** 3}
    assert found.mean(Form(1, 0)) == pytest.approx(r.mean(), **close)
    assert found.mean(Form(0, 1)) == pytest.approx(l.mean(), **close)
    r, l = r - r.mean(), l - l.mean()  # noqa: E741
    t = r - found.slope * l
    assert (t * l).mean() == pytest.approx(0, abs=close["abs"])
    second = (t * t).mean(), (l * l).mean()
    assert (found.tt, found.ll) == pytest.approx(second, **close)
    third = (t**3).mean(), (t * t * l).mean(), (t * l * l).mean(), (l**3).mean()
    assert found.third == pytest.approx(third, **close)
    if n_x + n_y > 1:
        assert found.rrrr == pytest.approx((r**4).mean(), rel=1e-8, abs=1e-10)
        assert found.tttt == pytest.approx((t**4).mean(), rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("atoms", [40, 15])
def test_edge_lists_and_matrices_have_the_same_moments(atoms):
    graph = random_graph(40, atoms, 0.3, 3)
    sparse = LabelMoments(graph, 15, 25)
    for dense in (graph.dense(), torch.from_numpy(graph.dense())):
        one = LabelMoments(DenseWeights(dense), 15, 25)
        for name in ("total", "tt", "ll"):
            assert float(getattr(sparse, name)) == pytest.approx(float(getattr(one, name)))
        assert sparse.third == pytest.approx([float(value) for value in one.third], rel=1e-9)


@pytest.mark.parametrize("names", [["mean", "std"], ["mean", "std", "skewness"]])
def test_moments_are_differentiable(names):
    def laws(upper):
        W = torch.zeros(6, 6, dtype=torch.float64)
        i, j = torch.triu_indices(6, 6, 1)
        W = W.index_put((i, j), upper)
        m = LabelMoments(DenseWeights(W + W.T), 2, 4)
        forms = m.weighted, m.difference
        return torch.stack([getattr(m, name)(form) for name in names for form in forms])

    upper = torch.rand(15, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(laws, (upper,))


@pytest.mark.parametrize("far", [1e5, 1e7, 3e7, 1e9])
@pytest.mark.parametrize("weights", ["energy", "neighbours"])
def test_a_far_point_does_not_spoil_the_moments(far, weights):
    """A row effect, as large as it may be, is nothing to the weighted count."""
    rng = np.random.default_rng(1)
    points = rng.normal(size=(80, 2))
    points[0] = [far, 0]
    family = ce.EnergyKernel() if weights == "energy" else ce.NearestNeighbours(1, far)
    laws = []
    for order in (np.arange(80), rng.permutation(80)):
        pairs = family.pairs(point_distances(points[order], 2.0))
        moments = LabelMoments(pairs, 30, 50)
        laws.append(
            [float(moments.std(moments.weighted)), float(moments.skewness(moments.weighted))]
        )
    assert laws[0] == pytest.approx(laws[1], rel=1e-4)
    assert 0.5 < laws[0][1] < 3


@pytest.mark.parametrize("temperature", [0.3, 2.0, 50.0])
def test_estimated_third_moments_are_near_the_exact_ones(temperature):
    points = np.random.default_rng(0).normal(size=(700, 4))
    pairs = ce.NearestNeighbours(1, temperature).pairs(point_distances(points, 2.0))
    exact, found = LabelMoments(pairs, 300, 400), LabelMoments(pairs, 300, 400, nearly=True)
    for form in (exact.weighted, exact.difference):
        assert found.skewness(form) == pytest.approx(exact.skewness(form), abs=0.02)
    assert found.third[0] != exact.third[0]
