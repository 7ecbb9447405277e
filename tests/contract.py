"""The contract that every family of weights keeps.

Inherit from `WeightsContract` in a class that pytest collects, and parametrise that class by
`weights`, instances of a family, and by `kind`, from KINDS.
"""

import numpy as np
import pytest
import torch

import crossedge as ce
from brute_force import all_labellings, lp_distances
from crossedge.data.distances import matrix_distances, point_distances
from crossedge.moments import LabelMoments
from crossedge.statistics import STATISTICS
from crossedge.weights import DenseWeights

KINDS = ["continuous", "grid", "duplicates", "constant"]


def points_of(kind, n, d=2):
    rng = np.random.default_rng(n)
    return {
        "continuous": rng.normal(size=(n, d)),
        "grid": rng.integers(0, 3, (n, d)).astype(float),
        "duplicates": rng.normal(size=(3, d))[rng.integers(0, 3, n)],
        "constant": np.full((n, d), 0.7),
    }[kind]


def distances_of(kind, n):
    return torch.as_tensor(lp_distances(points_of(kind, n)))


def pvalue_by_enumeration(W, n_x, statistic):
    """That of the first n_x points against the others, by the definition of R_x and R_y."""
    W, in_x = np.asarray(W), all_labellings(len(W), n_x)
    x, y = (((part @ W) * part).sum(1) / 2 for part in (in_x, 1 - in_x))
    moments = LabelMoments(DenseWeights(W), n_x, len(W) - n_x)
    values = statistic.sign * statistic.value(x, y, moments)
    (own,) = np.flatnonzero((in_x[:, :n_x] == 1).all(1))
    return (values >= values[own] - 1e-9).mean()


class WeightsContract:
    def test_symmetric_with_a_zero_diagonal(self, weights, kind):
        distances = distances_of(kind, 40)
        W = weights(distances)
        assert W.shape == distances.shape
        assert torch.equal(W, W.T)
        assert torch.isfinite(W).all()
        assert not W.diagonal().any()

    def test_symmetric_if_the_distances_are_not(self, weights, kind):
        W = weights(distances_of(kind, 20) + torch.ones(20, 20).triu(1).double() / 3)
        assert torch.equal(W, W.T)

    def test_the_order_of_the_points_does_not_matter(self, weights, kind):
        distances = distances_of(kind, 30)
        order = torch.randperm(30, generator=torch.Generator().manual_seed(0))
        moved = weights(distances[order][:, order])
        torch.testing.assert_close(moved, weights(distances)[order][:, order], rtol=0, atol=1e-12)

    def test_points_and_their_distances_give_the_same_weights(self, weights, kind):
        points = points_of(kind, 80)
        for p in (1.0, 2.0, 2.5, np.inf):
            by_points = weights.pairs(point_distances(points, p)).dense()
            by_matrix = weights.pairs(matrix_distances(lp_distances(points, p))).dense()
            np.testing.assert_allclose(by_points, by_matrix, rtol=0, atol=1e-12)

    def test_a_batch_is_as_good_as_a_loop(self, weights, kind):
        many = [lp_distances(points_of(kind, 12) + 0.01 * shift) for shift in range(6)]
        batch = torch.as_tensor(np.array(many)).reshape(2, 3, 12, 12)
        expected = torch.stack([weights(matrix) for row in batch for matrix in row])
        assert torch.equal(weights(batch), expected.reshape(2, 3, 12, 12))
        assert weights(batch[:0]).shape == (0, 3, 12, 12)

    def test_float32_in_float32_out(self, weights, kind):
        distances = distances_of(kind, 12).float()
        assert weights(distances).dtype == torch.float32
        assert weights(distances.numpy()).dtype == np.float32

    def test_arrays_in_arrays_out(self, weights, kind):
        """One code for both libraries: the same weights, of one matrix and of a batch."""
        for distances in (distances_of(kind, 12), distances_of(kind, 12).expand(2, 3, 12, 12)):
            W = weights(distances.numpy())
            assert isinstance(W, np.ndarray)
            np.testing.assert_allclose(W, weights(distances), rtol=1e-12, atol=1e-15)

    def test_smooth_weights_have_a_gradient(self, weights, kind):
        W = weights(distances_of(kind, 12).requires_grad_())
        assert W.requires_grad == weights.is_smooth

    def test_pvalues_are_those_of_enumeration(self, weights, kind):
        """With the statistic that belongs to the weights, in the whole way from points to p."""
        points = points_of(kind, 9)
        W = weights(torch.as_tensor(lp_distances(points)))
        found = ce.two_sample(points[:4], points[4:], weights)
        expected = pvalue_by_enumeration(W, 4, STATISTICS[weights.default_statistic])
        assert found.pvalue == pytest.approx(expected)
