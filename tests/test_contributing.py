"""The recipes of CONTRIBUTING.md, followed word by word."""

import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import torch

import crossedge as ce
from brute_force import all_labellings, lp_distances
from contract import KINDS, WeightsContract, points_of, pvalue_by_enumeration
from crossedge.moments import LabelMoments
from crossedge.null import Answer
from crossedge.statistics import STATISTICS
from crossedge.weights import DenseWeights
from crossedge.weights.kernels import BandwidthKernel

TEXT = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text()
FAMILY, STATISTIC, LAW = re.findall(r"^```python\n(.*?)^```$", TEXT, re.M | re.S)


def module_of(code, name):
    """The code as a module of that name."""
    module = types.ModuleType(name)
    sys.modules[name] = module  # where dataclasses look for it
    exec(compile(code, "CONTRIBUTING.md", "exec"), module.__dict__)
    return module


radius_graph = module_of(FAMILY, "crossedge_radius_graph").RadiusGraph


@pytest.mark.parametrize("weights", [radius_graph(0.8), radius_graph(1.0)], ids=repr)
@pytest.mark.parametrize("kind", KINDS)
class TestFamily(WeightsContract):
    def test_weights_are_those_of_the_definition(self, weights, kind):
        distances = lp_distances(points_of(kind, 9))
        near = (distances <= weights.radius + 1e-9) & ~np.eye(9, dtype=bool)
        np.testing.assert_array_equal(weights(torch.as_tensor(distances)), near.astype(float))


def test_distances_that_tie_with_the_radius_in_plan_count():
    line = torch.arange(5, dtype=torch.float64) * 0.1  # 0.3 of them is not 0.3 to the last bit
    W = radius_graph(0.3)((line[:, None] - line).abs())
    assert W.sum() / 2 == 4 + 3 + 2


def test_a_summary_names_the_family():
    found = ce.two_sample([0.0, 1.0, 2.0], [2.5, 3.5], radius_graph(1.0))
    assert "graph of radius 1, cross-edge count" in repr(found)


@pytest.mark.parametrize("base", [ce.Weights, ce.GraphWeights, BandwidthKernel])
def test_every_member_that_must_be_written_is_named(base):
    recipe = TEXT[TEXT.index("## A new family") : TEXT.index("## A new statistic")]
    assert base.__name__ in recipe
    for name in base.__abstractmethods__ | (base.__annotations__.keys() - {"bandwidth"}):
        assert re.search(rf"`{name}\b|def {name}\(", recipe), name


@pytest.fixture(scope="module", autouse=True)
def _statistics():
    before = dict(STATISTICS)
    module_of(STATISTIC, "crossedge_density_gap")
    yield
    STATISTICS.clear()
    STATISTICS.update(before)


WEIGHTS = [ce.SpanningTree(), ce.NearestNeighbours(2, 0.5), ce.GaussianKernel(), radius_graph(1.0)]


def expected_value(name, W):
    """Of the first four points against the other five, by enumeration."""
    z = all_labellings(9, 4)
    x, y = (((part @ W) * part).sum(1) / 2 for part in (z, 1 - z))
    if name == "density_gap":
        return x[0] / 6 - y[0] / 10
    parts = (4 / 7 * x + 3 / 7 * y, x - y)
    scores = [(part[0] - part.mean()) / part.std() for part in parts]
    return min(scores[0], abs(scores[1]))


@pytest.mark.parametrize("name", ["density_gap", "both"])
@pytest.mark.parametrize("weights", WEIGHTS, ids=repr)
def test_pvalues_of_the_statistic_are_those_of_enumeration(name, weights):
    points = points_of("continuous", 9)
    W = weights(torch.as_tensor(lp_distances(points)))
    found = ce.two_sample(points[:4], points[4:], weights, statistic=name)
    assert found.statistic == pytest.approx(expected_value(name, W.numpy()))
    assert found.pvalue == pytest.approx(pvalue_by_enumeration(W, 4, STATISTICS[name]))


@pytest.mark.parametrize("weights", WEIGHTS, ids=repr)
def test_moments_of_the_form_are_those_of_enumeration(weights):
    W = weights(torch.as_tensor(lp_distances(points_of("continuous", 9)))).double()
    z = all_labellings(9, 4)
    x, y = (((part @ W.numpy()) * part).sum(1) / 2 for part in (z, 1 - z))
    values = x / 6 - y / 10
    gap = STATISTICS["density_gap"]
    law = gap.law.null_moments(gap, LabelMoments(DenseWeights(W.numpy()), 4, 5))
    assert float(law.mean) == pytest.approx(values.mean())
    assert float(law.std) == pytest.approx(values.std())
    skewness = ((values - values.mean()) ** 3).mean() / values.std() ** 3
    assert float(law.skewness) == pytest.approx(skewness)


def test_the_form_has_smooth_nulls_and_the_other_statistic_has_none():
    rng = np.random.default_rng(0)
    given = 0.8 * rng.normal(size=(40, 2)), rng.normal(size=(60, 2)), ce.GaussianKernel()
    drawn = ce.two_sample(*given, statistic="density_gap", n_resamples=300_000, rng=0)
    for null, close in (("normal", 0.3), ("pearson3", 0.1), ("tail", 0.06)):
        found = ce.two_sample(*given, statistic="density_gap", null=null)
        assert found.zscore == pytest.approx(drawn.zscore)
        assert found.pvalue == pytest.approx(drawn.pvalue, rel=close)
        with pytest.raises(ValueError, match=f"null='{null}' does not go with statistic='both'"):
            ce.two_sample(*given, statistic="both", null=null)


def test_the_law_answers():
    cantelli = module_of(LAW, "crossedge_cantelli").Cantelli()
    rng = np.random.default_rng(0)
    given = rng.normal(size=(30, 2)), rng.normal(size=(20, 2)) + 1, ce.SpanningTree(0.5)
    found = ce.two_sample(*given, null=cantelli)
    assert found.pvalue == pytest.approx(1 / (1 + found.zscore**2))
    assert found.pvalue > ce.two_sample(*given, null="tail").pvalue
    assert (found.null, found.law) == ("cantelli", "Cantelli's bound")
    ladder = ce.Tail((cantelli, *ce.Tail().ladder))
    assert ce.two_sample(*given, null=ladder).pvalue == found.pvalue
    with pytest.raises(ValueError, match="does not go with statistic='generalized'"):
        ce.two_sample(*given, statistic="generalized", null=cantelli)


def test_a_law_that_answers_nonsense_and_ladders_that_are_none():
    cantelli = module_of(LAW, "crossedge_cantelli").Cantelli
    for answer in (0.5, Answer(3.0, "p = 20"), Answer(float("nan"), "p is not a number")):
        wrong = type("Wrong", (cantelli,), {"log_pvalue": lambda *_, answer=answer: answer})()
        with pytest.raises(ValueError, match="null='cantelli' answered"):
            ce.two_sample([1.0, 2.0, 3.0], [4.5, 5.0], ce.SpanningTree(), null=wrong)
    for ladder in ((), 5, ("normal",)):
        with pytest.raises(TypeError, match="is not a tuple of laws"):
            ce.Tail(ladder)
