"""Power studies: the same numbers however they are run, interrupted or killed."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from scipy import stats

import crossedge as ce
from crossedge.cli import main
from crossedge.experiments import power
from crossedge.randomness import random_key
from crossedge.studies.fingerprint import fingerprint
from crossedge.studies.grid import BLOCK, seeds
from crossedge.studies.study import wilson

CALLS = []  # of the sampler below; what a study is made of does not hold lists of its module


def shifted(rng, shift=0.0, n=6):
    CALLS.append(shift)
    return rng.normal(size=(n, 2)), rng.normal(size=(n, 2)) + shift


def tiny(samplers=shifted, tests=None, **options):
    tests = tests or {"tree": ce.SpanningTree(), "energy": ce.EnergyKernel()}
    options = {"grid": {"shift": [0.0, 2.0]}, "repetitions": 40, "n_resamples": 19, **options}
    return ce.power_study(samplers, tests, **options)


def normals(shift):
    """A sampler that a worker need not import."""
    return lambda rng, n: (rng.normal(size=(n, 2)), rng.normal(size=(n, 2)) + shift)


def equal(one, other):
    return one.pvalues.keys() == other.pvalues.keys() and all(
        np.array_equal(one.pvalues[name], other.pvalues[name]) for name in one.pvalues
    )


class TestNumbers:
    def test_the_level_holds_and_power_grows(self):
        tests = {"nearest": ce.NearestNeighbours(3, 0.5), "energy": ce.EnergyKernel()}
        frame = tiny(tests=tests, grid={"shift": [0.0, 1.0, 3.0]}, repetitions=300).frame
        for test in tests:
            none, some, much = frame[frame.test == test].power
            assert none == pytest.approx(0.05, abs=3 * np.sqrt(0.05 * 0.95 / 300))
            assert none < some < much
            assert much > 0.9

    def test_standard_errors_and_intervals(self):
        """Of a test that rejects every fifth time."""
        turn = iter(range(50))
        fifth = {"fifth": lambda x, y, rng: 0.05 if next(turn) % 5 == 0 else 0.06}
        (row,) = tiny(tests=fifth, grid=None, repetitions=50).frame.to_dict("records")
        assert row["power"] == 0.2
        assert row["standard_error"] == pytest.approx(np.sqrt(0.2 * 0.8 / 50))
        assert (row["lower"], row["upper"]) == pytest.approx((0.11243, 0.33037), abs=1e-5)
        assert (row["repetitions"], row["level"]) == (50, 0.05)

    @pytest.mark.parametrize("rejected", [0, 1, 8, 10])
    def test_intervals_are_those_of_wilson(self, rejected):
        known = stats.binomtest(rejected, 10).proportion_ci(0.95, "wilson")
        assert wilson(rejected, 10, 0.95) == pytest.approx((known.low, known.high))

    def test_all_tests_see_the_same_samples_and_labellings(self):
        def first(x, y, rng):
            return float((abs(x).sum() + abs(y).sum()) % 1)

        def second(x, y, rng):
            return float(rng.random())

        found = tiny(tests={"a": first, "b": first, "c": second, "d": second}).pvalues
        assert np.array_equal(found["a"], found["b"])
        assert np.array_equal(found["c"], found["d"])
        assert len(np.unique(found["a"])) == len(np.unique(found["c"])) == 80
        found = tiny(tests={"a": ce.SpanningTree(), "b": {"weights": ce.SpanningTree()}}).pvalues
        assert np.array_equal(found["a"], found["b"])

    def test_pvalues_are_those_of_two_sample(self):
        seen = []
        tests = {
            "tree": ce.SpanningTree(),
            "energy": ce.EnergyKernel(),
            "adaptive": None,
            "l1": {"weights": ce.NearestNeighbours(3, 0.5), "distance": 1},
            "watch": lambda x, y, rng: seen.append((x, y)) or 1.0,
        }
        found = tiny(tests=tests, grid={"shift": [0.5]}, repetitions=5, n_resamples=99).pvalues
        for repetition, (x, y) in enumerate(seen):
            _, rng = seeds(int(random_key(0)), {"shift": 0.5}, repetition)
            options = {"n_resamples": 99, "rng": rng}
            for name in ("tree", "energy", "adaptive"):
                expected = ce.two_sample(x, y, tests[name], **options).pvalue
                assert found[name][0, repetition] == expected
            expected = ce.two_sample(x, y, **tests["l1"], **options).pvalue
            assert found["l1"][0, repetition] == expected

    def test_weights_and_tests_as_functions_of_the_grid(self):
        def same(x, y, rng, k):
            return ce.two_sample(x, y, ce.NearestNeighbours(k, k / 2), null="pearson3")

        tests = {
            "function": {"weights": lambda k: ce.NearestNeighbours(k, k / 2), "null": "pearson3"},
            "test": same,
        }
        found = tiny(tests=tests, grid=[{"shift": 1, "k": 1}, {"shift": 1, "k": 3}], repetitions=9)
        assert found.pvalues["function"] == pytest.approx(found.pvalues["test"])

    def test_two_samplers_and_no_grid(self):
        pair = (lambda rng: rng.normal(size=(15, 1)), lambda rng: rng.normal(size=(19, 1)) + 9)
        frame = tiny(pair, grid=None).frame
        assert list(frame.power) == [1, 1]

    def test_differences_are_paired(self):
        tests = {
            "x": lambda x, y, rng: float(x[0, 0] > 0),
            "more": lambda x, y, rng: float(x[0, 0] > 0.5),
            "far": lambda x, y, rng: float(y[0, 0] > 0),
        }
        study = tiny(tests=tests, grid=None, repetitions=200)
        close, far = study.difference("more", "x"), study.difference("more", "far")
        known = study.frame.set_index("test").power
        assert close.difference[0] == pytest.approx(known["more"] - known["x"])
        assert close.standard_error[0] < 0.7 * far.standard_error[0]

    def test_a_point_has_its_numbers_whatever_else_is_in_the_grid(self):
        one = tiny(grid={"shift": [1.0]})
        more = tiny(grid=[{"shift": 0.0}, {"shift": 1}], repetitions=50)
        assert np.array_equal(one.pvalues["tree"][0], more.pvalues["tree"][1, :40])

    def test_the_source_of_randomness(self):
        assert not equal(tiny(), tiny(rng=1))
        assert equal(tiny(rng=1), tiny(rng=1))


class TestWorkers:
    def test_any_number_of_processes(self):
        tests = {"tree": ce.SpanningTree(0.5), "energy": ce.EnergyKernel()}
        options = {"tests": tests, "grid": {"n": range(5, 13)}}  # more cells than are begun at once
        assert equal(tiny(normals(1), **options), tiny(normals(1), jobs=2, **options))

    def test_threads_do_not_matter_and_stay_as_they_were(self):
        import torch

        seen = []
        watch = lambda x, y, rng: seen.append(torch.get_num_threads()) or 1.0  # noqa: E731
        options = {"tests": {"a": None, "b": watch}, "grid": {"n": [40]}, "repetitions": 3}
        one = tiny(normals(0.5), **options)
        threads = torch.get_num_threads()
        torch.set_num_threads(2)
        try:
            assert equal(one, tiny(normals(0.5), **options))
            assert torch.get_num_threads() == 2
            assert set(seen) == {1}
        finally:
            torch.set_num_threads(threads)

    def test_a_killed_process_is_replaced(self, tmp_path):
        flag = str(tmp_path / "killed")

        def fatal(rng, n):
            if n == 9 and not os.path.exists(flag):
                open(flag, "w").close()
                os.kill(os.getpid(), signal.SIGKILL)
            return rng.normal(size=(n, 2)), rng.normal(size=(n, 2)) + 1

        found = tiny(fatal, grid={"n": [6, 9]}, jobs=2)
        assert os.path.exists(flag)
        assert equal(found, tiny(fatal, grid={"n": [6, 9]}))


class TestFolder:
    def test_an_interrupted_study_goes_on(self, tmp_path, monkeypatch):
        expected = tiny()
        monkeypatch.setattr(sys.modules[__name__], "CALLS", StopsAt(2 * BLOCK + 10))
        with pytest.raises(
            KeyboardInterrupt, match=r"2 of 4 cells are done, and kept in .*goes on"
        ):
            tiny(folder=tmp_path / "study")
        CALLS.clear()
        assert equal(tiny(folder=tmp_path / "study"), expected)
        assert CALLS == [0.0] * 15 + [2.0] * 15
        CALLS.clear()
        assert equal(tiny(folder=tmp_path / "study"), expected)
        assert CALLS == []

    def test_interrupted_without_a_folder(self, monkeypatch):
        monkeypatch.setattr(sys.modules[__name__], "CALLS", StopsAt(30))
        with pytest.raises(KeyboardInterrupt, match="1 of 4 cells are done, and lost: give a fold"):
            tiny()

    def test_a_study_can_grow(self, tmp_path):
        tiny(folder=tmp_path, repetitions=BLOCK)
        CALLS.clear()
        grid = {"shift": [0.0, 1.0, 2.0]}
        found = tiny(folder=tmp_path, grid=grid, repetitions=2 * BLOCK, level=0.1)
        assert len(CALLS) == 4 * BLOCK
        assert equal(found, tiny(grid=grid, repetitions=2 * BLOCK))
        CALLS.clear()
        assert equal(tiny(folder=tmp_path, repetitions=10), tiny(repetitions=10))
        assert len(CALLS) == 20  # of the one without a folder

    def test_what_is_not_whole_is_done_again(self, tmp_path):
        expected = tiny(folder=tmp_path)
        files = sorted((tmp_path / "cells").iterdir())
        files[0].write_text(files[0].read_text()[:60])
        files[1].write_text("[]")
        sizes = [len(json.loads(file.read_text())["pvalues"]["tree"]) for file in files[2:]]
        (tmp_path / "cells" / (files[2].name + ".1.new")).write_text("half")
        CALLS.clear()
        assert equal(tiny(folder=tmp_path), expected)
        assert len(CALLS) == 80 - sum(sizes)

    @pytest.mark.parametrize(
        ("other", "part"),
        [
            ({"rng": 1}, "rng"),
            ({"n_resamples": 39}, "tests"),
            ({"tests": {"tree": ce.SpanningTree(0.1)}}, "tests"),
            ({"samplers": lambda rng, shift: shifted(rng, -shift)}, "samplers"),
        ],
    )
    def test_the_folder_of_another_study_is_refused(self, other, part, tmp_path):
        tiny(folder=tmp_path)
        with pytest.raises(ValueError, match=rf"holds another study \(other {part}\): give anothe"):
            tiny(**other, folder=tmp_path)

    def test_a_file_is_no_folder(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(FileExistsError, match="is a file: give a folder"):
            tiny(folder=tmp_path / "file")

    def test_killed_at_any_time(self, tmp_path):
        script = tmp_path / "script.py"
        script.write_text(SCRIPT)
        spec = importlib.util.spec_from_file_location("script", script)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        folder = tmp_path / "study"
        process = subprocess.Popen([sys.executable, script, folder], env=ONE_THREAD)
        wait_for(lambda: len(list(folder.glob("cells/*.json"))) >= 2, process)
        process.kill()
        process.wait()
        kept = len(list(folder.glob("cells/*.json")))
        assert kept < 12
        found = module.study(folder, lambda: None)
        assert module.DRAWN[0] == 300 - BLOCK * kept
        assert equal(found, module.study(None, lambda: None))


class StopsAt(list):
    """A list that is interrupted, as by Ctrl-C, when it has so many entries."""

    def __init__(self, count):
        self.count = count

    def append(self, value):
        super().append(value)
        if len(self) == self.count:
            raise KeyboardInterrupt


ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}
SCRIPT = """
import sys, time
import crossedge as ce

