"""Runs of `crossedge learn`: what they leave, and how they survive interruption."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import torch

from crossedge.cli.main import main
from crossedge.learning import datasets, learn, quality
from crossedge.learning.learn import Run
from crossedge.learning.runs import RunFolder
from crossedge.learning.states import read_state
from crossedge.learning.trainer import Trainer
from learning_cases import interrupt_and_wait, same

TINY = ["--phases", "4x1e-3", "--batch", "64"]
CHEAP = ["--weights", "gaussian"]  # nothing to compile


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    make_small(monkeypatch)


def make_small(patch):
    patch.setattr(quality, "MAX_POINTS", 50)
    patch.setattr(datasets, "MOONS_TRAIN_POINTS", 256)
    patch.setattr(learn, "RESAMPLES", 100)
    patch.setitem(learn.LAWS, "log_pvalue", "normal")  # the quickest


class TestRun:
    def test_a_run_leaves_all_that_it_promises(self, tmp_path, capsys, monkeypatch):
        folder = tmp_path / "run"
        monkeypatch.setitem(learn.LAWS, "log_pvalue", "pearson3")
        command = ["learn", "moons", "--phases", "2x1e-3", "--batch", "64", "--out", str(folder)]
        assert main(command) == 0
        assert "coverage" in capsys.readouterr().out
        metrics = RunFolder(folder).metrics()
        assert [line["epoch"] for line in metrics] == [1, 2]
        assert json.loads((folder / "config.json").read_text())["batch"] == 64
        assert {path.name for path in folder.iterdir()} == {
            "checkpoint.npz",
            "config.json",
            "layout.json",
            "loss.png",
            "metrics.jsonl",
            "quality.json",
            "samples",
        }
        state = read_state(folder / "checkpoint.npz")  # no code in it
        assert state["epoch"] == 2
        assert main(command) == 2  # does not overwrite
        assert "--resume" in capsys.readouterr().err

    def test_a_run_that_diverges_says_so_and_keeps_the_last_good_checkpoint(self, tmp_path, capsys):
        folder = tmp_path / "run"
        phases = ["--phases", "1x1e-3,3x1e30", "--batch", "64", *CHEAP, "--out", str(folder)]
        assert main(["learn", "moons", *phases]) == 2
        error = capsys.readouterr().err
        assert "not finite in step" in error
        assert "smaller step size" in error
        state = read_state(folder / "checkpoint.npz")
        assert state["epoch"] >= 1
        assert all(value.isfinite().all() for value in state["generator"].values())

    def test_a_start_that_failed_does_not_occupy_the_folder(self, tmp_path):
        common = ["learn", "moons", "--phases", "1x1e-3", "--batch", "64", "--out", str(tmp_path)]
        assert main([*common, "--k", "600", "--temperature", "1"]) == 2
        assert main([*common, *CHEAP]) == 0

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--device", "foo"], "--device foo is not here"),
            (["--noise", "-1"], "noise=-1 is too small"),
            (["--weights", "energy", "--temperature", "3"], "--temperature does not go with"),
            (["--weights", "laplace", "--k", "3"], "--k does not go with"),
        ],
    )
    def test_options_that_cannot_be_get_one_line(self, options, message, capsys, tmp_path):
        assert main(["learn", "moons", *options, "--out", str(tmp_path / "run")]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
        assert not (tmp_path / "run").exists()

    @pytest.mark.parametrize("text", ["2", "2x1e-3@cold", "axb"])
    def test_phases_that_are_none(self, text, capsys, tmp_path):
        assert main(["learn", "moons", "--phases", text, "--out", str(tmp_path / "run")]) == 2
        assert "is no phase: give EPOCHSxSTEP" in capsys.readouterr().err

    def test_wrong_options_get_one_line(self, capsys, tmp_path):
        assert main(["learn", "moons", "--preset", "mnist-1", "--out", str(tmp_path / "a")]) == 2
        assert "is for mnist" in capsys.readouterr().err
        assert main(["learn", "moons", "--resume", "--batch", "64", "--seed", "1"]) == 2
        assert "leave out --batch, --seed" in capsys.readouterr().err
        assert main(["learn", "moons", "--temperature", "0", "--out", str(tmp_path / "c")]) == 2
        assert "temperature 0" in capsys.readouterr().err
        assert not (tmp_path / "c").exists()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nobody interrupts."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    with pytest.MonkeyPatch.context() as patch:
        make_small(patch)
        assert main(learning_in(folder)) == 0
    return folder


def learning_in(folder):
    return ["learn", "moons", *TINY, *CHEAP, "--out", str(folder)]


def resume(folder):
    return main(["learn", "moons", "--resume", "--out", str(folder)])


def assert_same_runs(one, other):
    """All that is saved is equal, bit for bit, but for how long it took."""
    states = [read_state(folder / "checkpoint.npz") for folder in (one, other)]
    assert same(*states)
    lines = [RunFolder(folder).metrics() for folder in (one, other)]
    assert [{**line, "seconds": 0} for line in lines[0]] == [
        {**line, "seconds": 0} for line in lines[1]
    ]
    assert json.loads((one / "quality.json").read_text()) == json.loads(
        (other / "quality.json").read_text()
    )


class TestInterruption:
    @pytest.mark.parametrize(
        ("method", "place"),
        [
            (Trainer, "_step"),
            (Trainer, "state"),
            (Run, "_pvalues"),
            (Run, "draw"),
            (Run, "finish"),
        ],
    )
    def test_an_interrupt_leaves_the_last_whole_epoch(
        self, tmp_path, capsys, monkeypatch, whole, method, place
    ):
        folder = tmp_path / "a run"  # its name needs quotes
        original = getattr(method, place)
        epochs = 4 if place == "finish" else 2

        def interrupted(self, *arguments):
            found = original(self, *arguments)
            if (folder / "checkpoint.npz").exists() and len(RunFolder(folder).metrics()) == epochs:
                interrupt_and_wait()
            return found

        with monkeypatch.context() as patch:
            patch.setattr(method, place, interrupted)
            assert main(learning_in(folder)) == 130
        error = capsys.readouterr().err
        hint = f"go on with --resume --out '{folder}'"
        assert error == f"crossedge: interrupted after epoch {epochs}; {hint}\n"
        assert len(RunFolder(folder).metrics()) == epochs
        assert read_state(folder / "checkpoint.npz")["epoch"] == epochs
        assert resume(folder) == 0
        assert_same_runs(folder, whole)

    @pytest.mark.parametrize(
        "number", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGKILL]
    )
    def test_a_process_that_is_ended_can_be_resumed(self, tmp_path, whole, number):
        folder = tmp_path / "run"
        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # so it has in the child
        process = subprocess.Popen(
            [sys.executable, "-c", SLOWLY, *learning_in(folder)],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stderr=subprocess.PIPE,
            text=True,
        )
        signal.signal(signal.SIGINT, before)
        while not (folder / "checkpoint.npz").exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(number)
        error = process.communicate(timeout=30)[1]
        if number == signal.SIGINT:
            epoch = read_state(folder / "checkpoint.npz")["epoch"]
            hint = f"go on with --resume --out {folder}"
            assert error == f"crossedge: interrupted after epoch {epoch}; {hint}\n"
            assert process.returncode == 130
        assert resume(folder) == 0
        assert_same_runs(folder, whole)

    def test_lines_without_a_checkpoint_are_dropped(self, tmp_path, whole):
        folder = tmp_path / "run"
        short = ["--phases", "2x1e-3", "--batch", "64", *CHEAP]
        assert main(["learn", "moons", "--out", str(folder), *short]) == 0
        configuration = json.loads((folder / "config.json").read_text())
        configuration["phases"] = [[4, 1e-3, None]]
        (folder / "config.json").write_text(json.dumps(configuration))
        # a line of an epoch that has no checkpoint, and half of another: the run was killed then
        with (folder / "metrics.jsonl").open("a") as file:
            file.write('{"epoch": 3, "loss": 1.0, "seconds": 1, "log_pvalue": 0}\n{"epo')
        assert resume(folder) == 0
        assert_same_runs(folder, whole)

    def test_a_start_that_was_killed_in_its_first_epoch_can_be_begun_anew(self, tmp_path, whole):
        folder = tmp_path / "run"
        folder.mkdir()
        (folder / "metrics.jsonl").write_text('{"epoch": 1}\n')
        assert main(learning_in(folder)) == 0
        assert_same_runs(folder, whole)


SLOWLY = """
import sys, time
from crossedge.learning import datasets, learn, quality, runs
from crossedge.__main__ import command
datasets.MOONS_TRAIN_POINTS, learn.RESAMPLES, learn.LAWS["log_pvalue"] = 256, 100, "normal"
save = runs.RunFolder.save
def slowly(self, *arguments):
    save(self, *arguments)
    time.sleep(0.5)
runs.RunFolder.save = slowly
command()
"""


@pytest.mark.slow
def test_two_processes_by_the_command(tmp_path):
    folders = [tmp_path / name for name in ("one", "two")]
    options = ["--phases", "1x1e-3", "--batch", "64", "--out"]
    assert main(["learn", "moons", *options, str(folders[0])]) == 0
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    script = tmp_path / "script.py"
    script.write_text(SLOWLY)
    command = [*torchrun, str(script), "learn", "moons", *options, str(folders[1])]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stderr
    assert found.stdout.count("coverage") == 1  # one of them speaks
    states = [read_state(folder / "checkpoint.npz")["generator"] for folder in folders]
    for name, value in states[0].items():  # Adam makes much of rounding where gradients are small
        torch.testing.assert_close(value, states[1][name], rtol=0, atol=1e-3)
    losses = [RunFolder(folder).metrics()[-1]["loss"] for folder in folders]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
