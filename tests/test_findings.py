"""All answers at once: the verdict in words, and what is told by some of the rows."""

import numpy as np
import pytest

import crossedge as ce
from crossedge import findings
from crossedge.findings import find, verdict_of


def test_verdicts_say_when_a_difference_is_slight():
    rng = np.random.default_rng(0)
    settings = {"weights": ce.EnergyKernel(rank=8), "null": "normal", "rng": 0}
    settings["with_witness"] = False
    x = rng.normal(size=(4000, 1))
    slight = find(x, rng.normal(size=(4000, 1)) + 0.15, **settings)
    assert slight.test.pvalue < 0.001
    assert slight.effect.interval[1] < 0.05
    assert slight.verdict.startswith(slight.test.verdict + ", but very slightly: the divergence is")
    assert float(slight.verdict.rpartition(" ")[2]) == pytest.approx(slight.effect.interval[1], 0.1)
    for other in (rng.normal(size=(4000, 1)) + 1, rng.normal(size=(4000, 1))):
        found = find(x, other, **settings)
        assert found.verdict == found.test.verdict
    few = find(x[:200], rng.normal(size=(200, 1)) + 0.4, **settings)
    assert few.test.pvalue < 0.05
    assert few.effect.interval[0] < 0.05 < few.effect.interval[1]  # it may be large
    assert few.verdict == few.test.verdict
    assert verdict_of(slight.test, None) == slight.test.verdict
    assert find(x, x[::-1], **settings).verdict.startswith("the samples have the same rows")


def test_equal_samples_are_known_before_they_are_thinned(monkeypatch):
    monkeypatch.setattr(findings, "MOST_POINTS", 60)
    x = np.random.default_rng(0).normal(size=(200, 2))
    found = find(x, x, ce.SpanningTree(), rng=0, n_resamples=99, with_witness=False)
    assert found.effect.same_rows
    assert found.effect.n_x == 30
