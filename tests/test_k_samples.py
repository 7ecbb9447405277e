"""Several samples at once."""

import json
import math
import warnings
from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import crossedge as ce
from brute_force import cross_counts
from crossedge.data.designs import Strata, design_of, free_design
from crossedge.k_samples.adjusted import _equal_pairs, adjusted_pairs
from crossedge.k_samples.scores import _log_chi_square_tail
from crossedge.null.labellings import Labellings

FAMILIES = [ce.NearestNeighbours(1), ce.EnergyKernel()]


def three(seed=0, shift=0.0, size=40):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(size, 2)) + shift * (place == 2) for place in range(3)]


@pytest.mark.parametrize(
    ("sizes", "strata"), [((2, 2, 2), None), ((3, 2, 2), [0, 0, 1, 0, 1, 0, 1])]
)
def test_level_is_exact_by_enumeration(sizes, strata):
    """Whichever labelling is the true one, P(p <= a) <= a, with equality at attained values."""
    sample = np.repeat([0, 1, 2], sizes)
    points = np.random.default_rng(1).normal(size=(len(sample), 2))
    design = free_design(sample) if strata is None else design_of(Strata(strata), sample)
    every = Labellings(len(sample), sizes[0], 10**6, 0, design)
    pvalues = []
    for codes in np.concatenate([every.codes(b).T for b in range(every.blocks)]):
        rows = [np.flatnonzero(codes == each) for each in range(3)]
        labels = None if strata is None else ce.Strata([np.array(strata)[own] for own in rows])
        found = ce.k_sample([points[own] for own in rows], FAMILIES[1], blocks=labels)
        assert found.law == f"all {every.count} labellings"
        pvalues.append(found.pvalue)
    for a in np.unique(pvalues):
        assert (np.array(pvalues) <= a + 1e-12).mean() == pytest.approx(a)


def test_every_labelling_sees_the_same_values():
    sample = np.repeat([0, 1, 2], [2, 2, 3])
    points = np.random.default_rng(2).normal(size=(7, 2))
    every = Labellings(7, 2, 10**6, 0, free_design(sample))
    values = None
    for codes in every.codes(0).T[::30]:
        own = [points[codes == each] for each in range(3)]
        found = ce.k_sample(own, FAMILIES)
        new = np.sort(found.null_distribution)
        assert np.abs(new - found.statistic).min() < 1e-9
        np.testing.assert_allclose(new, new if values is None else values, atol=1e-9)
        values = new


@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_two_samples_have_nearly_the_p_value_of_the_test_of_two(shift):
    x, _, y = three(3, shift)
    found, two = ce.k_sample([x, y], rng=0), ce.two_sample(x, y, rng=1)
    assert found.pvalue == pytest.approx(two.pvalue, rel=0.25, abs=0.02)
    assert found.statistic == pytest.approx(two.statistic, rel=0.1)
    assert found.pairs[0].pvalue == found.pairs[0].adjusted == found.pvalue


def test_the_sample_that_differs_is_found():
    found = ce.k_sample(dict(zip("abc", three(4, 1.5), strict=True)), rng=0, n_resamples=999)
    assert found.pvalue == 0.001
    different = {(pair.a, pair.b) for pair in found.pairs if pair.adjusted <= 0.05}
    assert different == {("a", "c"), ("b", "c")}
    z = {(pair.a, pair.b): pair.zscore for pair in found.pairs}
    assert z["a", "c"] < -2 > z["b", "c"]
    assert all(pair.adjusted >= pair.pvalue >= 0.001 for pair in found.pairs)
    mixed = ce.k_sample(three(4, 1.5), [ce.EnergyKernel(), ce.SpanningTree()], n_resamples=99)
    assert mixed.strongest.weights == ce.EnergyKernel()
    assert mixed.counted.weights == ce.SpanningTree()


def test_crossings_are_those_of_the_definition():
    samples = three(5, 0.3, 20)
    found = ce.k_sample(samples, ce.NearestNeighbours(3), n_resamples=99, rng=0)
    points = np.concatenate(samples)
    W = ce.NearestNeighbours(3)(np.linalg.norm(points[:, None] - points[None], axis=-1))
    sample = np.repeat([0, 1, 2], 20)
    for pair, (a, b) in zip(found.pairs, combinations(range(3), 2), strict=True):
        assert pair.crossing == pytest.approx(W[np.ix_(sample == a, sample == b)].sum())
    drawn = free_design(sample)
    labellings = Labellings(60, 20, 4000, 0, drawn)
    codes = np.concatenate([labellings.codes(b).T for b in range(labellings.blocks)])[:4000]
    of_a = cross_counts(W, (codes == 0).astype(float))  # from sample 0 to both others
    mean = found.pairs[0].mean + found.pairs[1].mean
    variance = found.covariance[:2, :2].sum()
    assert mean == pytest.approx(of_a.mean(), abs=4 * (variance / 4000) ** 0.5)
    assert variance == pytest.approx(of_a.var(), rel=0.1)
    blocked = ce.k_sample(
        samples, ce.NearestNeighbours(3), n_resamples=99, rng=0, blocks=ce.Strata(np.zeros(60))
    )
    assert blocked.pairs[0].crossing == found.pairs[0].crossing
    np.testing.assert_allclose(blocked.covariance, found.covariance, rtol=0.15, atol=1.5)


