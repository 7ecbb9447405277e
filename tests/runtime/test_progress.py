"""Progress of long work: a bar on a terminal, and nothing elsewhere."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import crossedge as ce
from crossedge.runtime import progress
from crossedge.runtime.threads import in_threads


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def terminal(monkeypatch):
    found = Terminal()
    # pytest itself replaces sys.stderr after fixtures are set up
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=found))
    monkeypatch.setattr("rich.console.sys", SimpleNamespace(**vars(sys) | {"stderr": found}))
    return found


@pytest.mark.parametrize("rich", [True, False])
def test_slow_work_has_a_bar(clock, terminal, monkeypatch, rich):
    if not rich:
        monkeypatch.setitem(sys.modules, "rich.console", None)
        monkeypatch.setitem(sys.modules, "rich.progress", None)

    def work(_):
        clock[0] += 1.0

    with progress.stage("counting sheep"):
        in_threads(work, range(100))
    assert "counting sheep, about 2 min" in terminal.getvalue()


def test_fast_work_has_none(clock, terminal):
    def work(_):
        clock[0] += 0.01

    in_threads(work, range(100))
    assert not terminal.getvalue()


def test_no_bar_without_a_terminal(clock, capsys):
    def work(_):
        clock[0] += 1.0

    in_threads(work, range(100))
    assert not capsys.readouterr().err


def test_the_bar_goes_away_with_an_error(clock, terminal):
    def work(block):
        clock[0] += 1.0
        if block == 50:
            raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        in_threads(work, range(100))
    in_threads(lambda _: None, range(3))


def test_compiling_does_not_count(clock, terminal):
    def work(block):
        clock[0] += 0.001 if block else 1000.0

    in_threads(work, range(1000))
    assert not terminal.getvalue()


def test_thinned_samples():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(500, 2)), rng.normal(size=(100, 2)) + 1
    one, again, other = (
        ce.two_sample(x, y, ce.NearestNeighbours(1), rng=seed, max_points=60) for seed in (0, 0, 1)
    )
    assert (one.n_x, one.n_y) == (50, 10)
    assert one.statistic == again.statistic
    assert one.zscore != other.zscore
    whole = ce.two_sample(x, y, ce.NearestNeighbours(1), rng=0, max_points=600)
    assert (whole.n_x, whole.n_y) == (500, 100)
    for bad in (0, 1, 2.5, True):
        with pytest.raises((TypeError, ValueError), match="max_points"):
            ce.two_sample(x, y, ce.NearestNeighbours(1), max_points=bad)
