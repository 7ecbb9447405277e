"""The command: what it imports, how it complains, and how it ends."""

import errno
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import crossedge as ce
from crossedge.cli import learn as cli
from crossedge.cli.main import main
from crossedge.statistics import STATISTICS

HEAVY = ("numba", "pandas", "scipy", "torch")
COMMAND = [sys.executable, "-m", "crossedge"]
AFTER_THE_COMMAND = """
import sys
from crossedge.__main__ import command
try:
    command()
finally:
    print("imported:", *sys.modules, file=sys.stderr)
"""
INTERRUPTED_AT_AN_IMPORT = """
import os, signal, sys
class Finder:
    def find_spec(name, path=None, target=None):
        if name == moment:
            os.kill(os.getpid(), signal.SIGINT)
moment = sys.argv.pop()
from crossedge.__main__ import command
sys.meta_path.insert(0, Finder)
command()
"""


def start(command, **options):
    """Start a process that an interrupt reaches, even if this one was told to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
        )
    finally:
        signal.signal(signal.SIGINT, before)


def end(process):
    try:
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
    return process.returncode, out, err


class TestLightness:
    @pytest.mark.parametrize(
        ("arguments", "code", "words"),
        [
            ("--help", 0, "usage: crossedge"),
            ("--version", 0, f"crossedge {ce.__version__}\n"),
            ("test --help", 0, "--no-header"),
            ("learn --help", 0, "--preset"),
            ("reproduce power --help", 0, "--dask"),
            ("test x.csv", 2, "required: y"),
            ("test x.csv none.csv", 1, "none.csv"),
            ("test x.csv nan.csv", 1, "nan.csv has NaN in line 2, column 1"),
            ("test x.csv wide.npy", 1, "wide.npy has 3 columns, x.csv has 2"),
            ("test x.csv x.csv --resamples 0", 2, "--resamples: 0 is out of range: give 1 to"),
            ("test x.csv x.csv --seed x", 2, "--seed: 'x' is no whole number"),
            ("learn moons --k 0", 1, "k=0 is too small"),
            ("learn moons --temperature -1", 1, "temperature -1.0 is not above 0"),
            ("learn moons --phases 2x-1", 1, "a step size is -1.0"),
            ("learn moons --resume", 1, "holds no run to resume"),
            ("learn mnist --data .", 1, "has no train-images"),
            ("reproduce power --jobs 0", 2, "--jobs: 0 is no number of processes"),
            ("reproduce power --dimensions 2,0", 2, "0 is out of range"),
            ("reproduce mnist --data .", 1, "has no train-images"),
        ],
    )
    def test_words_come_before_torch(self, tmp_path, arguments, code, words):
        (tmp_path / "x.csv").write_text("1.5,2\n3,4\n")
        (tmp_path / "nan.csv").write_text("1.5,2\nnan,4\n")
        np.save(tmp_path / "wide.npy", np.zeros((2, 3)))
        process = start([sys.executable, "-c", AFTER_THE_COMMAND, *arguments.split()], cwd=tmp_path)
        found, out, err = end(process)
        err, imported = err.split("imported:")
        assert found == code
        assert words in (err if code else out)
        assert bool(out) == (code == 0)
        assert code != 1 or err.count("\n") == 1
        assert not set(HEAVY) & set(imported.split())

    def test_statistics_are_those_of_the_library(self):
        assert sorted(STATISTICS) == list(cli.STATISTICS)


class TestInterrupts:
    @pytest.mark.parametrize(
        ("arguments", "moment"),
        [
            ("--help", "threading"),
            ("--help", "crossedge.cli.main"),
            ("--help", "crossedge.learning.configuration"),
            ("test x.csv x.csv", "numpy"),
            ("test x.csv x.csv", "scipy"),
            ("test x.csv x.csv", "crossedge.adaptive"),
            ("reproduce power", "numpy"),
        ],
    )
    def test_while_modules_are_imported(self, tmp_path, arguments, moment):
        (tmp_path / "x.csv").write_text("1.5,2\n3,4\n")
        command = [sys.executable, "-c", INTERRUPTED_AT_AN_IMPORT, *arguments.split(), moment]
        code, out, err = end(start(command, cwd=tmp_path))
        assert err.startswith("crossedge: interrupted")
        assert (code, out, err.count("\n")) == (130, "", 1)

    @pytest.mark.parametrize("seconds", [None, 0.5, 4.0], ids=["reading", "importing", "testing"])
    def test_at_any_moment(self, tmp_path, seconds):
        """A pipe in place of a file tells when the command has got there."""
        rng = np.random.default_rng(0)
        np.save(tmp_path / "x.npy", rng.normal(size=(20_000, 10)))
        os.mkfifo(tmp_path / "y.csv")
        process = start([*COMMAND, "test", "x.npy", "y.csv"], cwd=tmp_path)
        with open(opened(tmp_path / "y.csv", process), "w") as pipe:
            if seconds is not None:
                np.savetxt(pipe, rng.normal(size=(40_000, 10)), "%.4f", ",")
                pipe.close()
                time.sleep(seconds)
            process.send_signal(signal.SIGINT)
            assert end(process) == (130, "", "crossedge: interrupted\n")


def opened(path, process):
    """The end of a named pipe to write to, once the process has opened the other one."""
    while process.poll() is None:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            time.sleep(0.01)
        else:
            os.set_blocking(descriptor, True)
            return descriptor
    raise AssertionError(process.communicate())


@pytest.mark.parametrize("buffered", ["", "1"])
@pytest.mark.parametrize("arguments", ["--help", "test x.csv x.csv"])
def test_a_closed_pipe_ends_it_quietly(tmp_path, arguments, buffered):
    (tmp_path / "x.csv").write_text("1.5,2\n3,4\n")
    environment = {**os.environ, "PYTHONUNBUFFERED": buffered}
    process = start([*COMMAND, *arguments.split()], cwd=tmp_path, env=environment)
    process.stdout.close()
    assert process.wait(30) in (0, 141)  # argparse says nothing of help that is not read
    assert process.stderr.read() == ""
    process.stderr.close()


def test_output_that_cannot_be_written(tmp_path):
    (tmp_path / "x.csv").write_text("1.5,2\n3,4\n")
    with open("/dev/full", "w") as full:
        found = subprocess.run(
            [*COMMAND, "test", "x.csv", "x.csv"],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert found.returncode == 1
    assert found.stderr.startswith("crossedge: [Errno 28]")
    assert found.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (MemoryError("8 GB are missing"), "crossedge: 8 GB are missing\n"),
        (MemoryError(), "crossedge: MemoryError, without a message\n"),
        (ValueError("two\n lines"), "crossedge: two lines\n"),
    ],
)
def test_complaints_are_one_line(tmp_path, monkeypatch, capsys, error, line):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("crossedge.verbs.two_sample", fail)
    np.save(tmp_path / "x.npy", np.zeros((2, 2)))
    assert main(["test", str(tmp_path / "x.npy"), str(tmp_path / "x.npy")]) == 1
    assert capsys.readouterr().err == line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("learn moons --data .", "--data is for mnist, and moons reads no files"),
        ("learn digits --data . --resume", "--data is for mnist, and digits reads no files"),
        ("learn moons --temperature 1 --phases 2x1e-3@2,3x1e-4@1", "all have: leave it out"),
        ("learn moons --weights energy --phases 2x1e-3@2", "'energy' have no temperature"),
        ("learn moons --weights tree --k 2", "--k does not go with weights 'tree'"),
        ("learn moons --preset moons-1 --resume --out .", "leave out --preset"),
    ],
)
def test_flags_that_would_be_ignored_are_refused(arguments, message, capsys):
    assert main(arguments.split()) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_an_output_without_signs_gets_the_answer(tmp_path):
    file = tmp_path / "x.csv"
    file.write_text("".join(f"{value},{value**2}\n" for value in np.linspace(0.1, 1, 12)))
    command = [sys.executable, "-m", "crossedge", "test", str(file), str(file)]
    known = {**os.environ, "PYTHONIOENCODING": "ascii"}
    found = subprocess.run(command, env=known, capture_output=True, text=True, timeout=120)
    assert found.returncode == 0, found.stderr
    assert "+-" in found.stdout
