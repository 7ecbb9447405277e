from itertools import permutations

import numpy as np
import pytest

from crossedge.witnesses.calibration import (
    combined_pvalue,
    false_discovery,
    pool_pvalues,
    step_down,
)


def test_pvalue_is_the_share_of_the_pool_that_is_as_large():
    values = np.array([[3.0, 1.0, 3.0, 2.0, 5.0]])
    assert pool_pvalues(values)[0].tolist() == pytest.approx([0.6, 1.0, 0.6, 0.8, 0.2])


def test_combined_pvalue_is_valid_over_all_orders_of_a_pool():
    parts = np.array([[1.0, 4.0, 2.0, 3.0, 0.5], [9.0, 1.0, 2.0, 2.0, 3.0]])
    found = np.array([combined_pvalue(parts[:, list(order)]) for order in permutations(range(5))])
    for level in (0.2, 0.4, 0.6, 0.8):
        assert (found <= level + 1e-9).mean() <= level + 1e-9
    assert found.min() <= 0.4  # and has some power


def test_step_down_by_hand():
    # the first is compared with maxima over both rows, the second with its own row only
    values = np.array([[5.0, 1.0, 6.0, 2.0], [4.0, 3.0, 1.0, 4.5]])
    assert step_down(values).tolist() == pytest.approx([0.5, 0.5])
    values = np.array([[5.0, 1.0, 2.0, 4.5], [4.0, 3.0, 1.0, 2.0]])
    assert step_down(values).tolist() == pytest.approx([0.25, 0.25])
    # single steps would give 0.5 to the second


def test_false_discovery_agrees_with_scipy():
    from scipy.stats import false_discovery_control

    p = np.random.default_rng(0).random(50) ** 2
    np.testing.assert_allclose(false_discovery(p), false_discovery_control(p))
