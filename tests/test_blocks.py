"""Tests of designs: valid by enumeration, clear at the door, on the command line."""

import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import crossedge as ce
from crossedge.cli.main import main
from crossedge.data.designs import design_of
from crossedge.null.labellings import Labellings

FAMILIES = [ce.NearestNeighbours(1), ce.NearestNeighbours(1, 1.0), ce.EnergyKernel()]
PAIRS = ("pairs", np.repeat([0, 1], 4), None)
STRATA = ("strata", np.array([0, 0, 1, 1, 1, 0, 1, 1, 0]), np.array([0] * 5 + [1] * 4))
CLUSTERS = np.repeat(np.arange(6), [1, 3, 2, 1, 2, 3])
WHOLE = ("clusters", np.array([0, 0, 1, 1, 0, 1])[CLUSTERS], CLUSTERS)
DESIGNS = [PAIRS, STRATA, WHOLE]
TESTS = {
    "adaptive": {"weights": FAMILIES},
    "cross": {"weights": FAMILIES[0]},
    "fisher": {"weights": FAMILIES[2], "statistic": "fisher"},
    "mmd_ratio": {"weights": ce.GaussianKernel(), "statistic": "mmd_ratio"},
}


def named(kind, labels):
    return {"pairs": "pairs", "strata": ce.Strata(labels), "clusters": ce.Clusters(labels)}[kind]


