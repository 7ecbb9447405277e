"""Moments of designs, against all labellings."""

import numpy as np
import pytest

import crossedge as ce
from crossedge.data.designs import Design, design_of
from crossedge.data.samples import Samples
from crossedge.moments import Form, LabelMoments, blocked
from crossedge.null.labellings import Labellings, moments_of, observe, relabel
from crossedge.weights import DenseWeights
from random_weights import random_graph, random_matrix

SAMPLE = np.array([0, 0, 1, 1, 1, 0, 1, 1, 1, 0, 0, 0, 1, 1])
CLUSTERS = np.repeat(np.arange(7), [2, 1, 2, 3, 1, 2, 3])
OF_CLUSTER = np.array([0, 1, 0, 1, 0, 1, 1])
DESIGNS = {
    "pairs": ("pairs", np.repeat([0, 1], 7)),
    "free": (ce.Strata(np.zeros(14)), SAMPLE),
    "strata": (ce.Strata([0] * 5 + [1] * 4 + [2] * 5), SAMPLE),
    "small strata": (ce.Strata([0] * 7 + [1] * 3 + [2] * 2 + [3, 4]), SAMPLE),
    "clusters": (ce.Clusters(CLUSTERS), OF_CLUSTER[CLUSTERS]),
    "clusters in strata": (
        ce.Clusters(CLUSTERS, (CLUSTERS > 1) & (CLUSTERS < 6)),
        OF_CLUSTER[CLUSTERS],
    ),
}


def everything(weights, blocks, sample):
    design = design_of(blocks, sample)
    samples = Samples(np.empty((14, 0)), sample == 0, design=design)
    every = Labellings(14, samples.n_x, 10**6, 0, design)
    assert every.exact
    labels = np.concatenate([every.labels(block).T for block in range(every.blocks)])
    return samples, every, labels


@pytest.mark.parametrize("kind", ["matrix", "graph"])
@pytest.mark.parametrize(("blocks", "sample"), DESIGNS.values(), ids=DESIGNS)
def test_moments_are_those_of_all_labellings(blocks, sample, kind):
    pairs = DenseWeights(random_matrix(14, 1)) if kind == "matrix" else random_graph(14, 9, 0.5, 2)
    samples, every, labels = everything(pairs, blocks, sample)
    found = relabel(pairs, every, range(every.blocks))
    for row in (0, len(labels) // 2, len(labels) - 1):  # each labelling sees the same values
        seen = observe(pairs, labels[row] == 1, design=samples.design)
        assert (seen.x, seen.y) == pytest.approx((found.x[row], found.y[row]), rel=1e-12)
    moments = moments_of(pairs, samples)
    R, L = 2 * (found.x + found.y) - moments.total, 2 * (found.x - found.y)
    for form in (Form(1, 0), Form(0, 1), Form(0.7, -0.4), moments.weighted, moments.difference):
        values = form.a * R + form.b * L
        assert moments.mean(form) == pytest.approx(values.mean(), abs=1e-10)
        assert moments.varies(form) == (values.std() > 1e-9)
        assert moments.std(form) == pytest.approx(values.std() if moments.varies(form) else 0)
        z = moments.zscore(found.x, found.y, form)
        if moments.varies(form):
            assert (z.mean(), z.std()) == pytest.approx((0, 1), abs=1e-9)
            tolerance = 1e-8 if every.count <= 2048 else 0.2  # or of random labellings
            assert moments.skewness(form) == pytest.approx((z**3).mean(), abs=tolerance)
    apart = np.cov(moments.weighted.a * R + moments.weighted.b * L, L, bias=True)[0, 1]
    assert apart == pytest.approx(0, abs=1e-8 * np.var(L) + 1e-10)


def test_free_exchange_within_one_stratum_has_the_usual_moments():
    pairs = DenseWeights(random_matrix(14, 3))
    samples, _, _ = everything(pairs, *DESIGNS["free"])
    usual, ours = LabelMoments(pairs, samples.n_x, samples.n_y), moments_of(pairs, samples)
    assert ours.weighted == pytest.approx(usual.weighted)
    for form in (usual.weighted, usual.difference, Form(1, 0)):
        assert ours.mean(form) == pytest.approx(usual.mean(form))
        assert ours.std(form) == pytest.approx(usual.std(form))


def test_within_sums_of_unequal_clusters_are_evened():
    """With equal weights of all pairs, no labelling differs from another."""
    pairs = DenseWeights(np.ones((14, 14)) - np.eye(14))
    samples, every, labels = everything(pairs, *DESIGNS["clusters"])
    assert len(set(labels.sum(1))) > 1
    found = relabel(pairs, every, range(every.blocks))
    np.testing.assert_allclose(found.x, found.x[0])
    np.testing.assert_allclose(found.y, found.y[0])
    assert not moments_of(pairs, samples).varies(Form(1, 1))


def test_moments_of_many_points_are_close(monkeypatch):
    pairs = DenseWeights(random_matrix(60, 5))
    design = design_of(ce.Strata(np.arange(60) % 3), np.arange(60) % 4 // 2)
    samples = Samples(np.empty((60, 0)), np.arange(60) % 4 < 2, design=design)
    exact = moments_of(pairs, samples)
    monkeypatch.setattr(blocked, "MOST_EXACT_POINTS", 50)
    found = moments_of(pairs, samples)
    assert (exact.exact, found.exact) == (True, False)
    for form in (Form(1, 0), Form(0, 1)):
        std = exact.std(form)
        assert found.mean(form) == pytest.approx(exact.mean(form), abs=0.15 * std)
        assert found.std(form) == pytest.approx(std, rel=0.1)


def test_mean_rows_are_those_of_all_labellings():
    samples, _, labels = everything(None, *DESIGNS["clusters in strata"])
    assert isinstance(samples.design, Design)
    assert not samples.design.is_even
    rows = [labels.sum(1).mean(), 14 - labels.sum(1).mean()]
    np.testing.assert_allclose(samples.design.mean_rows, rows)
