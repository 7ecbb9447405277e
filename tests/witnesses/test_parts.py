"""Points, columns and regions against enumeration and plain counting."""

from itertools import combinations

import numpy as np
import pytest

from crossedge.data.distances import point_distances
from crossedge.data.raw import Raw
from crossedge.weights import GaussianKernel, NearestNeighbours
from crossedge.witnesses.cells import cut
from crossedge.witnesses.columns import forms_of
from crossedge.witnesses.points import Neighbourhoods
from crossedge.witnesses.regions import RegionScan, likelihood_ratio


def all_labellings(n, n_x):
    labels = np.zeros((n, 0))
    for chosen in combinations(range(n), n_x):
        column = np.zeros((n, 1))
        column[list(chosen)] = 1
        labels = np.concatenate([labels, column], axis=1)
    return labels


@pytest.mark.parametrize("weights", [NearestNeighbours(2), GaussianKernel(1.0)])
@pytest.mark.parametrize("twins", [False, True])
def test_scores_of_points_have_mean_0_and_variance_1_over_all_labellings(weights, twins):
    points = np.random.default_rng(0).normal(size=(9, 2))
    if twins:
        points[3] = points[4] = points[5]
    in_x = np.arange(9) < 4
    near = Neighbourhoods(weights, point_distances(points, 2.0), in_x)
    scores = near.zscores(1 - all_labellings(9, 4).astype(np.float32))
    np.testing.assert_allclose(scores.mean(1), 0, atol=1e-5)
    np.testing.assert_allclose(scores.std(1), 1, rtol=1e-4)


def test_excess_is_1_where_all_neighbours_are_from_y():
    points = np.array([[0.0], [0.1], [0.2], [9.0], [9.1], [9.2]])
    in_x = np.arange(6) < 3
    near = Neighbourhoods(NearestNeighbours(2), point_distances(points, 2.0), in_x)
    assert near.excess((~in_x).astype(np.float32)).tolist() == [-1, -1, -1, 1, 1, 1]


def test_the_mean_of_a_column_test_is_exact():
    rng = np.random.default_rng(0)
    raw = Raw("number", rng.normal(size=9).round(1), np.arange(9) > 6)
    cells = cut("a", raw, "number", 4)
    labels = all_labellings(9, 4)
    counts = np.stack([labels[cells.codes == place].sum(0) for place in range(cells.count)])
    centred = counts - 4 / 9 * np.bincount(cells.codes)[:, None]
    forms = forms_of(cells, 4)
    assert [form.about for form in forms] == ["location", "spread", "missing"]
    for form in forms:
        values = ((form.map @ centred) ** 2).sum(0)
        assert values.mean() == pytest.approx(form.mean)


def test_a_chi_square_is_that_of_pearson():
    from scipy.stats import chi2_contingency

    codes = np.array([0] * 10 + [1] * 7 + [2] * 13)
    in_x = np.random.default_rng(0).random(30) < 0.5
    cells = cut("c", Raw("text", codes, np.zeros(30, bool), texts=("a", "b", "c")), "category", 3)
    (form,) = forms_of(cells, int(in_x.sum()))
    x = np.bincount(codes[in_x], minlength=3)
    value = ((form.map @ (x - in_x.mean() * np.bincount(codes))) ** 2).sum()
    table = np.stack([x, np.bincount(codes) - x])
    assert value == pytest.approx(chi2_contingency(table).statistic * 29 / 30)


def test_likelihood_ratio_is_half_of_g():
    from scipy.stats import chi2_contingency

    table = np.array([[12, 30], [25, 23]])  # x and y, inside and outside
    found = likelihood_ratio(12.0, 37.0, 42, 90)
    expected = chi2_contingency(table, correction=False, lambda_="log-likelihood").statistic / 2
    assert found == pytest.approx(expected)
    assert np.isfinite(likelihood_ratio(np.array([0.0]), 20.0, 42, 90)).all()


def test_a_scan_counts_and_finds_as_plain_loops_do():
    rng = np.random.default_rng(0)
    in_x = rng.random(120) < 0.5
    raws = [Raw("number", rng.normal(size=120), rng.random(120) < 0.1) for _ in range(2)]
    fine = [cut(name, raw, "number", 5) for name, raw in zip("ab", raws, strict=True)]
    coarse = [cut(name, raw, "number", 3) for name, raw in zip("ab", raws, strict=True)]
    scan = RegionScan(fine, coarse, int(in_x.sum()))
    table = scan.cell_counts(in_x[:, None].astype(np.float32))
    best = -np.inf
    for group in scan.groups:
        counts = group.counts(table)[:, 0]
        for place in range(len(group.kept)):
            rows = np.ones(120, bool)
            for cells, (first, last) in group.choice(place):
                rows &= (cells.codes >= first) & (cells.codes < last)
            assert counts[place] == (rows & in_x).sum()
            ratio = likelihood_ratio(counts[place], rows.sum(), int(in_x.sum()), 120)
            best = max(best, ratio - group.penalty)
    assert scan.largest(table)[0] == pytest.approx(best, rel=1e-6)
    assert {len(group.columns) for group in scan.groups} == {1, 2}
