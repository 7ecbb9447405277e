"""Nearly whole weights: cold graphs, with a few near ties."""

import numpy as np
import pytest
import torch

import crossedge as ce
from crossedge.distances import matrix_distances
from crossedge.null import tilted
from crossedge.null.forests import forest_of
from crossedge.null.laws import exact_law, rounding
from crossedge.null.moments import label_moments
from crossedge.null.permutations import permute
from crossedge.null.pvalues import log_form_tail
from crossedge.null.structure import Structure, structure_of
from crossedge.statistics import STATISTICS
from crossedge.weights import DenseWeights, EdgeList

CROSS = STATISTICS["cross"]
FAMILIES = {
    "tree": ce.SpanningTree,
    "1-NN": lambda t: ce.NearestNeighbours(1, t),
    "3-NN": lambda t: ce.NearestNeighbours(3, t),
}


def pairs_of(family, relative, n=80, d=5):
    points = torch.as_tensor(np.random.default_rng(2).normal(size=(n, d)))
    distances = torch.cdist(points, points)
    temperature = relative * float(distances[distances > 0].median())
    return FAMILIES[family](temperature).pairs(matrix_distances(distances.numpy()))


def ratios(W, n_x, structures, draws=400_000):
    """Of smooth tails to those of permutations, whose own error is 3% at 0.003."""
    moments = label_moments(W, n_x, W.n - n_x, fourth=True)
    law, form = exact_law(CROSS, moments), CROSS.form(moments)
    values = np.sort(permute(W, CROSS, moments, draws, 0).values)
    levels = (0.2, 0.1, 0.03, 0.01, 0.003)
    observed = [values[int(level * draws) - 1] for level in levels]
    return np.array(
        [
            [
                float(torch.exp(log_form_tail("pearson3", (law.mean - t) / law.std, *given)))
                / (values <= t + rounding(CROSS, moments, t)).mean()
                for t in observed
            ]
            for given in [(moments, form, -1, structure) for structure in structures]
        ]
    )


@pytest.mark.slow
@pytest.mark.parametrize("n_x", [40, 16])
@pytest.mark.parametrize("family", FAMILIES)
def test_steps_and_near_ties(family, n_x):
    off = []
    for relative in (1e-4, 3e-4):
        W = pairs_of(family, relative)
        structure = structure_of(W, n_x)
        by_tilts, frozen, smooth = ratios(W, n_x, (structure, by_law(structure), Structure()))
        np.testing.assert_allclose(by_tilts, 1, atol=0.08)
        np.testing.assert_allclose(frozen, 1, atol=0.15)
        np.testing.assert_allclose(frozen[:4], 1, atol=0.1)
        off.append(abs(smooth - 1).max())
    assert max(off) > 0.03  # smooth laws know of no steps


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("relative", [1e-12, 1e-300])
def test_the_cold_limit_is_a_list_of_edges(family, relative):
    """And so has the p-value of temperature 0."""
    cold, classical = pairs_of(family, relative), pairs_of(family, 0.0)
    assert isinstance(cold, EdgeList)
    np.testing.assert_array_equal(cold.dense(), classical.dense())


def test_warm_weights_are_no_list():
    assert isinstance(pairs_of("tree", 1e-4), DenseWeights)
    assert structure_of(pairs_of("tree", 0.3), 40).frozen is None


def test_hot_weights_with_a_hub_are_not_frozen():
    """A few weights are near 1, and all counts vary by less than a step."""
    points = np.random.default_rng(77).standard_t(1.5, size=(80, 3))
    distances = torch.cdist(*[torch.from_numpy(points)] * 2)
    W = ce.SpanningTree(float(distances.median())).pairs(matrix_distances(distances.numpy()))
    assert (W.matrix > 0.5).any()
    assert structure_of(W, 40).frozen is None


def by_law(structure):
    """The law of nearly whole weights, as for so many points that none are tilted."""
    assert structure.frozen is not None
    return Structure(frozen=structure.frozen, of_whole=structure.of_whole)


@pytest.mark.parametrize(("family", "n_x"), [("tree", 16), ("1-NN", 16), ("3-NN", 40)])
def test_the_law_of_nearly_whole_weights(family, n_x):
    W = pairs_of(family, 1e-4)
    law, smooth = ratios(W, n_x, (by_law(structure_of(W, n_x)), Structure()), draws=100_000)
    np.testing.assert_allclose(law, 1, atol=0.1)
    assert abs(smooth - 1).max() > 0.1  # smooth laws know of no steps


@pytest.mark.parametrize("family", ["tree", "1-NN"])
def test_far_out_it_is_the_law_of_the_classical_graph(family):
    """A forest, whose law is known, with cold weights next to its own."""
    W, classical = pairs_of(family, 1e-4, n=150), pairs_of(family, 0.0, n=150)
    structure, forest = by_law(structure_of(W, 60)), forest_of(classical)
    moments = label_moments(W, 60, 90, fourth=True)
    law, form = exact_law(CROSS, moments), CROSS.form(moments)
    for count in (5, 15, 30, 50):
        z = (law.mean - (count + 0.5) * classical.step) / law.std
        found = float(log_form_tail("pearson3", z, moments, form, -1, structure))
        assert found == pytest.approx(forest.log_lower_tail(60, count), abs=0.1)


@pytest.mark.parametrize("part", [by_law, lambda structure: structure], ids=["law", "tilted"])
def test_tails_fall_as_the_count_does(part, monkeypatch):
    monkeypatch.setattr(tilted, "CHAINS", 1024)
    monkeypatch.setattr(tilted, "BLOCKS", 16)
    W = pairs_of("tree", 3e-4)
    moments = label_moments(W, 16, 64, fourth=True)
    structure, form = part(structure_of(W, 16)), CROSS.form(moments)
    z = torch.linspace(-3, 9, 8, dtype=torch.float64)
    found = [float(log_form_tail("pearson3", one, moments, form, -1, structure)) for one in z]
    assert np.isfinite(found).all()
    assert (np.diff(found) <= 1e-3).all()
    assert found[-1] < -20
