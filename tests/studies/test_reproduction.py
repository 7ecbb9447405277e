"""The paper's power figure, by `crossedge reproduce power`."""

import numpy as np
import pytest

import crossedge as ce
from crossedge.cli.main import main
from crossedge.experiments import power


class TestReproduction:
    @pytest.mark.slow
    def test_the_power_figure(self, tmp_path, capsys):
        import pandas as pd

        out = tmp_path / "power"
        command = ["reproduce", "power", "--out", str(out), "--dimensions", "2,5"]
        assert main([*command, "--repetitions", "1", "--jobs", "1"]) == 0
        frame = pd.read_parquet(out / "power.parquet")
        assert len(frame) == 3 * 2 * 20
        assert set(frame.d) == {2, 5}
        assert frame.equals(pd.read_csv(out / "power.csv"))
        for name in ("power.png", "mmd.png", "claims.csv"):
            assert (out / name).stat().st_size > 500
        assert f"tables and figures are in {out}" in capsys.readouterr().out
        assert main([*command, "--repetitions", "1", "--seed", "1"]) == 2
        assert "holds another study (other rng): give another" in capsys.readouterr().err

    def test_samples_are_those_of_the_paper(self):
        x, y = power.normals(np.random.default_rng(0), d=3, mu=0.5, sigma=3.0, n=20_000)
        assert np.cov(x.T) == pytest.approx(np.eye(3), abs=0.05)
        assert np.cov(y.T) == pytest.approx(np.diag([9.0, 1.0, 1.0]), abs=0.3)
        assert y.mean(0) == pytest.approx([0.5, 0, 0], abs=0.1)

    def test_tests_are_those_of_the_paper(self):
        found = power.tests()
        assert found["fr-0.5"]["weights"](d=16) == ce.SpanningTree(4.0)
        assert found["3nn-1"]["weights"](d=16) == ce.NearestNeighbours(3, 16.0)
        assert found["mmd-0.25"]["weights"](d=16) == ce.GaussianKernel(2.0)
        assert found["fr-ct"] == ce.SpanningTree()

    def test_stopped_by_hand(self, tmp_path, capsys, monkeypatch):
        monkeypatch.setattr("crossedge.experiments.power.normals", interrupted)
        command = ["reproduce", "power", "--out", str(tmp_path), "--repetitions", "1"]
        assert main([*command, "--jobs", "1"]) == 130
        assert "0 of 24 cells are done, and kept in" in capsys.readouterr().err


def interrupted(rng, d, mu, sigma, n):
    raise KeyboardInterrupt
