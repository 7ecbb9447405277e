"""The tests of others in benchmarks/, against their definitions; what the scoreboard prints."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def load(name):
    spec = spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


peers, scores = load("peers"), load("scores")


def plain_mmd(k, x, y):
    """The unbiased squared MMD by its definition: a mean over pairs of different points."""
    within = [
        np.mean([k(a, b) for i, a in enumerate(z) for j, b in enumerate(z) if i != j])
        for z in (x, y)
    ]
    return sum(within) - 2 * np.mean([k(a, b) for a in x for b in y])


@pytest.mark.parametrize("sizes", [(4, 4), (3, 6)])
def test_one_product_gives_the_mmd_of_every_labelling(sizes):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(sum(sizes), 2))
    kernel = np.exp(-abs(points[:, None] - points).sum(2))
    in_x = peers.labellings(*sizes, 5, rng)
    assert (in_x.sum(0) == sizes[0]).all()
    expected = [
        plain_mmd(lambda a, b: np.exp(-abs(a - b).sum()), points[s == 1], points[s == 0])
        for s in in_x.T
    ]
    found = peers.squared_mmds(peers.off_diagonal(kernel), in_x)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_sign_of_the_wild_bootstrap_swaps_a_pair():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 5, 2))
    swapped_x, swapped_y = np.concatenate([y[:1], x[1:]]), np.concatenate([x[:1], y[1:]])
    kernel = peers.PROFILES["euclidean"]

    def sum_of_h(x, y):
        k = [[kernel(np.linalg.norm(a - b)) for b in [*x, *y]] for a in [*x, *y]]
        h = np.array(k)
        h = h[:5, :5] + h[5:, 5:] - h[:5, 5:] - h[5:, :5]
        return h.sum() - h.trace()

    points = np.concatenate([x, y])
    matrix = kernel(np.linalg.norm(points[:, None] - points, axis=2))
    signs = np.ones((5, 2))
    signs[0, 1] = -1
    found = peers.signed_sums(matrix, signs)
    np.testing.assert_allclose(found, [sum_of_h(x, y), sum_of_h(swapped_x, swapped_y)], rtol=1e-5)


@pytest.mark.parametrize("name", ["MMD-FUSE", "MMDAgg", "energy", "MMD, median"])
def test_they_see_a_shift_and_not_that_two_samples_are_one(name):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(30, 2))
    assert peers.PEERS[name](x, x + 3, rng)
    assert not peers.PEERS[name](x, x.copy(), rng)


def test_batches_answer_as_all_labellings_do(monkeypatch):
    """The answer at the first batch that suffices is that of the p-value."""
    values = iter([np.array([[2.0, *np.zeros(250 - n), *np.full(n, 3.0)]]) for n in (60, 40, 0)])
    monkeypatch.setattr(peers, "squared_mmds", lambda kernel, in_x: next(values)[0])
    rng = np.random.default_rng(0)
    assert not peers.rejects([None], lambda mmds: mmds[0], 3, 3, rng)  # 1 + 60 + 40 > 100.05
    assert len(list(values)) == 1


def test_the_quantiles_of_mmdagg_keep_their_level_together():
    """Twenty equal kernels need no correction: the aggregate is the single test at level 0.05."""
    rng = np.random.default_rng(3)
    one = rng.normal(size=4001)
    for rank, expected in ((0.04, True), (0.07, False)):
        one[0] = np.quantile(one[1:], 1 - rank)
        assert peers.aggregate(np.tile(one, (20, 1)), 2000, 50) == expected


def test_powers_means_and_regrets_of_a_known_table(tmp_path):
    tests = ["a", "b"]
    kept = {
        "shift": {"a": [1, 1, 1, 0], "b": [1, 0, 0, 0]},
        "scale": {"a": [0, 0, 0, 0], "b": [1, 1, 0, 0]},
        "equal": {"a": [1, 1, 1, 1], "b": [0, 0, 0, 0]},
    }
    scores.write(tmp_path / "kept.json", kept)
    assert scores.read(tmp_path / "kept.json") == kept
    assert scores.row("shift", kept["shift"], tests, 4) == "| shift | **0.75** | 0.25 | 4 |"
    assert scores.row("equal", kept["equal"], tests, 4) == "| equal | 1.00 | 0.00 | 4 |"
    mean, regret, largest, _, error = scores.summary(kept, list(kept), tests, 4)
    assert mean == "| mean power | **0.38** | **0.38** | |"
    assert regret == "| mean regret to the best | **0.25** | **0.25** | |"
    assert largest == "| largest regret | **0.50** | **0.50** | |"
    assert "at most 0.250" in error


def test_only_what_is_missing_is_measured_again():
    kept = {"shift": {"a": [1, 0], "b": [1]}}
    assert scores.missing(kept, "shift", ["a", "b"], 3) == [
        ("shift", 1, ("b",)),
        ("shift", 2, ("a", "b")),
    ]
    assert scores.missing(kept, "shift", ["a"], 2) == []


def test_ties_speak_for_equality():
    assert not peers.energy(np.zeros((9, 1)), np.zeros((8, 1)), np.random.default_rng(0))
