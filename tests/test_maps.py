"""Maps that are learned on one half of the data and tested on the other."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

import crossedge as ce


def samples(seed=0, n=60, d=6, change=False):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(n, d)), rng.normal(size=(n + 10, d))
    if change:
        y[:, 0] *= 3.0
    return x, y


class Returns(torch.nn.Module):
    """Whatever a function returns, times a parameter."""

    def __init__(self, function):
        super().__init__()
        self.function, self.factor = function, torch.nn.Parameter(torch.ones(()))

    def forward(self, points):
        return self.function(points * self.factor)


def test_it_finds_the_column_and_its_test_saw_none_of_the_learning():
    x, y = samples(change=True)
    found = ce.learn_map(x, y, n_resamples=199, rng=0)
    assert found.pvalue == min(1.0, 2 * min(fold.result.pvalue for fold in found.folds)) < 0.05
    assert found.importance.argmax() == 0
    assert found.importance.sum() == pytest.approx(1)
    assert found.projection.shape == (130, 2)
    assert found.in_x.sum() == 60
    # the held-out points of the best fold give its result again
    inside, outside = (
        torch.as_tensor(np.concatenate([x, y])[found.held_out & side], dtype=torch.float32)
        for side in (found.in_x, ~found.in_x)
    )
    best = min(found.folds, key=lambda fold: fold.result.log_pvalue)
    assert best.module is found.module
    assert (len(inside), len(outside)) == (best.result.n_x, best.result.n_y)
    again = ce.two_sample(inside, outside, transform=found.module, n_resamples=199, rng=0)
    assert again.statistic == pytest.approx(best.result.statistic, rel=1e-5)
    assert "p-value" in repr(found)
    assert found.columns is None
    assert "columns    0 (" in repr(found)


@pytest.mark.slow
def test_the_level_holds_although_the_training_half_is_fitted():
    pvalues = [
        ce.learn_map(*samples(seed, n=16, d=12), folds=1, steps=30, n_resamples=39, rng=seed).pvalue
        for seed in range(80)
    ]
    assert stats.kstest(pvalues, "uniform", alternative="greater").pvalue > 0.01


@pytest.mark.parametrize(
    ("columns", "shape"), [(4, (4, 4)), (20, (20,))], ids=["matrix", "weights of columns"]
)
def test_the_default_map_grows_with_the_data(columns, shape):
    x, y = samples(d=columns)
    found = ce.learn_map(x, y, steps=2, folds=1, n_resamples=9, rng=0)
    (parameter,) = found.module.parameters()
    assert parameter.shape == shape
    assert len(found.folds) == 1


def test_any_module_can_be_learned_and_stays_as_it_was():
    module = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    before = [parameter.clone() for parameter in module.parameters()]
    x, y = samples(change=True)
    kernel = ce.GaussianKernel()
    found = ce.learn_map(x, y, module, weights=kernel, steps=5, n_resamples=9, rng=0)
    assert all(map(torch.equal, module.parameters(), before))
    assert not torch.equal(next(found.module.parameters()), before[0])
    assert (found.projection[:, 1] == 0).all()  # one column has one principal coordinate


@pytest.mark.parametrize("weights", [ce.GaussianKernel(20.0), ce.NearestNeighbours(1, (5.0, 9.0))])
def test_the_scale_alone_is_model_criticism(weights):
    x, y = samples(change=True)
    found = ce.learn_map(x, y, "scale", weights=weights, n_resamples=99, rng=0)
    for fold in found.folds:
        assert type(fold.weights) is type(weights)
        assert fold.weights != weights
        assert fold.result.weights == fold.weights
    statistic = "mmd_ratio" if weights.default_statistic == "mmd" else "weighted"
    assert found.folds[0].result.statistic_name == statistic
    assert not list(found.module.parameters())
    best = min(found.folds, key=lambda fold: fold.result.log_pvalue)
    name = "bandwidth" if weights.default_statistic == "mmd" else "temperatures"
    scale = np.ravel(getattr(best.weights, name.removesuffix("s")))
    assert repr(found).endswith(f"learned    {name} " + ", ".join(f"{one:g}" for one in scale))


@pytest.mark.parametrize("module", [None, "scale"])
def test_a_parameter_among_the_weights_is_left_alone(module):
    temperature = torch.nn.Parameter(torch.tensor(2.0))
    weights = ce.NearestNeighbours(1, temperature)
    given = {"steps": 2, "folds": 1, "n_resamples": 9, "rng": 0}
    found = ce.learn_map(*samples(), module, weights=weights, **given)
    assert temperature.grad is None
    assert temperature == 2
    fixed = ce.learn_map(*samples(), module, weights=ce.NearestNeighbours(1, 2.0), **given)
    assert np.array_equal(found.projection, fixed.projection)
    assert found.folds[0].weights == fixed.folds[0].weights


@pytest.mark.parametrize("frames", ["x", "y", "both"])
def test_columns_of_frames_have_names(frames):
    names = ["age", "height", "weight", "income", "rooms", "floor"]
    x, y = samples(change=True)
    x = pd.DataFrame(x, columns=names) if frames != "y" else x
    y = pd.DataFrame(y, columns=names) if frames != "x" else y
    if frames == "both":
        y = y[names[::-1]]  # matched by name
    found = ce.learn_map(x, y, n_resamples=19, rng=0)
    assert found.columns == tuple(names)
    assert "columns    age (" in repr(found)
    assert found.importance.argmax() == 0


@pytest.mark.parametrize("shift", [1e6, 1e9])
def test_columns_far_from_0_are_standardised_before_they_are_rounded(shift):
    x, y = samples(change=True)
    given = {"steps": 5, "n_resamples": 99, "rng": 0}
    near, far = ce.learn_map(x, y, **given), ce.learn_map(x + shift, y + shift, **given)
    assert far.pvalue == near.pvalue < 0.05
    np.testing.assert_allclose(far.importance, near.importance, rtol=0.01)
    np.testing.assert_allclose(np.abs(far.projection), np.abs(near.projection), atol=0.01)


@pytest.mark.parametrize("unit", [1e-290, 1e290])
def test_columns_of_any_size_are_standardised(unit):
    given = {"steps": 2, "folds": 1, "n_resamples": 99, "rng": 0}
    x, y = samples(change=True)
    found = ce.learn_map(x * unit, y * unit, **given)
    assert found.pvalue == ce.learn_map(x, y, **given).pvalue < 0.05


@pytest.mark.parametrize(
    "module",
    [
        Returns(lambda z: torch.nn.functional.normalize(z, dim=0)),
        torch.nn.BatchNorm1d(6, track_running_stats=False),
    ],
)
def test_a_module_that_normalises_its_batch_sees_no_labels(module):
    pvalues = []
    for seed in range(20):
        x, y = samples(seed, n=40)
        found = ce.learn_map(x, y[:10], module, folds=1, steps=1, n_resamples=19, rng=seed)
        pvalues.append(found.pvalue)
    assert np.mean(np.array(pvalues) <= 0.05) < 0.3
    seen = []
    watched = Returns(lambda z: seen.append(len(z)) or z)
    ce.learn_map(*samples(n=20), watched, folds=1, steps=1, n_resamples=9, rng=0)
    assert seen == [25, 25, 25, 50]  # the first look, a step, the test, the picture


def test_half_precision_can_be_learned():
    module = torch.nn.Linear(6, 2, dtype=torch.bfloat16)
    found = ce.learn_map(*samples(), module, steps=2, folds=1, n_resamples=9, rng=0)
    assert 0 < found.pvalue <= 1
    assert next(found.module.parameters()).dtype == torch.bfloat16


@pytest.mark.parametrize("weights", [ce.GaussianKernel(), ce.NearestNeighbours(1, 1.0)])
def test_a_scale_stays_in_range_whatever_the_step(weights):
    given = {"steps": 4, "folds": 1, "n_resamples": 9, "rng": 0}
    found = ce.learn_map(*samples(), "scale", weights=weights, step_size=1e4, **given)
    assert 0 < found.pvalue <= 1


def test_equal_seeds_give_equal_answers():
    one, two = (ce.learn_map(*samples(), steps=3, n_resamples=19, rng=5) for _ in range(2))
    assert one.pvalue == two.pvalue
    assert np.array_equal(one.projection, two.projection)


def test_a_module_that_draws_does_so_by_rng_and_leaves_the_global_state():
    module = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.Dropout(0.5))
    found = []
    for seed, rng in ((0, 5), (1, 5), (1, 6)):
        torch.manual_seed(seed)
        before = torch.get_rng_state()
        learned = ce.learn_map(*samples(), module, steps=3, folds=1, n_resamples=9, rng=rng)
        assert torch.equal(torch.get_rng_state(), before)
        found.append(learned.folds[0].module.module[0].weight)
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[1], found[2])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"folds": 3}, "folds=3 is not supported"),
        ({"module": "linear"}, "module is of type str"),
        ({"module": "scale", "weights": ce.EnergyKernel()}, "no temperature or bandwidth"),
        ({"weights": ce.SpanningTree()}, "weights has temperature 0"),
        ({"module": "scale", "weights": ce.NearestNeighbours(1)}, "'scale' begins there and needs"),
        ({"weights": "tree"}, "weights is of type str"),
        ({"statistic": "crass"}, "statistic='crass' is unknown"),
        ({"module": torch.nn.Tanh()}, "module Tanh has no parameters that learn"),
        ({"module": torch.nn.Linear(6, 2).requires_grad_(False)}, "module Linear has no param"),
        ({"module": Returns(lambda z: z[:, 0])}, r"returned shape \(65,\) for 65 points: it must"),
        ({"module": Returns(lambda z: z[:9])}, r"returned shape \(9, 6\) for 65 points: it must"),
        ({"module": Returns(lambda z: (z, z))}, "module returned tuple: it must return a tensor"),
        ({"steps": 0}, "steps=0 is too small"),
        ({"steps": 2.5}, r"steps=2\.5 is not an integer"),
        ({"step_size": -0.1}, r"step_size=-0\.1 is not supported"),
        ({"step_size": "small"}, "step_size='small' is not supported"),
        ({"step_size": float("nan")}, "step_size=nan is not supported"),
    ],
)
def test_bad_choices_get_one_line(given, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ce.learn_map(*samples(), **given)


def test_few_points_are_refused():
    with pytest.raises(ValueError, match="x has 5 points"):
        ce.learn_map(np.zeros((5, 2)), np.zeros((20, 2)))
