from itertools import combinations

import numpy as np
import pytest
import torch

import brute_force
import crossedge as ce
import high_precision
from crossedge.distances import lp_distances
from crossedge.numerics import tree_marginals
from crossedge.numerics.minimum_spanning_tree import arrivals_of_matrix
from crossedge.numerics.neighbour_marginals import neighbour_model
from crossedge.numerics.row_softmax import softmax_rows


def data(kind, n):
    rng = np.random.default_rng(n)
    return {
        "normal": rng.normal(size=(n, 2)),
        "clusters": rng.normal(size=(n, 2)) + 10 * (np.arange(n) % 3 == 0)[:, None],
        "line": np.linspace(0, 1, n)[:, None] ** 3,
        "near-duplicates": rng.normal(size=(4, 2))[np.arange(n) % 4]
        + 1e-9 * rng.normal(size=(n, 2)),
        "grid": np.indices((n, n)).reshape(2, -1).T[:n] % [n, 4] * 1.0,
        "duplicates": rng.integers(0, 3, (n, 2)) * 1.0,
    }[kind]


KINDS = ["normal", "clusters", "line", "near-duplicates", "grid", "duplicates"]


def distances_of(kind, n):
    return lp_distances(torch.as_tensor(data(kind, n)), 2.0)


def median(distances):
    return float(np.median(distances.numpy()[np.triu_indices(len(distances), 1)]))


def symmetric_direction(n, seed=0):
    c = np.random.default_rng(seed).normal(size=(n, n))
    return torch.as_tensor(c + c.T)


def assert_relatively_close(found, expected, rtol):
    """Entry by entry; what is below the range of doubles may be 0."""
    found, expected = np.asarray(found), np.asarray(expected)
    tiny = np.abs(expected) < 1e-290
    assert np.abs(found[tiny]).max(initial=0) < 1e-280
    np.testing.assert_allclose(found[~tiny], expected[~tiny], rtol=rtol)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("temperature", [0.1, 1.0, 30.0])
