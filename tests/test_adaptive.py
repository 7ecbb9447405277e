"""Many weights and statistics, one calibrated answer."""

import sys
import threading
from itertools import combinations

import numpy as np
import pytest
import torch

import crossedge as ce
from crossedge.adaptive import MOST_DENSE_POINTS
from crossedge.data.distances import matrix_distances, point_distances
from crossedge.parts import (
    COMPONENTS,
    RANK_COMPONENTS,
    VIEWS,
    Views,
    default_parts,
    sparse_parts,
)
from crossedge.runtime import threads


def samples(n_x=30, n_y=40, d=2, shift=0.0, scale=1.0, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_x, d)), scale * rng.normal(size=(n_y, d)) + shift


def matrix_of(points):
    return np.sqrt(((points[:, None] - points[None]) ** 2).sum(-1))


def test_it_is_the_default():
    x, y = samples(shift=1.0)
    found = ce.two_sample(x, y, n_resamples=999, rng=0)
    assert found.pvalue == 0.001
    assert found.method.startswith("adaptive over")
    assert found.strongest in found.members
    assert found.strongest.pvalue <= 0.002
    assert "carried by" in repr(found)
    assert len(found.null_distribution) == 999


def test_it_sees_what_each_single_test_misses():
    x, y = samples(100, 100, d=20, scale=1.25)
    assert ce.two_sample(x, y, n_resamples=999, rng=0).pvalue < 0.01
    assert ce.two_sample(x, y, ce.NearestNeighbours(), rng=0).pvalue > 0.05


@pytest.mark.parametrize("kind", ["continuous", "discrete", "duplicates", "outlier"])
def test_the_level_is_exact(kind):
    """Over all splits of seven points in three and four: no p has more than its share."""
    rng = np.random.default_rng(3)
    points = {
        "continuous": rng.normal(size=(7, 2)),
        "discrete": rng.integers(0, 2, (7, 2)).astype(float),
        "duplicates": np.repeat(rng.normal(size=(3, 2)), [2, 2, 3], axis=0),
        "outlier": np.concatenate([rng.normal(size=(6, 2)), [[1e8, 0]]]),
    }[kind]
    found = []
    for chosen in combinations(range(7), 3):
        x, y = points[list(chosen)], np.delete(points, chosen, axis=0)
        found.append(ce.two_sample(x, y, rng=0).pvalue)
    found = np.array(found)
    for p in np.unique(found):
        assert (found <= p + 1e-12).mean() <= p + 1e-12


def test_the_level_holds_for_random_labellings():
    rejected = [
        ce.two_sample(*samples(12, 25, seed=seed), n_resamples=99, rng=seed).pvalue <= 0.1
        for seed in range(150)
    ]
    assert 0.04 < np.mean(rejected) < 0.16


def test_the_order_of_points_and_the_names_of_samples_do_not_matter():
    x, y = samples(5, 6, shift=0.7)
    found = ce.two_sample(x, y, rng=0)
    other = ce.two_sample(y[::-1], x[::-1], rng=1)
    assert found.pvalue == pytest.approx(other.pvalue)
    assert found.statistic == pytest.approx(other.statistic)


def evidence_of(found, view):
    return [member.evidence for member in found.members if member.view == view]


def test_moving_turning_and_scaling_do_not_matter():
    """Ranks of columns are not those of turned points, all else is."""
    x, y = samples(25, 20, shift=0.6)
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    found = ce.two_sample(x, y, n_resamples=199, rng=0)
    other = ce.two_sample(7 * x + 3, 7 * y + 3, n_resamples=199, rng=0)
    assert found.pvalue == other.pvalue
    assert found.statistic == pytest.approx(other.statistic, rel=1e-6)
    turned = ce.two_sample(x @ turn, y @ turn, n_resamples=199, rng=0)
    assert evidence_of(turned, "") == pytest.approx(evidence_of(found, ""), rel=1e-6)