def of_labelling(points, sample, kind, labels, **options):
    """The test where `sample` says of each point in which sample it is."""
    # the rows of x, then those of y, and pairs in one order in both
    order = np.lexsort((np.arange(len(sample)) % (len(sample) // 2), sample))
    n_x = int((sample == 0).sum())
    own = None if labels is None else labels[order]
    x, y = points[order[:n_x]], points[order[n_x:]]
    return ce.two_sample(x, y, blocks=named(kind, own), rng=0, **options)


def every_labelling(kind, sample, labels):
    design = design_of(named(kind, labels), sample)
    every = Labellings(len(sample), int((sample == 0).sum()), 10**6, 0, design)
    return [1 - row for block in range(every.blocks) for row in every.labels(block).T]


@pytest.mark.parametrize("options", TESTS.values(), ids=TESTS)
@pytest.mark.parametrize(("kind", "sample", "labels"), DESIGNS, ids=[d[0] for d in DESIGNS])
def test_level_is_exact_by_enumeration(kind, sample, labels, options):
    """Whichever labelling is the true one, P(p <= a) <= a, with equality at attained values."""
    rng = np.random.default_rng(4)
    points = rng.normal(size=(len(sample), 2)) + (0 if labels is None else 3 * labels[:, None])
    labellings = every_labelling(kind, sample, labels)
    found = [of_labelling(points, each, kind, labels, **options) for each in labellings]
    assert {each.law for each in found} == {f"all {len(labellings)} labellings"}
    p = np.array([each.pvalue for each in found])
    for a in np.unique(p):
        assert (p <= a + 1e-12).mean() == pytest.approx(a)
    assert len(np.unique(p)) > 2


def test_random_labellings_agree_with_all():
    rng = np.random.default_rng(0)
    mouse = np.repeat(np.arange(12), rng.integers(1, 6, 12))
    points = rng.normal(size=(len(mouse), 2)) + rng.normal(size=(12, 2))[mouse]
    in_x = mouse < 6
    x, y, labels = points[in_x], points[~in_x], (mouse[in_x], mouse[~in_x])
    blocks = ce.Clusters(labels)
    every = ce.two_sample(x, y, FAMILIES, blocks=blocks)
    some = ce.two_sample(x, y, FAMILIES, blocks=blocks, n_resamples=900, rng=0)
    assert (every.exact, some.exact) == (True, False)
    assert some.pvalue == pytest.approx(every.pvalue, abs=0.06)
    pooled = ce.two_sample(x, y, FAMILIES, blocks=ce.Clusters(np.concatenate(labels)))
    assert pooled.pvalue == every.pvalue


def test_pairs_are_strata_of_two():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 30, 2))
    one = ce.two_sample(x, y, FAMILIES, blocks="pairs", n_resamples=99_999, rng=0)
    other = ce.two_sample(x, y, FAMILIES, blocks=ce.Strata([*range(30)] * 2), rng=0)
    assert one.design == "labels are exchanged within 30 pairs"
    assert one.pvalue == pytest.approx(other.pvalue, abs=0.025)
    single = ce.two_sample(x, y, ce.EnergyKernel(), blocks="pairs", rng=0, early_stopping=50)
    assert single.law.endswith("stopped early")
    assert single.pvalue == pytest.approx(
        ce.two_sample(x, y, ce.EnergyKernel(), blocks="pairs", rng=1).pvalue, abs=0.1
    )


@pytest.mark.parametrize("statistic", ["cross", "weighted", "generalized", "max", "mmd"])
def test_a_normal_law_has_the_moments_of_the_design(statistic):
    rng = np.random.default_rng(2)
    site = rng.integers(4, size=200)
    points = rng.normal(size=(200, 2)) + 5 * site[:, None]
    x, y, weights = points[:110], points[110:], ce.NearestNeighbours(5)
    given = {"statistic": statistic, "blocks": ce.Strata(site)}
    law = ce.two_sample(x, y, weights, null="normal", **given)
    drawn = ce.two_sample(x, y, weights, rng=0, **given)
    assert law.statistic == drawn.statistic
    assert law.pvalue == pytest.approx(drawn.pvalue, abs=0.05)
    if statistic in ("cross", "weighted", "mmd"):
        values = drawn.null_distribution
        assert drawn.null_mean == pytest.approx(values.mean(), abs=0.06 * values.std())
        assert drawn.null_std == pytest.approx(values.std(), rel=0.05)


def test_plain_tests_of_clusters_are_wrong_and_those_of_blocks_are_right():
    """Eight subjects in each sample, eight rows of each subject, no difference."""
    plain, blocked = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        subject = np.repeat(np.arange(16), 8)
        rows = rng.normal(size=(128, 2)) + rng.normal(size=(16, 2))[subject]
        x, y = rows[:64], rows[64:]
        for found, blocks in ((plain, None), (blocked, ce.Clusters(subject))):
            found.append(
                ce.two_sample(x, y, FAMILIES[2], blocks=blocks, n_resamples=199, rng=seed).pvalue
            )
    assert np.mean(np.array(plain) <= 0.05) > 0.4
    assert np.mean(np.array(blocked) <= 0.05) < 0.15


def test_columns_of_frames_name_blocks_and_are_no_coordinates():
    rng = np.random.default_rng(3)
    day = rng.choice(["mon", "tue", "wed"], 60)
    frame = pd.DataFrame({"a": rng.normal(size=60), "day": day, "b": rng.normal(size=60)})
    x, y = frame[:30], frame[30:]
    given = {"weights": FAMILIES, "rng": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        by_name = ce.two_sample(x, y, blocks=ce.Strata("day"), **given)
        by_labels = ce.two_sample(
            x.drop(columns="day"), y.drop(columns="day"), blocks=ce.Strata(day), **given
        )
        of_polars = ce.two_sample(
            pl.DataFrame(x), pl.DataFrame(y), blocks=ce.Strata("day"), **given
        )
    assert by_name.pvalue == by_labels.pvalue == of_polars.pvalue
    assert [column.name for column in by_name.columns] == ["a", "b"]
    assert by_name.to_dict()["design"] == "labels are exchanged within 3 strata"
    assert "blocks     labels are exchanged within 3 strata" in str(by_name)


def test_precomputed_distances_and_graphs_have_blocks_too():
    rng = np.random.default_rng(5)
    points, unit = rng.normal(size=(24, 2)), np.repeat(np.arange(8), 3)
    matrix = np.linalg.norm(points[:, None] - points[None], axis=-1)
    mask = np.isin(unit, [1, 3, 4, 6])
    graph = ce.Graph(np.argwhere(np.triu(matrix < 1, 1)))
    given = {"blocks": ce.Clusters(unit), "rng": 0}
    found = ce.two_sample(matrix, mask, FAMILIES[2], distance="precomputed", **given)
    x, y = points[~mask], points[mask]
    same = ce.two_sample(x, y, FAMILIES[2], blocks=ce.Clusters((unit[~mask], unit[mask])), rng=0)
    assert found.pvalue == pytest.approx(same.pvalue)
    assert ce.two_sample(None, mask, graph, **given).n_resamples == 70


def test_blocks_that_allow_no_exchange_say_so():
    x, y = np.zeros(3), np.ones(4)
    with pytest.warns(UserWarning, match="no labels can be exchanged"):
        found = ce.two_sample(x, y, FAMILIES, blocks=ce.Strata([0] * 3 + [1] * 4))
    assert found.pvalue == 1
    assert found.design == "labels are exchanged within 2 strata, 2 of them with one sample only"


X, Y = np.arange(6.0), np.arange(6.0) + 1
BAD = {
    "a class": ({"blocks": ce.Strata}, "give an instance, as ce.Strata(labels)"),
    "a word": ({"blocks": "strata"}, "blocks='strata' is unknown: give 'pairs'"),
    "labels alone": ({"blocks": np.arange(12)}, "blocks is of type ndarray: give 'pairs'"),
    "too few": ({"blocks": ce.Strata([1, 2])}, "there are 2 labels of strata for 12 rows"),
    "of a side": (
        {"blocks": ce.Strata(([1] * 6, [1] * 5))},
        "6 and 5 labels of strata for 6 and 6",
    ),
    "a table": ({"blocks": ce.Strata(np.ones((12, 2)))}, "have shape (12, 2)"),
    "missing": ({"blocks": ce.Strata([1, None] * 6)}, "missing in row 1"),
    "nan": ({"blocks": ce.Clusters([*range(11), np.nan])}, "missing in row 11"),
    "both labels": (
        {"blocks": ce.Clusters([*"abcdef"] * 2)},
        "cluster 'a' has rows of two samples",
    ),
    "two strata": (
        {"blocks": ce.Clusters([1] * 6 + [2] * 6, [0, 1] * 6)},
        "cluster 1 has rows of two strata",
    ),
    "a column": ({"blocks": ce.Strata("day")}, "names the column 'day', and a sample is no frame"),
    "unlike pairs": ({"y": Y[:5], "blocks": "pairs"}, "the samples have 6 and 5: give as many"),
    "pearson3": ({"blocks": "pairs", "null": "pearson3"}, "the skewness over all labellings"),
    "tail": ({"blocks": "pairs", "null": ce.Tail()}, "null='tail' needs the skewness"),
    "thinned": ({"blocks": "pairs", "max_points": 5}, "leave out max_points"),
}


@pytest.mark.parametrize(("options", "message"), BAD.values(), ids=BAD)
def test_bad_blocks_get_one_clear_line(options, message):
    with pytest.raises((TypeError, ValueError)) as error:
        ce.two_sample(**{"x": X, "y": Y, "weights": ce.EnergyKernel()} | options)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_exact_moments_are_refused_where_there_are_none(monkeypatch):
    monkeypatch.setattr("crossedge.moments.blocked.MOST_EXACT_POINTS", 10)
    with pytest.raises(ValueError, match="needs exact moments"):
        ce.two_sample(X, Y, ce.EnergyKernel(), blocks="pairs", null="normal")
    assert 0 < ce.two_sample(X, Y, FAMILIES, blocks="pairs").pvalue <= 1


@pytest.fixture
def tables(tmp_path):
    rng = np.random.default_rng(6)
    for name, first in (("a", 0), ("b", 8)):
        subject = np.repeat(np.arange(8), 5) + first
        frame = {
            "value": rng.normal(size=40),
            "other": 1.0,
            "subject": subject,
            "site": subject % 2,
        }
        pd.DataFrame(frame).to_csv(tmp_path / f"{name}.csv", index=False)
    return [str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]


@pytest.mark.parametrize(
    ("options", "design"),
    [
        (["--pairs", "--columns", "value"], "labels are exchanged within 40 pairs"),
        (["--strata", "site", "--columns", "value"], "labels are exchanged within 2 strata"),
        (
            ["--clusters", "subject", "--strata", "site"],
            "whole clusters are relabelled, 8 and 8, within 2 strata",
        ),
    ],
)
def test_the_command_knows_designs(tables, options, design, capsys):
    assert main(["test", *tables, *options, "--json", "--resamples", "99"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["design"] == design
    assert facts["effect"] is None
    assert not {"site", "subject"} & {column["name"] for column in facts["columns"]} or (
        "--pairs" in options
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--pairs", "--strata", "site"], "not both"),
        (["--clusters", "subject", "--sample", "9"], "--sample does not go with"),
        (["--strata", "town"], "--strata or --clusters names the column 'town'"),
    ],
)
def test_the_command_refuses_what_does_not_go_together(tables, options, message, capsys):
    assert main(["test", *tables, *options]) == 2
    assert message in capsys.readouterr().err
