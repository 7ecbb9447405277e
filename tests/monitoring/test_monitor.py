"""The monitor: its p-values and false alarms, delay, what is kept, tables and bad input."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import crossedge as ce
from crossedge.monitoring import evidence, ranks
from crossedge.monitoring.evidence import Rule

CHEAP = ce.EnergyKernel(rank=4)


def stream(seed, batches, weights=CHEAP, shift=0.0, begin=10**9, n=40, b=8, d=2, **options):
    rng = np.random.default_rng(seed)
    monitor = ce.Monitor(rng.normal(size=(n, d)), weights, rng=seed, **options)
    for t in range(1, batches + 1):
        batch = rng.normal(size=(b, d))
        batch[:, 0] += shift * (t >= begin)
        monitor.update(batch)
    return monitor


def people(rng, n, older=0.0, cities=("Bern", "Basel", "Zug")):
    table = pd.DataFrame(
        {
            "age": rng.normal(40 + older, 12, n).round(),
            "income": rng.lognormal(11, 1, n),
            "city": rng.choice(cities, n),
            "member": rng.random(n) < 0.3,
            "born": pd.Timestamp("2000-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
        }
    )
    table.loc[rng.random(n) < 0.1, "income"] = np.nan
    return table


def test_the_law_of_the_second_stage_is_that_of_ranks(monkeypatch):
    """Enumerate the joint law of the ranks for few labellings by drawing orders."""
    monkeypatch.setattr(ranks, "FIRST", 5)
    monkeypatch.setattr(ranks, "SECOND", 6)
    monkeypatch.setattr(ranks, "CONTINUED", 2)
    ranks.second_stage_law.cache_clear()
    law = ranks.second_stage_law()
    ranks.second_stage_law.cache_clear()
    values = np.random.default_rng(0).random((200_000, 12))
    larger = values[:, 1:] > values[:, :1]
    reached = larger[:, :5].sum(1) < 2
    rank = larger[reached].sum(1)
    for k in range(12):
        assert np.mean(rank <= k) == pytest.approx(law[k], abs=0.006)


def test_bets_have_mean_one():
    grid = (np.arange(2_000_000) + 0.5) / 2_000_000
    cautious = np.exp(evidence.log_bets(grid))[:, :3].mean(0)
    assert cautious == pytest.approx(1.0, abs=2e-3)


def test_the_evidence_is_the_mixture_over_all_starts():
    pvalues = np.array([0.3, 0.02, 0.5, 0.001])
    bets = np.exp(evidence.log_bets(pvalues))
    products = [bets[j:].prod(0).mean() for j in range(4)]
    for rule, expected in (
        (Rule(run_length=100.0), sum(products)),
        (
            Rule(false_alarm_rate=0.01),
            sum(value / ((j + 1) * (j + 2)) for j, value in enumerate(products)) + 1 / 5,
        ),
    ):
        sums = evidence.begin()
        for t, p in enumerate(pvalues, 1):
            sums = evidence.advance(sums, t, p, rule)
        assert math.exp(evidence.log_evidence(sums, 4, rule)) == pytest.approx(expected)


def test_pvalues_are_independent_and_uniform():
    found = np.array([[s.pvalue for s in stream(seed, 6).history] for seed in range(60)])
    assert stats.kstest(found.ravel(), "uniform").pvalue > 1e-3
    after = stats.spearmanr(found[:, :-1].ravel(), found[:, 1:].ravel())
    assert after.pvalue > 1e-3


def test_pvalues_are_uniform_with_ties_and_a_memory_that_forgets():
    found = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        monitor = ce.Monitor(rng.integers(0, 2, (30, 1)), CHEAP, memory=40, rng=seed)
        found += [monitor.update(rng.integers(0, 2, (10, 1))).pvalue for _ in range(5)]
        assert len(monitor._rows) == 40
    assert stats.kstest(found, "uniform").pvalue > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"false_alarm_rate": 0.05}, {"run_length": 400}])
def test_false_alarms_over_a_thousand_streams(options):
    """Both rules allow 5% of streams to raise an alarm within 20 batches."""
    alarms = sum(stream(seed, 20, **options).alarm for seed in range(1000))
    assert alarms <= stats.binom.ppf(0.999, 1000, 0.05)


def test_a_change_is_found_soon_and_its_start_is_told():
    monitor = stream(1, 12, None, shift=1.5, begin=8, n=200, b=30, d=3)
    first = next(state for state in monitor.history if state.alarm)
    assert 8 <= first.batch <= 10
    assert abs(first.since - 8) <= 1
    assert first.columns[0].name == "0"
    assert first.columns[0].is_clear
    assert not first.columns[1].is_clear


def test_saved_and_loaded_it_goes_on_bit_for_bit(tmp_path):
    rng = np.random.default_rng(0)
    reference = people(rng, 150)
    batches = [people(rng, 30, cities=("Bern", f"new {t}")) for t in range(4)]
    whole = ce.Monitor(reference, [CHEAP, ce.NearestNeighbours(3)], rng=3, memory=200)
    parts = ce.Monitor(reference, [CHEAP, ce.NearestNeighbours(3)], rng=3, memory=200)
    for place, batch in enumerate(batches):
        whole.update(batch, name=f"file {place}")
        parts.update(batch, name=f"file {place}")
        parts.save(tmp_path / "state.npz")
        parts = ce.Monitor.load(tmp_path / "state.npz")
    assert parts.history == whole.history
    assert parts.columns == whole.columns
    assert [p.name for p in tmp_path.iterdir()] == ["state.npz"]
    with np.load(tmp_path / "state.npz", allow_pickle=False) as archive:
        assert all(archive[name].dtype != object for name in archive.files)


def test_unseen_categories_and_missing_values_are_found():
    rng = np.random.default_rng(0)
    monitor = ce.Monitor(people(rng, 300), rng=0)
    for _ in range(3):
        monitor.update(people(rng, 60))
    assert not monitor.alarm
    for _ in range(4):
        batch = people(rng, 60, cities=("Bern", "Paris"))
        batch.loc[rng.random(60) < 0.5, "age"] = np.nan
        state = monitor.update(batch)
    assert state.alarm
    assert state.since == 4
    assert {"city", "age"} == {column.name for column in state.columns[:2]}
    assert json.loads(state.to_json())["words"] == state.words
    assert "<script>" not in monitor._repr_html_()


def test_reset_mends_or_adopts():
    for adopt, mean in ((False, 0.0), (True, 3.0)):
        monitor = stream(2, 8, shift=3.0, begin=5, b=20)
        assert monitor.alarm
        assert monitor.history[-1].since == 5
        monitor.reset(adopt=adopt)
        assert not monitor.alarm
        assert monitor._rows.points[:, 0].mean() == pytest.approx(mean, abs=0.5)
        rng = np.random.default_rng(0)
        state = monitor.update(rng.normal((mean, 0), size=(20, 2)))
        assert state.batch == 9
        assert not state.alarm


def test_bad_input_gets_one_clear_line(tmp_path):
    points = np.zeros((5, 2)) + np.arange(5)[:, None]
    for options, line in (
        ({"false_alarm_rate": 2}, "false_alarm_rate=2 is not supported"),
        ({"run_length": 0.5}, "run_length=0.5 is not supported"),
        ({"false_alarm_rate": 0.1, "run_length": 9}, "both given"),
        ({"max_points": 1}, "max_points=1 is too small"),
        ({"scale": "big"}, "scale='big' is unknown"),
        ({"weights": []}, "empty list"),
        ({"weights": ce.Graph([[0, 1]])}, "Graph of points that are elsewhere"),
    ):
        with pytest.raises(ValueError, match=line):
            ce.Monitor(points, **options)
    monitor = ce.Monitor(points, CHEAP, rng=0)
    for batch, line in (
        (np.zeros((3, 3)), "batch has 3 columns, the reference has 2"),
        (np.full((3, 2), np.nan), "batch has NaN"),
        (np.zeros((0, 2)), "batch has no rows"),
    ):
        with pytest.raises(ValueError, match=line):
            monitor.update(batch)
    assert monitor.history == ()
    table = ce.Monitor(pd.DataFrame({"a": points[:, 0], "b": points[:, 1]}), CHEAP, rng=0)
    with pytest.raises(ValueError, match="batch has no column 'b'"):
        table.update(pd.DataFrame({"a": [1.0]}))
    (tmp_path / "bad.npz").write_bytes(b"PK\x03\x04 no archive")
    with pytest.raises(ValueError, match="damaged, or no monitor"):
        ce.Monitor.load(tmp_path / "bad.npz")
    with pytest.raises(TypeError, match="cannot be saved"):
        ce.Monitor(points, distance=lambda a, b: 0 * a @ b.T).save(tmp_path / "x.npz")


def test_the_estimator_passes_the_checks_of_scikit_learn():
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    from crossedge.monitoring import DriftDetector

    found = checks.check_estimator(DriftDetector(random_state=0), on_skip=None)
    assert sum(each["status"] == "passed" for each in found) > 30
