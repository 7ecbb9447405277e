"""Moments of the counts of edges inside and between several samples."""

import numpy as np
import pytest

from crossedge.data.designs import free_design
from crossedge.moments import LabelMoments
from crossedge.moments.several import count_moments, pairs_of_samples
from crossedge.null.labellings import Labellings
from crossedge.weights import DenseWeights
from random_weights import random_graph, random_matrix


@pytest.mark.parametrize("sizes", [(3, 3, 2), (1, 5, 2), (2, 2, 2, 2), (3, 5)])
@pytest.mark.parametrize("kind", ["matrix", "graph"])
def test_moments_are_those_of_all_labellings(sizes, kind):
    pairs = DenseWeights(random_matrix(8, 1)) if kind == "matrix" else random_graph(8, 6, 0.6, 2)
    sample = np.repeat(np.arange(len(sizes)), sizes)
    every = Labellings(8, sizes[0], 10**6, 0, free_design(sample))
    codes = np.concatenate([every.codes(block).T for block in range(every.blocks)])
    W, counts = pairs.dense(), []
    for a, b in pairs_of_samples(len(sizes)):
        of_a, of_b = (codes == a).astype(float), (codes == b).astype(float)
        counts.append(((of_a @ W) * of_b).sum(1) / (2 if a == b else 1))
    mean, covariance = count_moments(LabelMoments(pairs, sizes[0], 8 - sizes[0]).second, sizes)
    np.testing.assert_allclose(mean, np.mean(counts, axis=1), atol=1e-12)
    np.testing.assert_allclose(covariance, np.cov(counts, bias=True), atol=1e-12)