@pytest.mark.parametrize("view", VIEWS)
def test_views_are_maps_of_the_pooled_points(view):
    """A view has the evidence of the same weights on points that are mapped beforehand."""
    x, y = samples(40, 30, d=3, shift=0.5)
    found = ce.two_sample(x, y, n_resamples=99, rng=0)
    mapped = VIEWS[view](np.concatenate([x, y]))
    for member in found.members:
        if member.view == view:
            options = {"statistic": member.statistic, "n_resamples": 99, "rng": 0}
            (alone,) = ce.two_sample(mapped[:40], mapped[40:], [member.weights], **options).members
            assert member.pvalue == alone.pvalue
            assert member.evidence == pytest.approx(alone.evidence, rel=1e-6)
            assert member.name.endswith(view) or view == "whitened"


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(("n", "d"), [(61, 80), (203, 60)])
def test_views_know_no_order_of_rows(view, n, d):
    """To the last digit: rounding that tells equal rows apart would tell the samples apart."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(12, d))[rng.integers(0, 12, n)]
    order = rng.permutation(n)
    found = Views(point_distances(points, 2.0), dense=False).distances(view).points
    other = Views(point_distances(points[order], 2.0), dense=False).distances(view).points
    assert np.array_equal(other, found[order])
    assert len(np.unique(found, axis=0)) <= 12


def test_equal_rows_in_many_columns_are_no_evidence():
    rng = np.random.default_rng(0)
    for _ in range(4):
        points = rng.normal(size=(3, 80))[rng.integers(0, 3, 60)]
        for transform in (None, "whiten"):
            options = {"transform": transform, "n_resamples": 99, "rng": 0}
            assert ce.two_sample(points[:30], points[30:], **options).pvalue > 0.02


def test_only_points_have_views():
    x, y = samples(40, 30, d=3)
    matrix = matrix_of(np.concatenate([x, y]))
    for given in (
        ce.two_sample(matrix, 30, distance="precomputed", n_resamples=9, rng=0),
        ce.two_sample(x, y, distance=1, n_resamples=9, rng=0),
    ):
        assert {member.view for member in given.members} == {""}
        assert ce.QuadraticKernel() not in given.weights
    one_column = ce.two_sample(x[:, :1], y[:, :1], n_resamples=9, rng=0)
    assert {member.view for member in one_column.members} == {"", "ranks", "squared ranks"}


@pytest.mark.parametrize("kind", ["spiked", "correlated", "wider", "outliers", "units"])
def test_it_sees_what_distances_do_not(kind):
    """Each of these needs another view; distances of the points as they are find none."""
    rng = np.random.default_rng(1)
    d = {"spiked": 500, "correlated": 20, "wider": 500, "outliers": 5, "units": 6}[kind]
    x, y = rng.normal(size=(100, d)), rng.normal(size=(100, d))
    if kind == "spiked":  # one direction of variance 15
        y[:, -5:] = 3**0.5 * rng.normal(size=(100, 1))
    elif kind == "correlated":  # a shift across the direction that all columns share
        x, y = (one + 2 * rng.normal(size=(100, 1)) for one in (x, y))
        y[:, 0], y[:, 1] = y[:, 0] + 0.8, y[:, 1] - 0.8
    elif kind == "wider":
        y[:, :5] *= 2
    elif kind == "outliers":
        x, y = (rng.standard_cauchy((100, d)) + 0.8 * shift for shift in (0, 1))
    else:
        y[:, 0] += 1.0
        x, y = (one * 10.0 ** np.arange(d) for one in (x, y))
    found = ce.two_sample(x, y, n_resamples=999, rng=0)
    assert found.pvalue <= 0.01
    assert ce.two_sample(x, y, ce.EnergyKernel(), n_resamples=999, rng=0).pvalue > 0.05


def test_default_parts_know_sizes_of_neighbourhoods():
    """A median point has its 16 nearest within a temperature of the nearest, or so."""
    x, y = samples(150, 150, d=3)
    matrix = matrix_of(np.concatenate([x, y]))
    parts = default_parts(Views(matrix_distances(matrix), dense=True), ("weighted", "fisher"))
    weights = [part.weights for part in parts if part.statistic.name == "weighted"]
    assert [one.k for one in weights] == [1, 1, 1, 37, 1]
    gaps = np.sort(matrix + np.diag(np.full(300, np.inf)), 1)
    for one, size in zip(weights, (4, 16, 64, None, 299), strict=True):
        if size:
            assert one.temperature == pytest.approx(np.median(gaps[:, size - 1] - gaps[:, 0]))
    assert parts[-1].prior > sum(part.prior for part in parts[:-1])


def test_temperatures_are_no_rounding_errors():
    """On a grid of 0.1 the nearest tie, but not to the last bit."""
    grid = np.stack(np.meshgrid(*2 * [np.arange(12.0)]), -1).reshape(-1, 2)
    found = [
        [
            part.weights.temperature
            for part in default_parts(Views(point_distances(points, 1.0), dense=True), ["cross"])
        ]
        for points in (grid, 0.1 * grid, 0.1 * grid + 100)
    ]
    assert len(found[0]) == len(found[1]) == len(found[2])
    assert found[1] == pytest.approx([0.1 * value for value in found[0]])


def test_many_points_need_no_matrix():
    points = np.random.default_rng(0).normal(size=(MOST_DENSE_POINTS + 200, 2))
    parts = sparse_parts(Views(point_distances(points, 2.0), dense=False), ["weighted", "fisher"])
    assert {part.view for part in parts} == {"", *VIEWS} - {COMPONENTS, RANK_COMPONENTS}
    found = ce.two_sample(points[:1600], points[1600:] * 1.2, n_resamples=99, rng=0)
    assert found.pvalue == 0.01
    assert "256-nearest neighbours" in [member.weights.name for member in found.members]


def test_many_points_in_many_columns_are_seen_by_their_moments():
    """Landmarks would be too few to span the columns, and products of all columns too many."""
    points = np.random.default_rng(0).normal(size=(MOST_DENSE_POINTS + 1, 400))
    views = Views(point_distances(points, 2.0), dense=False)
    parts = sparse_parts(views, ["weighted", "fisher"])
    assert {part.view for part in parts if part.weights == ce.LinearKernel()} == {
        "",
        *VIEWS,
    } - {COMPONENTS, RANK_COMPONENTS}
    assert {part.view for part in parts if part.weights == ce.QuadraticKernel()} == {
        COMPONENTS,
        RANK_COMPONENTS,
    }
    assert not any(isinstance(part.weights, ce.EnergyKernel) for part in parts)


@pytest.mark.parametrize("far", [1e5, 3e7, 6e7, 1e8, 1e12])
def test_one_far_point_does_not_blind_it(far):
    x, y = samples(60, 60, shift=0.8)
    x[0] = [far, 0]
    found = ce.two_sample(x, y, n_resamples=199, rng=0)
    assert found.pvalue <= 0.02
    order = np.random.default_rng(0).permutation(60)
    assert ce.two_sample(x[order], y, n_resamples=199, rng=0).statistic == pytest.approx(
        found.statistic, rel=1e-3
    )


def test_a_flat_member_does_not_silence_the_others():
    x, y = samples(40, 50, shift=0.8)
    for weights in ([ce.EnergyKernel()], [ce.EnergyKernel(), ce.GaussianKernel(1e5)]):
        found = ce.two_sample(x, y, weights, n_resamples=999, rng=0)
        assert found.pvalue <= 0.003
        assert found.members[0].pvalue <= 0.003


def test_a_list_of_weights_is_adaptive_over_them():
    x, y = samples(shift=0.5)
    weights = [ce.SpanningTree(), ce.SpanningTree(0.5), ce.GaussianKernel(), ce.EnergyKernel()]
    found = ce.two_sample(x, y, weights, n_resamples=299, rng=0)
    assert [member.weights for member in found.members[::2]] == weights
    assert {member.statistic for member in found.members} == {"weighted", "fisher"}
    one = ce.two_sample(x, y, weights, statistic="cross", n_resamples=299, rng=0)
    assert {member.statistic for member in one.members} == {"cross"}


def test_members_have_the_pvalues_that_they_would_have_alone():
    x, y = samples(shift=0.5)
    for statistic in ("weighted", "cross", "fisher"):
        for weights in (ce.SpanningTree(), ce.NearestNeighbours(3, 0.4), ce.EnergyKernel()):
            (member,) = ce.two_sample(
                x, y, [weights], statistic=statistic, n_resamples=499, rng=0
            ).members
            alone = ce.two_sample(x, y, weights, statistic=statistic, n_resamples=499, rng=0)
            assert member.pvalue == alone.pvalue
            smooth = ce.two_sample(x, y, weights, statistic=statistic, null="pearson3")
            assert member.evidence == pytest.approx(-smooth.log_pvalue, rel=1e-9)


def test_one_member_alone_is_the_whole():
    x, y = samples(shift=0.5)
    found = ce.two_sample(
        x, y, [ce.SpanningTree(0.5)], statistic="weighted", n_resamples=499, rng=0
    )
    assert found.pvalue == found.members[0].pvalue


@pytest.mark.parametrize("n_x", [1, 2])
@pytest.mark.parametrize("n_y", [1, 2, 9])
def test_few_points(n_x, n_y):
    found = ce.two_sample(*samples(n_x, n_y), rng=0)
    assert 0 < found.pvalue <= 1


def test_equal_points_are_no_evidence():
    found = ce.two_sample(np.ones((8, 2)), np.ones((9, 2)), n_resamples=99, rng=0)
    assert found.pvalue == 1


class Threads:
    """`in_threads`, which goes on only if as many threads as torch has come to the work."""

    def __init__(self, in_threads):
        self.in_threads, self.most = in_threads, 1
        self.inside = threading.local()

    def __call__(self, work, blocks):
        many = min(threads._threads(), len(blocks))
        if many == 1 or getattr(self.inside, "busy", False):
            return self.in_threads(work, blocks)
        self.most = max(self.most, many)
        meeting, met = threading.Barrier(many, timeout=30), set()

        def watched(block):
            if threading.get_ident() not in met:
                met.add(threading.get_ident())
                meeting.wait()
            self.inside.busy = True
            try:
                return work(block)
            finally:
                self.inside.busy = False

        return self.in_threads(watched, blocks)


def test_it_does_not_depend_on_threads(monkeypatch):
    x, y = samples(200, 160, shift=0.2)  # of fewer points one thread makes all products
    watched, before = {}, torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = ce.two_sample(x, y, n_resamples=3000, rng=0)
        for name, module in list(sys.modules.items()):
            if name.startswith("crossedge.") and hasattr(module, "in_threads"):
                watched[name] = Threads(threads.in_threads)
                monkeypatch.setattr(module, "in_threads", watched[name])
        torch.set_num_threads(2)
        together = ce.two_sample(x, y, n_resamples=3000, rng=0)
    finally:
        torch.set_num_threads(before)
    assert watched["crossedge.parts"].most == 2
    assert watched["crossedge.null.labellings"].most == 2
    assert alone.pvalue == together.pvalue
    np.testing.assert_allclose(together.null_distribution, alone.null_distribution, rtol=1e-9)


def test_early_stopping_is_besag_and_clifford():
    x, y = samples(30, 25, shift=0.0)
    weights = [ce.NearestNeighbours(1), ce.EnergyKernel()]
    whole = ce.two_sample(x, y, weights, n_resamples=9000, rng=0)
    found = ce.two_sample(x, y, weights, n_resamples=9000, rng=0, early_stopping=1500)
    extreme = np.flatnonzero(whole.null_distribution >= whole.statistic - 1e-9)
    assert found.n_resamples == extreme[1499] + 1 > 1024  # after more than one round
    assert found.pvalue == 1500 / found.n_resamples
    np.testing.assert_allclose(
        found.null_distribution, whole.null_distribution[: found.n_resamples], rtol=1e-12
    )
    assert found.law.endswith("stopped early")
    assert [member.evidence for member in found.members] == pytest.approx(
        [member.evidence for member in whole.members]
    )
    for one, other in zip(found.members, whole.members, strict=True):
        assert one.pvalue == pytest.approx(other.pvalue, abs=0.05)
    far = ce.two_sample(x, y + 3, weights, n_resamples=3000, rng=0, early_stopping=9)
    assert (far.pvalue, far.n_resamples) == (1 / 3001, 3000)


WRONG = {
    "no weights at all": ({"weights": []}, "empty"),
    "not weights": ({"weights": ["tree"]}, "weights is of type str"),
    "a class": ({"weights": [ce.SpanningTree]}, "is a class"),
    "smooth null": ({"null": "pearson3"}, "null='pearson3' does not go with the adaptive test"),
    "both": ({"null": "normal", "statistic": "fisher"}, "null='normal' does not go with the adapt"),
    "twice": ({"weights": [ce.SpanningTree(), ce.SpanningTree(0)]}, "twice"),
    "a set": ({"weights": {ce.SpanningTree()}}, "or a list of these"),
    "energy of graphs": (
        {"weights": [ce.SpanningTree(), ce.EnergyKernel()], "statistic": "energy"},
        "does not go with SpanningTree",
    ),
    "no law": ({"statistic": "mmd_ratio"}, "does not go with the adaptive test"),
}


@pytest.mark.parametrize(("options", "message"), WRONG.values(), ids=WRONG)
def test_wrong_input(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        ce.two_sample(*samples(), **options)


def test_precomputed_and_callable_distances():
    x, y = samples(12, 10, shift=1.0)
    expected = ce.two_sample(x, y, n_resamples=199, rng=0)
    matrix = matrix_of(np.concatenate([x, y]))
    found = ce.two_sample(matrix, 10, distance="precomputed", n_resamples=199, rng=0)
    assert evidence_of(found, "") == pytest.approx(
        [
            member.evidence
            for member in expected.members
            if not member.view and member.weights != ce.QuadraticKernel()
        ]
    )
