"""Sources of randomness."""

import numpy as np
import pytest
import torch

from crossedge.runtime.randomness import random_key


def test_every_source_of_randomness():
    assert random_key(7) == random_key(7) == random_key(np.random.default_rng(7))
    generator = torch.Generator().manual_seed(7)
    first, second = random_key(generator), random_key(generator)
    assert first != second
    assert first == random_key(torch.Generator().manual_seed(7))
    assert random_key(None) != random_key(None)


@pytest.mark.parametrize("rng", ["seed", 1.5, np.random.RandomState(0), -1])
def test_no_other_source(rng):
    with pytest.raises((TypeError, ValueError), match="rng"):
        random_key(rng)