def test_equal_pairs_are_those_of_groups():
    assert _equal_pairs(2) == {0, 1}
    assert _equal_pairs(3) == {0, 1, 3}
    assert _equal_pairs(4) == {0, 1, 2, 3, 6}


def test_adjusted_p_values_are_shaffers():
    assert adjusted_pairs([0.02], 2, 0.02) == [0.02]
    # unless all three are equal, one pair may be
    assert adjusted_pairs([0.03, 0.2, 0.01], 3, 0.005) == [0.03, 0.2, 0.01]
    assert adjusted_pairs([0.03, 0.2, 0.01], 3, 0.05) == [0.05, 0.2, 0.05]
    # of four samples, three pairs may be equal, as long as at most three are known to differ
    found = adjusted_pairs([0.01, 0.02, 0.03, 0.04, 0.05, 0.06], 4, 0.001)
    assert found == pytest.approx([0.03, 0.06, 0.09, 0.12, 0.12, 0.12])


@pytest.mark.parametrize("equal", [{0, 1, 2}, {0, 1, 2, 3}])
def test_false_statements_are_rare_whatever_the_other_samples_are(equal):
    """Some of four samples are equal; a false statement is a pair of these."""
    wrong = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        samples = [
            rng.normal(size=(12, 1)) + (0 if place in equal else 30 * place) for place in range(4)
        ]
        found = ce.k_sample(samples, FAMILIES[1], n_resamples=99, rng=seed)
        wrong += any(
            pair.adjusted <= 0.1 and {int(pair.a), int(pair.b)} <= equal for pair in found.pairs
        )
    assert wrong <= 9  # 0.1 of 40 is 4, and 9 is more than two standard deviations above


@pytest.mark.parametrize("degrees", [1, 2, 3, 7])
def test_chi_square_tails(degrees):
    from scipy import stats

    values = np.array([0.0, 0.5, 3.0, 50.0, 900.0, 3000.0])
    expected = stats.chi2.logsf(values, degrees)
    found = _log_chi_square_tail(values, degrees)
    np.testing.assert_allclose(found[:5], expected[:5], rtol=1e-9)
    assert found[5] == pytest.approx(-1500 + (degrees / 2 - 1) * math.log(1500), abs=10)
    assert (np.diff(found) < 0).all()


def test_frames_and_facts():
    frames = [pd.DataFrame({"a": own[:, 0], "b": own[:, 1], "day": "mon"}) for own in three(6)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = ce.k_sample(frames, FAMILIES, n_resamples=99, rng=0)
        other = ce.k_sample([pl.DataFrame(own) for own in frames], FAMILIES, n_resamples=99, rng=0)
        by_day = ce.k_sample(frames, FAMILIES, n_resamples=99, rng=0, blocks=ce.Strata("day"))
    assert found.pvalue == other.pvalue
    assert by_day.design == "labels are exchanged within 1 stratum"
    facts = json.loads(by_day.to_json(null_distribution=True))
    assert len(facts["null_distribution"]) == 99
    assert [column["name"] for column in facts["columns"]] == ["a", "b"]
    assert facts["pairs"][0]["pvalue"] == by_day.pairs[0].pvalue
    assert "blocks     labels are exchanged" in str(by_day)
    assert "<table" in by_day._repr_html_()
    assert "null_distribution" not in found.to_dict()


def test_matched_rows_and_clusters():
    samples = three(7, 1.5)
    matched = ce.k_sample(samples, FAMILIES, blocks="pairs", n_resamples=199, rng=0)
    assert matched.design == "labels are exchanged within 40 matched rows"
    assert matched.pvalue == 0.005
    whole = ce.k_sample(samples, FAMILIES, blocks=ce.Clusters(np.repeat(np.arange(6), 20)), rng=0)
    assert whole.design == "whole clusters are relabelled, 2, 2 and 2"
    assert whole.law == "all 90 labellings"
    with pytest.warns(UserWarning, match="no labels can be exchanged"):
        alone = ce.k_sample(samples, FAMILIES, blocks=ce.Strata(np.repeat([0, 1, 2], 40)))
    assert alone.pvalue == 1


BAD = {
    "no list": ({"samples": np.zeros((3, 4))}, "samples is of type ndarray"),
    "one": ({"samples": [np.zeros(4)]}, "there are 1 samples: give from 2"),
    "widths": ({"samples": [np.zeros((4, 2)), np.zeros((4, 3))]}, "sample 1 has 3 columns"),
    "nan": ({"samples": {"a": [1.0, 2.0], "b": [np.nan, 1.0]}}, "sample b has NaN at row 0"),
    "mixed": (
        {"samples": [pd.DataFrame({"a": [1, 2]}), np.zeros(3)]},
        "give frames of one library",
    ),
    "columns": (
        {"samples": [pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"b": [1, 2]})]},
        "only some samples have a column 'a'",
    ),
    "precomputed": ({"distance": "precomputed"}, "does not go with k_sample"),
    "graph": ({"weights": ce.Graph([[0, 1]])}, "weights is a Graph"),
    "word": ({"weights": "tree"}, "weights is of type str"),
}


@pytest.mark.parametrize(("options", "message"), BAD.values(), ids=BAD)
def test_bad_arguments_get_one_clear_line(options, message):
    with pytest.raises((TypeError, ValueError)) as error:
        ce.k_sample(**{"samples": [[1.0, 2.0], [3.0, 4.0, 5.0]]} | options)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