DRAWN = [0]
PAUSE = []

def sampler(rng, shift):
    DRAWN[0] += 1
    for pause in PAUSE:
        pause()
    return rng.normal(size=(6, 2)), rng.normal(size=(6, 2)) + shift

def study(folder, pause):
    PAUSE[:] = [pause]
    tests = {"tree": ce.SpanningTree()}
    return ce.power_study(
        sampler, tests, grid={"shift": [0, 1, 2]}, repetitions=100, n_resamples=19, folder=folder
    )

if __name__ == "__main__":
    study(sys.argv[1], lambda: time.sleep(0.01))
"""


def wait_for(condition, *processes):
    for _ in range(6000):
        if condition():
            return
        assert all(process.poll() is None for process in processes), "a process has ended"
        time.sleep(0.02)
    raise AssertionError("nothing happened for two minutes")


class TestCluster:
    @pytest.fixture
    def cluster(self, tmp_path):
        """A scheduler and two workers that nobody starts again."""
        file = tmp_path / "scheduler.json"
        dask = [sys.executable, "-m", "dask"]
        options = ["--no-dashboard", "--scheduler-file", str(file)]
        command = [*dask, "scheduler", "--port", "0", "--host", "127.0.0.1", *options]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": ONE_THREAD}
        processes = [subprocess.Popen(command, **quiet)]
        try:
            wait_for(file.exists, *processes)
            command = [*dask, "worker", "--no-nanny", "--nthreads", "1", *options]
            command += ["--local-directory", str(tmp_path)]
            processes += [subprocess.Popen(command, **quiet) for _ in range(2)]
            wait_for(lambda: file.read_text().endswith("}"), *processes)
            yield json.loads(file.read_text())["address"], processes[1:]
        finally:
            for process in processes:
                process.kill()
                process.wait()

    @pytest.mark.slow
    def test_a_worker_is_killed_half_way(self, cluster, tmp_path):
        from distributed import Client

        address, workers = cluster
        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
        left = []

        def slow(x, y, rng):
            time.sleep(0.005)
            return float(rng.random())

        def traced(rng, n):
            (tmp_path / f"by-{os.getpid()}").touch()
            return rng.normal(size=(n, 2)), rng.normal(size=(n, 2)) + 1

        tests = {"tree": ce.SpanningTree(), "slow": slow}
        options = {"tests": tests, "grid": {"n": [6, 7, 8]}, "repetitions": 100}
        folder = tmp_path / "study"

        def kill_one():
            wait_for(lambda: len(list(folder.glob("cells/*.json"))) >= 3)
            workers[0].kill()
            left.append(12 - len(list(folder.glob("cells/*.json"))))

        killer = threading.Thread(target=kill_one)
        killer.start()
        found = tiny(traced, dask=address, folder=folder, **options)
        killer.join()
        assert {file.name for file in tmp_path.glob("by-*")} == {f"by-{one.pid}" for one in workers}
        assert workers[0].wait() == -signal.SIGKILL
        assert left[0] > 0
        assert equal(found, tiny(traced, **options))

    def test_nobody_answers(self, monkeypatch):
        monkeypatch.setattr("crossedge.studies.workers.PATIENCE", 0.2)
        with pytest.raises(ConnectionError, match="no Dask scheduler answers at tcp"):
            tiny(dask="tcp://127.0.0.1:9")


class TestFingerprint:
    def test_equal_code_is_equal(self):
        def make(shift):
            return lambda rng, d: rng.normal(size=d) + shift

        assert fingerprint(make(1)) == fingerprint(make(1))
        assert fingerprint(make(1)) != fingerprint(make(2))
        assert fingerprint(lambda d: d + 1) != fingerprint(lambda d: d + 2)
        assert fingerprint(lambda d: np.sin(d)) != fingerprint(lambda d: np.cos(d))

    def test_it_sees_what_a_function_uses(self, monkeypatch):
        before = fingerprint(tiny)
        monkeypatch.setattr(sys.modules[__name__], "shifted", lambda rng: 3)
        assert fingerprint(tiny) == before  # a default: bound with the definition
        before = fingerprint(normals)
        assert fingerprint(uses_normals) != before
        known = fingerprint(uses_normals)
        monkeypatch.setattr(sys.modules[__name__], "normals", lambda shift: 0)
        assert fingerprint(uses_normals) != known

    def test_objects_and_arrays(self):
        assert fingerprint(np.zeros(3)) != fingerprint(np.ones(3))
        assert fingerprint([ce.SpanningTree(1.0)]) == fingerprint([ce.SpanningTree(1.0)])
        assert fingerprint(ce.SpanningTree(1.0)) != fingerprint(ce.SpanningTree(2.0))
        assert fingerprint(Shift(1)) == fingerprint(Shift(1)) != fingerprint(Shift(2))
        assert fingerprint(Shift(1).draw) != fingerprint(Shift(2).draw)


def uses_normals(rng):
    return normals(1)(rng, 5)


class Shift:
    def __init__(self, shift):
        self.shift = shift

    def draw(self, rng):
        return rng.normal(size=3) + self.shift


WRONG = {
    "no sampler": ({"samplers": 3}, "samplers is 3: give a function of"),
    "three samplers": ({"samplers": [shifted] * 3}, "two that return a sample each"),
    "one sample": ({"samplers": lambda rng, shift: rng.normal(size=3)}, "sampler returned a ndarr"),
    "a list of tests": ({"tests": [ce.SpanningTree()]}, "tests is of type list: give a dictionary"),
    "a class": ({"tests": {"a": ce.SpanningTree}}, "test 'a' is a class: give an instance"),
    "text": ({"tests": {"a": "tree"}}, "test 'a' is 'tree': give weights, None"),
    "a number for a name": ({"tests": {1: None}}, "the name 1: give text"),
    "rng of a test": ({"tests": {"a": {"rng": 1}}}, "has the argument 'rng': choose from dist"),
    "statistic": ({"tests": {"a": {"statistic": "best"}}}, "test 'a': statistic='best'"),
    "no p-value": ({"tests": {"a": lambda x, y, rng: 2.0}}, "'a' at shift=0.0: it returned 2.0: g"),
    "NaN": ({"tests": {"a": lambda x, y, rng: np.nan}}, "it returned nan: give a p-value"),
    "points of two kinds": ({"grid": [{"shift": 1}, {"n": 1}]}, "give all the same names"),
    "twice": ({"grid": {"shift": [1, 1.0]}}, "twice: once is enough"),
    "not a grid": ({"grid": 3}, "grid is of type int: give a dictionary of lists"),
    "not a list": ({"grid": {"shift": 3}}, "grid has 3 for 'shift': give a list"),
    "no values": ({"grid": {"shift": []}}, "no values for 'shift'"),
    "no points": ({"grid": []}, "grid is empty"),
    "an array": ({"grid": {"shift": [np.zeros(2)]}}, "of type ndarray: give numbers, text"),
    "a column": ({"grid": {"power": [1]}}, "'power', which the study itself uses"),
    "nobody looks": ({"grid": {"shift": [1], "m": [1]}}, "'m', which no sampler and no test takes"),
    "level": ({"level": 5}, "level=5 is not between 0 and 1"),
    "repetitions": ({"repetitions": 0}, "repetitions=0 is too small"),
    "half a repetition": ({"repetitions": 1.5}, "repetitions=1.5 is not an integer"),
    "jobs": ({"jobs": 0}, "jobs=0 is no number of processes"),
    "both": ({"jobs": 2, "dask": "tcp://x:1"}, "jobs=2 does not go with dask"),
    "rng": ({"rng": -1}, "rng=-1 is negative"),
}


@pytest.mark.parametrize(("options", "message"), WRONG.values(), ids=WRONG)
def test_wrong_input(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        tiny(**options)


def test_an_error_of_the_user_says_where():
    def broken(x, y, rng):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError) as caught:
        tiny(tests={"broken": broken})
    assert caught.value.__notes__ == ["in test 'broken' at shift=0.0"]


class TestPackages:
    def test_the_core_needs_none_of_them(self):
        code = "import sys, crossedge; crossedge.power_study; print(*sys.modules)"
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        loaded = set(found.stdout.split())
        assert "crossedge.studies" in loaded
        optional = {"pandas", "joblib", "dask", "distributed", "pyarrow", "rich", "matplotlib"}
        assert not loaded & optional

    @pytest.mark.parametrize(
        ("package", "options", "extra"),
        [
            ("pandas", {}, "studies"),
            ("joblib", {"jobs": 2}, "studies"),
            ("distributed", {"dask": "tcp://x:1"}, "cluster"),
        ],
    )
    def test_what_is_missing(self, package, options, extra, monkeypatch):
        monkeypatch.setitem(sys.modules, package, None)
        message = rf"power_study needs {package}: pip install 'crossedge\[{extra}\]'"
        with pytest.raises(ModuleNotFoundError, match=message):
            tiny(**options)


class TestPlot:
    def test_a_panel_for_each_other_point(self):
        import matplotlib.pyplot as plt

        study = tiny(grid={"shift": [0, 1, 2], "n": [5, 8]}, repetitions=5)
        figure = study.plot()
        assert [ax.get_title() for ax in figure.axes] == ["n = 5", "n = 8"]
        curves = {line.get_label(): line for line in figure.axes[1].lines[:2]}
        rows = study.frame[(study.frame.n == 8) & (study.frame.test == "tree")]
        assert list(curves["tree"].get_ydata()) == list(rows.power)
        assert list(curves["tree"].get_xdata()) == [0, 1, 2]
        plt.close(figure)
        plt.close(study.plot("n", ["energy"]))
        for arguments, message in (
            (("d",), "x='d' is not in the grid, which has shift, n"),
            ((None, ["wood"]), "'wood' is no test of this study"),
        ):
            with pytest.raises(ValueError, match=message):
                study.plot(*arguments)

    def test_without_a_grid(self):
        with pytest.raises(ValueError, match="no grid, and so no axis"):
            tiny(grid=None, repetitions=2).plot()


class TestReproduction:
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
        assert main([*command, "--repetitions", "1", "--seed", "1"]) == 1
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


def test_a_study_prints_as_its_table():
    shown = repr(tiny(repetitions=4)).splitlines()
    assert shown[0] == "power at level 0.05, 4 repetitions"
    assert shown[1].split() == ["shift", "test", "power", "standard_error", "lower", "upper"]
    assert len(shown) == 6


def test_the_bar_is_for_terminals(capsys):
    tiny(repetitions=2)
    assert capsys.readouterr().err == ""