def test_trees_are_those_of_enumeration(kind, temperature):
    for n in (2, 3, 5, 6):
        distances = distances_of(kind, n)
        trees = brute_force.trees_on(n)
        lengths = distances.numpy()[trees[..., 0], trees[..., 1]].sum(-1)
        share = np.exp(-(lengths - lengths.min()) / temperature)
        share /= share.sum()
        expected = np.zeros((n, n))
        for edges, weight in zip(trees, share, strict=True):
            expected[edges[:, 0], edges[:, 1]] += weight
        W = ce.SpanningTree(temperature)(distances)
        np.testing.assert_allclose(W, expected + expected.T, rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("temperature", [0.1, 1.0, 30.0])
def test_neighbours_are_those_of_enumeration(kind, temperature):
    n = 7
    distances = distances_of(kind, n)
    for k in range(1, n):
        mu = np.zeros((n, n))
        for i in range(n):
            sets = [list(s) for s in combinations([j for j in range(n) if j != i], k)]
            lengths = np.array([distances[i, s].sum() for s in sets])
            share = np.exp(-(lengths - lengths.min()) / temperature)
            for s, weight in zip(sets, share / share.sum(), strict=True):
                mu[i, s] += weight
        W = ce.NearestNeighbours(k, temperature)(distances)
        np.testing.assert_allclose(W, mu + mu.T, rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("relative", [1e3, 1.0, 0.05, 1e-2, 1e-3])
def test_trees_to_full_precision(kind, relative):
    """Entry by entry, where the inverse of the Laplacian in doubles has no digit left."""
    distances = distances_of(kind, 11)
    temperature = relative * median(distances)
    expected = high_precision.tree_marginals(distances.numpy(), temperature)
    W = ce.SpanningTree(temperature)(distances)
    assert_relatively_close(W, expected, 1e-10)
    assert float(W.sum()) / 2 == pytest.approx(10, rel=1e-12)


@pytest.mark.parametrize(("kind", "relative"), [("clusters", 0.1), ("line", 0.03)])
def test_sixty_points_to_full_precision(kind, relative):
    distances = distances_of(kind, 60)
    temperature = relative * median(distances)
    expected = high_precision.tree_marginals(distances.numpy(), temperature)
    assert_relatively_close(ce.SpanningTree(temperature)(distances), expected, 1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("relative", [1e3, 1.0, 1e-3])
@pytest.mark.parametrize("k", [1, 3, 33, 38])
def test_neighbours_to_full_precision(kind, relative, k):
    distances = distances_of(kind, 40)
    temperature = relative * median(distances)
    if k == 1:
        total, nearest, mu = np.empty(40), np.empty(40, np.int64), np.empty((40, 40))
        odd = np.zeros(1, bool)
        softmax_rows(0, 40, distances.numpy(), temperature, odd, total, nearest, mu)
        mu /= total[:, None]
    else:
        mu = neighbour_model(distances.numpy(), k, temperature, np.empty((40, 40))).chosen()
    others = np.delete(np.arange(40), 31)
    expected = high_precision.row_marginals(distances.numpy()[31, others], k, temperature)
    assert_relatively_close(mu[31, others], expected, 1e-10)


def gradient_along(weights, distances, direction):
    """The gradient by distances of the sum of W times a direction."""
    distances = distances.clone().requires_grad_()
    (weights(distances) * direction).sum().backward()
    return distances.grad


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("relative", [1e3, 1.0, 0.05, 1e-2, 1e-3])
def test_gradients_of_trees_to_full_precision(kind, relative):
    distances = distances_of(kind, 9)
    temperature = relative * median(distances)
    direction = symmetric_direction(9)
    expected = high_precision.tree_marginals(distances.numpy(), temperature, 2 * direction)
    found = -2 * temperature * gradient_along(ce.SpanningTree(temperature), distances, direction)
    np.testing.assert_allclose(found, expected, atol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("relative", [1e3, 1.0, 0.1, 1e-3])
@pytest.mark.parametrize("k", [1, 3, 20])
def test_gradients_of_neighbours_to_full_precision(kind, relative, k):
    distances = distances_of(kind, 30)
    temperature = relative * median(distances)
    direction = symmetric_direction(30)
    weights = ce.NearestNeighbours(k, temperature)
    found = -temperature * gradient_along(weights, distances, direction)
    others = np.delete(np.arange(30), 17)
    row, c = distances.numpy()[17, others], 2 * direction.numpy()[17, others]
    expected = high_precision.row_marginals(row, k, temperature, c)
    np.testing.assert_allclose(found[17, others], expected, atol=1e-11)


FAMILIES = [
    ce.SpanningTree,
    lambda t: ce.NearestNeighbours(1, t),
    lambda t: ce.NearestNeighbours(4, t),
]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_lower_limit_is_temperature_zero(family, kind):
    distances = distances_of(kind, 30)
    for temperature in (1e-300, 1e-100, 1e-30):
        W = family(temperature)(distances)
        np.testing.assert_allclose(W, family(0.0)(distances), atol=1e-12)
        gradient = gradient_along(family(temperature), distances, symmetric_direction(30))
        assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("family", FAMILIES[:2])
@pytest.mark.parametrize("places", [[0.0, 1.0], [0.0, 1.0, 2.0, 3.0, 4.0]])
@pytest.mark.parametrize("temperature", [1e-3, 1e-300, 1e-308])
def test_cold_and_evenly_spaced(family, places, temperature):
    """All that matters is at one distance, but the diagonal is far below it."""
    distances = lp_distances(torch.tensor(places)[:, None].double(), 2.0)
    W = family(temperature)(distances)
    np.testing.assert_allclose(W, family(0.0)(distances), atol=1e-12)
    gradient = gradient_along(family(temperature), distances, symmetric_direction(len(places)))
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_upper_limit_is_uniform(family, kind):
    distances = distances_of(kind, 30)
    for temperature in (1e30, 1e300, float("inf")):
        W = family(temperature)(distances)
        uniform = W.sum() / (30 * 29) * (1 - torch.eye(30, dtype=torch.float64))
        torch.testing.assert_close(W, uniform, rtol=1e-12, atol=0)
        gradient = gradient_along(family(temperature), distances, symmetric_direction(30))
        assert gradient.abs().max() < 1e-20


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("temperature", [0.3, 2.0, (0.2, 1.0)])
def test_gradients_by_points(family, p, temperature):
    points = torch.as_tensor(data("normal", 8)).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: family(temperature)(lp_distances(x, p)), points)


@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_are_finite_at_duplicates(family):
    points = torch.as_tensor(data("duplicates", 20)).requires_grad_()
    W = family(0.5)(lp_distances(points, 2.0))
    (W * symmetric_direction(20)).sum().backward()
    assert torch.isfinite(points.grad).all()
    assert points.grad.abs().max() > 0


@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_by_a_matrix_that_need_not_be_symmetric(family):
    distances = distances_of("normal", 7) + torch.rand(7, 7, dtype=torch.float64)
    assert torch.autograd.gradcheck(family(0.7), distances.requires_grad_())


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", KINDS)
def test_single_precision(family, kind):
    distances = distances_of(kind, 40).float()
    for relative in (1.0, 0.1):
        temperature = relative * median(distances)
        W = family(temperature)(distances)
        assert W.dtype == torch.float32
        exact = family(temperature)(distances.double())
        torch.testing.assert_close(W.double(), exact, rtol=1e-4, atol=1e-30)


@pytest.mark.parametrize("family", FAMILIES)
def test_several_temperatures_are_averaged(family):
    distances = distances_of("normal", 20)
    expected = sum(family(t)(distances) for t in (0.0, 0.1, 5.0)) / 3
    for temperature in ((0.0, 0.1, 5.0), [0.0, 0.1, 5.0], np.array([0.0, 0.1, 5.0])):
        torch.testing.assert_close(family(temperature)(distances), expected)
    odd = distances_of("normal", 15)  # 105 pairs, so the median is one of the distances
    assert torch.equal(family("median")(odd), family(median(odd))(odd))


@pytest.mark.parametrize("family", FAMILIES)
def test_no_second_derivatives(family):
    distances = distances_of("normal", 6).requires_grad_()
    (first,) = torch.autograd.grad(
        family(1.0)(distances).pow(2).sum(), distances, create_graph=True
    )
    with pytest.raises(RuntimeError, match="no second derivatives"):
        first.sum().backward()


@pytest.mark.parametrize("family", FAMILIES)
def test_smoothed_tests_run_end_to_end(family):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 3)), rng.normal(size=(30, 3)) + 1.5
    for temperature in (0.2, 1.0, "median", (0.1, 1.0)):
        for null in ("permutation", "normal"):
            assert ce.two_sample(x, y, family(temperature), null=null, rng=0).pvalue < 0.01
            assert ce.two_sample(x, x[:20], family(temperature), null=null, rng=0).pvalue > 0.01
    shift = 1e280
    far = ce.two_sample(x * shift, y * shift, family(0.5 * shift), rng=0)
    assert far.zscore == pytest.approx(ce.two_sample(x, y, family(0.5), rng=0).zscore)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("temperature", [5.0, 0.5, 0.05])
def test_two_recursions_agree_on_more_than_a_panel(kind, temperature):
    """Plain elimination by halves, and elimination with a scale for every pair."""
    distances, direction = distances_of(kind, 200).numpy(), symmetric_direction(200).numpy()
    order, key = arrivals_of_matrix(distances)
    mu, other, slope, other_slope = (np.empty_like(distances) for _ in range(4))
    plain = tree_marginals._plain(distances, 0.0, temperature, mu)
    banded = tree_marginals._banded(distances, order, key, temperature, other)
    assert_relatively_close(torch.from_numpy(mu), other, 1e-11)
    plain.pull_back(direction, mu, slope)
    banded.pull_back(direction, other, other_slope)
    np.testing.assert_allclose(slope * temperature, other_slope * temperature, atol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", ["clusters", "grid", "duplicates"])
@pytest.mark.parametrize("temperature", [0.0, 0.05, (0.1, 3.0)])
def test_drawn_edges_have_the_marginals_as_frequencies(family, kind, temperature):
    distances, weights, draws = distances_of(kind, 8), family(temperature), 1500
    rng = np.random.default_rng(0)
    counts = np.zeros((8, 8))
    for _ in range(draws):
        i, j = ce.sample_edges(weights, distances, rng).T.numpy()
        counts[i, j] += 1
    counts = (counts + counts.T) / draws
    W = weights(distances).numpy()
    assert counts.sum() == pytest.approx(W.sum())
    spread = np.sqrt(np.maximum(W, 1e-12) / draws)
    assert (np.abs(counts - W) < 5 * spread + 4 / draws * (W > 0)).all()


def test_a_drawn_tree_is_a_tree_and_reproducible():
    distances = distances_of("clusters", 50)
    for temperature in (1e-300, 0.01, 1.0, 1e300):
        edges = ce.sample_edges(ce.SpanningTree(temperature), distances, 3)
        assert brute_force.is_tree(edges.tolist(), 50)
        assert torch.equal(edges, ce.sample_edges(ce.SpanningTree(temperature), distances, 3))


def test_the_lower_limit_on_a_grid_that_ties_in_plan_only():
    distances = lp_distances(torch.as_tensor(data("grid", 24)) * 0.1, 2.0)
    for family in FAMILIES:
        W = family(1e-300)(distances)
        np.testing.assert_allclose(W, family(0.0)(distances), atol=1e-12)


BAD_DRAWS = {
    "a class": (ce.SpanningTree, torch.zeros(3, 3), "weights is a class"),
    "a name": ("tree", torch.zeros(3, 3), "weights is of type str"),
    "a batch": (ce.SpanningTree(), torch.zeros(2, 3, 3), "give one matrix"),
    "numpy": (ce.SpanningTree(), np.zeros((3, 3)), "distances is of type ndarray"),
}


@pytest.mark.parametrize(("weights", "distances", "message"), BAD_DRAWS.values(), ids=BAD_DRAWS)
def test_a_bad_draw_gets_one_clear_line(weights, distances, message):
    with pytest.raises((TypeError, ValueError), match=message):
        ce.sample_edges(weights, distances)


def test_a_temperature_may_be_a_numpy_number():
    assert (
        ce.SpanningTree(np.array(0.5)) == ce.SpanningTree(np.float64(0.5)) == ce.SpanningTree(0.5)
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_no_second_derivatives_of_linear_losses_either(family):
    distances = distances_of("normal", 6).requires_grad_()
    direction = symmetric_direction(6)
    loss = (family(1.0)(distances) * direction).sum()
    (first,) = torch.autograd.grad(loss, distances, create_graph=True)
    with pytest.raises(RuntimeError, match="no second derivatives"):
        (loss + first.pow(2).sum()).backward()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("temperature", [1.0, 1e-3])
def test_changes_of_the_result_before_the_gradient_are_refused(family, temperature):
    """As torch does for exp: the gradient needs W as it was."""
    leaf = distances_of("normal", 9).requires_grad_()
    W = family(temperature)(leaf)
    loss = W.sum()
    W.detach().clamp_(max=0.01)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("family", FAMILIES)
def test_changes_of_the_distances_before_the_gradient_are_refused(family):
    leaf = distances_of("normal", 9).requires_grad_()
    distances = leaf * 1
    loss = family(0.5)(distances).pow(2).sum()
    distances.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("family", FAMILIES)
def test_two_backward_passes(family):
    distances, direction = distances_of("normal", 9), symmetric_direction(9)
    expected = gradient_along(family(0.5), distances, direction)
    leaf = distances.clone().requires_grad_()
    loss = (family(0.5)(leaf) * direction).sum()
    loss.backward(retain_graph=True)
    loss.backward()
    np.testing.assert_allclose(leaf.grad, 2 * expected, rtol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_medians_of_a_batch_some_of_them_zero(family):
    far, equal = distances_of("normal", 6), torch.zeros(6, 6, dtype=torch.float64)
    for order in ([far, equal], [equal, far]):
        leaf = torch.stack(order).requires_grad_()
        W = family("median")(leaf)
        for found, matrix in zip(W, order, strict=True):
            np.testing.assert_allclose(found.detach(), family("median")(matrix), atol=1e-15)
        W.pow(2).sum().backward()
        assert torch.isfinite(leaf.grad).all()


def test_near_ties_count_at_temperatures_that_can_tell_them():
    u = 2.0**-21
    distances = torch.tensor([[0, 1, 1e6], [1, 0, 1e6 + u], [1e6, 1e6 + u, 0]]).double()
    distances[1, 2] = distances[2, 1] = 1e6 + u
    for family in (ce.SpanningTree, ce.NearestNeighbours):
        weights = family(temperature=1e-3)
        assert float(weights(distances)[2, 0]) == pytest.approx(
            1 / (1 + np.exp(-u / 1e-3)), rel=1e-10
        )


def test_trees_of_distances_that_are_not_symmetric():
    distances = torch.as_tensor(np.random.default_rng(1).random((8, 8)))
    cold = ce.SpanningTree(1e-300)(distances)
    np.testing.assert_allclose(ce.SpanningTree()(distances), cold, atol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("scale", [1e-290, 1e-110, 1e100])
def test_the_gradient_is_linear_in_the_cotangent(family, scale):
    points = torch.tensor([0.0, 1.0, 1.7, 3.0, 500.0, 502.0], dtype=torch.float64)
    distances, direction = (points[:, None] - points).abs(), symmetric_direction(6)
    for temperature in (1.0, 0.01):
        weights = family(temperature)
        found = gradient_along(weights, distances, scale * direction)
        expected = gradient_along(weights, distances, direction)
        np.testing.assert_allclose(found / scale, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-309, 3e307])
def test_cotangents_at_the_ends_of_the_range(scale):
    distances, direction = distances_of("normal", 6), symmetric_direction(6)
    found = gradient_along(ce.SpanningTree(1.0), distances, scale * direction)
    expected = gradient_along(ce.SpanningTree(1.0), distances, direction)
    np.testing.assert_allclose(found / scale, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_diagonal_of_a_cotangent_does_not_matter(family):
    leaf = distances_of("normal", 8).requires_grad_()
    W = family(0.5)(leaf)
    W.sqrt().sum().backward()
    assert torch.isfinite(leaf.grad).all()


def test_a_kept_loss_keeps_no_matrices():
    distances = distances_of("normal", 8).requires_grad_()
    loss = ce.SpanningTree(0.5)(distances).pow(2).sum()
    loss.backward()
    function = loss.grad_fn
    while function is not None:
        assert not getattr(function, "found", None)
        following = [step for step, _ in function.next_functions if step is not None]
        function = following[0] if following else None


@pytest.mark.parametrize("family", FAMILIES)
def test_equal_points_at_the_end_of_the_range(family):
    """1 / temperature is no longer a double."""
    distances = torch.zeros(6, 6, dtype=torch.float64)
    W = family(1e-310)(distances)
    assert_relatively_close(W, family(1.0)(distances), 1e-12)


@pytest.mark.parametrize("temperature", [5e-324, 1e-300])
@pytest.mark.parametrize("family", [ce.SpanningTree, lambda t: ce.NearestNeighbours(2, t)])
def test_gradients_at_the_least_temperature_are_no_nan(family, temperature):
    """Where 1 / temperature is beyond the largest number."""
    points = torch.as_tensor(np.random.default_rng(0).normal(size=(9, 2)))
    distances = torch.cdist(points, points).requires_grad_()
    family(temperature)(distances).square().sum().backward()
    assert not distances.grad.isnan().any()
