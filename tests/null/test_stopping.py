"""Stopping by a bet: a martingale, whose answer at a level is that of all labellings."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom

import crossedge as ce
from crossedge.null.stopping import GIVEN_UP, SHARE_OF_LEVEL, AtLevel


def wealth(extreme, visited, level):
    """Return the wealth after so many labellings, the extreme ones last."""
    path = np.arange(visited) >= visited - extreme
    return AtLevel(level).wealth(path)[-1]


@pytest.mark.parametrize("level", [0.01, 0.05, 0.3])
@pytest.mark.parametrize("visited", [1, 2, 7, 60])
def test_the_wealth_is_a_martingale_if_distributions_are_equal(level, visited):
    expected = []
    for extreme in range(visited + 1):
        # the rank of the samples among visited + 2 exchangeable values
        up = (extreme + 1) / (visited + 2)
        after = [wealth(extreme + more, visited + 1, level) for more in (0, 1)]
        now = wealth(extreme, visited, level)
        assert (1 - up) * after[0] + up * after[1] == pytest.approx(now, rel=1e-11)
        expected.append(now)
    assert np.mean(expected) == pytest.approx(1)  # each number is as probable


def test_the_wealth_is_that_of_a_uniform_bet():
    level, extreme, visited = 0.05, 3, 80
    c = SHARE_OF_LEVEL * level
    found, _ = quad(lambda p: binom.pmf(extreme, visited, p), 0, c)
    assert wealth(extreme, visited, level) == pytest.approx((visited + 1) * found / c)


def test_it_stops_where_the_answer_is_known_and_no_later():
    rule = AtLevel(0.05)
    rng = np.random.default_rng(0)
    decided = {True: 0, False: 0}
    for p in [0.0, 0.01, 0.2, 0.9] * 10:
        extreme = rng.random(3000) < p
        end = rule.end(extreme)
        assert rule.end(extreme[: end - 1]) is None
        last = rule.wealth(extreme[:end])[-1]
        assert last >= 20 or last < GIVEN_UP * 0.05
        assert (last >= 20) == (rule.pvalue(extreme[:end]) <= 0.05) == (p < 0.05)
        decided[p < 0.05] += 1
    assert decided == {True: 20, False: 20}


def test_the_level_holds_at_any_labelling():
    """Ranks among exchangeable values: each stops where its p-value is smallest."""
    rng = np.random.default_rng(1)
    rule, trials = AtLevel(0.1), 4000
    p = rng.random(trials)  # given the samples, labellings are extreme with this probability
    least = np.array([rule.pvalue(rng.random(400) < each) for each in p])
    for level in (0.1, 0.2, 0.5):
        rate = (least <= level).mean()
        assert rate <= level + 3 * np.sqrt(level * (1 - level) / trials)
    assert (least <= 0.1).mean() > 0.05


@pytest.mark.parametrize("weights", [None, ce.SpanningTree()], ids=["adaptive", "tree"])
def test_a_level_in_two_sample(weights):
    x, y = np.random.default_rng(2).normal(size=(2, 30, 2))
    far = ce.two_sample(x, y + 3, weights, n_resamples=3000, rng=0, early_stopping=0.05)
    assert far.pvalue <= 0.05
    assert far.n_resamples < 60
    assert far.law.endswith("stopped at level 0.05")
    near = ce.two_sample(x, y, weights, n_resamples=3000, rng=0, early_stopping=0.05)
    assert near.pvalue > 0.05
    assert near.n_resamples < 1000
    assert len(near.null_distribution) == near.n_resamples


@pytest.mark.parametrize("wrong", [0.0, 1.0, 1.5, -0.1, float("nan")])
def test_what_is_no_level(wrong):
    with pytest.raises(ValueError, match="is no level: give one between 0 and 1"):
        ce.two_sample([0.0, 1.0], [2.0, 3.0], early_stopping=wrong)


@pytest.mark.parametrize("level", [0.2, 0.05, 0.001])
def test_the_fewest_labellings_that_can_win_a_bet(level):
    rule = AtLevel(level)
    assert rule.wealth(np.zeros(rule.fewest, bool))[-1] >= 1 / level
    assert rule.wealth(np.zeros(rule.fewest - 1, bool))[-1] < 1 / level
    options = {"n_resamples": rule.fewest - 1, "early_stopping": level}
    with pytest.raises(ValueError, match=f"needs {rule.fewest:,} labellings at least"):
        ce.two_sample([0.0, 1.0], [2.0, 3.0], **options)


def test_an_answer_at_a_level_says_so():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 40, 2))
    given = {"n_resamples": 3000, "rng": 0, "early_stopping": 0.05}
    for weights in (ce.SpanningTree(), None):
        far = ce.two_sample(x, y + 3, weights, **given)
        near = ce.two_sample(x, y, weights, **given)
        assert far.level == near.level == 0.05
        assert far.verdict == (
            f"evidence that the samples differ (p at most {far.pvalue:.4g}; stopped at level 0.05)"
        )
        assert near.verdict.startswith("no evidence that the samples differ (p at most ")
        for found in (far, near):
            assert found.law == f"{found.n_resamples} random labellings, stopped at level 0.05"
            said = f"an answer at level 0.05: at most {found.pvalue:.4g}"
            assert f"  p-value    {said}" in repr(found)
            assert found.least_pvalue == 0
    # the p-value of all labellings is not that of a bet
    few = ce.two_sample([0.0, 1.0, 2.0], [3.0, 4.0, 5.0], ce.SpanningTree(), **given)
    assert few.exact
    assert few.level is None
    assert few.verdict.startswith("no evidence that the samples differ (p = 0.1)")
    counted = ce.two_sample(x, y, ce.SpanningTree(), **given | {"early_stopping": 5})
    assert counted.level is None
