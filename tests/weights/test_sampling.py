"""Random neighbourhoods, drawn from the measure whose marginals the weights are."""

import numpy as np
import pytest
import torch

import brute_force
import crossedge as ce
from smoothed_cases import distances_of, each_family


@each_family
@pytest.mark.parametrize(
    ("kind", "temperature"),
    [
        ("grid", 0.0),
        ("duplicates", 0.0),
        ("clusters", 0.05),
        ("clusters", (0.1, 3.0)),
        ("grid", (0.1, 3.0)),
    ],
)
def test_drawn_edges_have_the_marginals_as_frequencies(family, kind, temperature):
    distances, weights, draws = distances_of(kind, 8), family(temperature), 600
    rng = np.random.default_rng(0)
    counts = np.zeros((8, 8))
    for _ in range(draws):
        i, j = ce.sample_edges(weights, distances, rng).T.numpy()
        counts[i, j] += 1
    counts = (counts + counts.T) / draws
    W = weights(distances).numpy()
    assert counts.sum() == pytest.approx(W.sum())
    spread = np.sqrt(np.maximum(W, 1e-12) / draws)
    assert (np.abs(counts - W) < 5 * spread + 4 / draws * (W > 0)).all()


def test_a_drawn_tree_is_a_tree_and_reproducible():
    distances = distances_of("clusters", 50)
    for temperature in (1e-300, 0.01, 1.0, 1e300):
        edges = ce.sample_edges(ce.SpanningTree(temperature), distances, 3)
        assert brute_force.is_tree(edges.tolist(), 50)
        assert torch.equal(edges, ce.sample_edges(ce.SpanningTree(temperature), distances, 3))


BAD_DRAWS = {
    "a class": (ce.SpanningTree, torch.zeros(3, 3), "weights is a class"),
    "a name": ("tree", torch.zeros(3, 3), "weights is of type str"),
    "a batch": (ce.SpanningTree(), torch.zeros(2, 3, 3), "give one matrix"),
    "a list": (ce.SpanningTree(), [[0.0, 1.0], [1.0, 0.0]], "distances is of type list"),
}


@pytest.mark.parametrize(("weights", "distances", "message"), BAD_DRAWS.values(), ids=BAD_DRAWS)
def test_a_bad_draw_gets_one_clear_line(weights, distances, message):
    with pytest.raises((TypeError, ValueError), match=message):
        ce.sample_edges(weights, distances)
