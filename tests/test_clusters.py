"""Samples on a cluster: the same answer as on one machine, also if a worker is killed."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import crossedge as ce

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(210, 3)), 1.2 * RNG.normal(size=(150, 3))
GRID = np.round(2 * X), np.round(2 * Y)


def blocks(x, y, size=80):
    return da.from_array(x, chunks=(size, 2)), da.from_array(y, chunks=(size, 3))


def compare(one, other):
    assert one.pvalue == pytest.approx(other.pvalue, rel=1e-9)
    assert one.statistic == pytest.approx(other.statistic, rel=1e-9)
    assert one.zscore == pytest.approx(other.zscore, rel=1e-9)
    assert (one.n_x, one.n_y, one.null) == (other.n_x, other.n_y, other.null)


@pytest.fixture(autouse=True)
def _in_this_process():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.mark.parametrize("samples", [(X, Y), GRID], ids=["continuous", "tied"])
@pytest.mark.parametrize("k", [1, 5])
@pytest.mark.parametrize(
    ("null", "statistic"),
    [
        ("normal", "cross"),
        ("normal", "generalized"),
        ("normal", "max"),
        ("pearson3", "weighted"),
        ("permutation", "cross"),
    ],
)
def test_blocks_are_the_same_test(samples, k, null, statistic):
    given = {"null": null, "statistic": statistic, "rng": 0, "n_resamples": 99}
    weights = ce.NearestNeighbours(k)
    found = ce.two_sample(*blocks(*samples), weights, **given)
    compare(found, ce.two_sample(*samples, weights, **given))


@pytest.mark.parametrize("p", [1.0, np.inf])
def test_other_norms(p):
    found = ce.two_sample(*blocks(X, Y), ce.NearestNeighbours(3), null="normal", distance=p)
    compare(found, ce.two_sample(X, Y, ce.NearestNeighbours(3), null="normal", distance=p))


def test_many_small_blocks():
    """More lists than one task joins, and blocks of one point."""
    x, y = X[:9], Y[:8]
    found = ce.two_sample(*blocks(x, y, size=1), ce.NearestNeighbours(2), null="normal")
    compare(found, ce.two_sample(x, y, ce.NearestNeighbours(2), null="normal"))


def test_folders(tmp_path):
    for name, sample in (("x", X), ("y", Y)):
        (tmp_path / name).mkdir()
        for place, some in enumerate(np.array_split(sample, 3)):
            columns = {"bca"[axis]: some[:, axis] for axis in range(3)}
            parquet.write_table(pa.table(columns), tmp_path / name / f"{place}.parquet")
    paths = tmp_path / "x", str(tmp_path / "y")
    found = ce.two_sample(*paths, ce.NearestNeighbours(5), null="normal")
    compare(found, ce.two_sample(X, Y, ce.NearestNeighbours(5), null="normal"))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((*blocks(X, Y),), ValueError, "need weights=ce.NearestNeighbours"),
        ((*blocks(X, Y), ce.SpanningTree()), ValueError, "need weights=ce.NearestNeighbours"),
        ((*blocks(X, Y), ce.NearestNeighbours(1, 0.5)), ValueError, "at temperature 0"),
        ((blocks(X, Y)[0], Y, ce.NearestNeighbours(1)), TypeError, "y is in memory"),
        ((*blocks(X, Y[:, :2]), ce.NearestNeighbours(1)), ValueError, r"have \[2, 3\] columns"),
        ((*blocks(X * np.nan, Y), ce.NearestNeighbours(1)), ValueError, "not finite numbers"),
        ((*2 * [Path("nowhere")], ce.NearestNeighbours(1)), FileNotFoundError, "no parquet files"),
        ((*blocks(X[:2], Y[:2]), ce.NearestNeighbours(4)), ValueError, "k=4 is too large"),
    ],
)
def test_bad_samples(arguments, error, message):
    with pytest.raises(error, match=message):
        ce.two_sample(*arguments)


@pytest.mark.parametrize("distance", [0.5, np.nan, None])
def test_bad_distances(distance):
    with pytest.raises((TypeError, ValueError), match="distance"):
        ce.two_sample(*blocks(X, Y), ce.NearestNeighbours(1), distance=distance)


def test_points_of_a_cluster_are_not_thinned():
    with pytest.raises(ValueError, match="max_points=100 needs"):
        ce.two_sample(*blocks(X, Y), ce.NearestNeighbours(1), max_points=100)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [1.0, 2.0], "zz": [1.0, 2.0]}, "all files must share their columns"),
        ({"a": [1.0, 2.0], "b": ["1", "2"]}, "column 'b' of string"),
    ],
)
def test_files_with_other_columns(tmp_path, columns, message):
    parquet.write_table(pa.table({"a": [1.0, 2.0], "b": [0.0, 3.0]}), tmp_path / "x.parquet")
    parquet.write_table(pa.table(columns), tmp_path / "y.parquet")
    with pytest.raises((TypeError, ValueError), match=message):
        ce.two_sample(tmp_path / "x.parquet", tmp_path / "y.parquet", ce.NearestNeighbours(1))


@pytest.mark.slow
def test_a_killed_worker_changes_nothing():
    distributed = pytest.importorskip("distributed")
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(4000, 5)), 1.05 * rng.normal(size=(4000, 5))
    expected = ce.two_sample(x, y, ce.NearestNeighbours(5), null="normal")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as own,
        distributed.Client(own) as client,
        dask.config.set(scheduler=client),
    ):
        killed = []

        def kill_one():
            while client.run(lambda dask_worker: len(dask_worker.data)) and not killed:
                done = client.run(lambda dask_worker: len(dask_worker.data))
                if max(done.values()) > 5:  # half-way: there are results that will be lost
                    pid = next(iter(client.run(os.getpid).values()))
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
                time.sleep(0.05)

        killer = threading.Thread(target=kill_one)
        killer.start()
        found = ce.two_sample(*blocks(x, y, size=500), ce.NearestNeighbours(5), null="normal")
        killer.join(timeout=10)
        assert killed
    compare(found, expected)
