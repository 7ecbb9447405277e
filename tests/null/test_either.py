"""The larger of two z-scores, against permutations."""

import math

import numpy as np
import pytest

import crossedge as ce
from null_cases import lumps


@pytest.mark.slow
def test_max_where_both_parts_are_large_together():
    """Taken as independent, they gave a p-value too large by 15%."""
    rng = np.random.default_rng(1)
    points = rng.normal(size=(40, 5))
    points[:8] *= 0.02
    ratios = []
    for _ in range(10):
        order = rng.permutation(40)
        given = points[order[:20]], points[order[20:]], ce.NearestNeighbours(3, 0.5)
        drawn = ce.two_sample(*given, statistic="max", n_resamples=50_000, rng=0).pvalue
        if drawn < 0.3:
            found = ce.two_sample(*given, statistic="max", null="tail").pvalue
            ratios.append(found / drawn)
    assert len(ratios) >= 2
    np.testing.assert_allclose(ratios, 1, atol=0.06)


@pytest.mark.parametrize("n_x", [25, 10])
@pytest.mark.parametrize("weights", [ce.SpanningTree(0.3), ce.NearestNeighbours(5)])
def test_max_where_one_point_decides(weights, n_x):
    """The law of R_x - R_y, whose fourth moment is not known, was off by a factor of two."""
    points, rng = lumps("hub", 50), np.random.default_rng(1)
    order = rng.permutation(50)
    given = points[order[:n_x]], points[order[n_x:]], weights
    found = ce.two_sample(*given, statistic="max", null="tail").pvalue
    drawn = ce.two_sample(*given, statistic="max", n_resamples=100_000, rng=0).pvalue
    assert found == pytest.approx(drawn, rel=0.03 + 3 / math.sqrt(100_000 * drawn))


@pytest.mark.slow
def test_max_of_a_count_in_steps_and_one_without():
    """Half a step is taken off where the observed value is one of the steps, and nowhere else."""
    rng = np.random.default_rng(1)
    for _ in range(2):
        given = rng.normal(size=(40, 3)), 1.3 * rng.normal(size=(25, 3)), ce.SpanningTree()
        drawn = ce.two_sample(*given, statistic="max", n_resamples=50_000, rng=0).pvalue
        found = ce.two_sample(*given, statistic="max", null="tail").pvalue
        assert found == pytest.approx(drawn, rel=0.04)
