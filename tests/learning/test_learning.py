"""Learning: data, configurations, and the paper's models."""

import gzip
import json
import struct

import numpy as np
import pytest

from crossedge.cli.main import main
from crossedge.experiments import mnist
from crossedge.learning import PRESETS, Configuration, Phase, datasets, learn, quality
from crossedge.learning.classifier import CACHE_VARIABLE
from crossedge.learning.configuration import with_epochs, with_steps
from crossedge.learning.datasets import MNIST_VARIABLE, load, read_idx
from crossedge.learning.runs import RunFolder
from learning_cases import interrupt_and_wait


@pytest.fixture(autouse=True)
def _small(monkeypatch, tmp_path):
    monkeypatch.setattr(quality, "MAX_POINTS", 100)
    monkeypatch.setitem(learn.LAWS, "log_pvalue", "normal")  # the quickest
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))


def write_idx(path, array):
    content = struct.pack(">i", 2048 + array.ndim) + struct.pack(f">{array.ndim}i", *array.shape)
    content += array.astype(np.uint8).tobytes()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


@pytest.fixture
def mnist_folder(tmp_path):
    return write_mnist(tmp_path / "mnist", 96)


def write_mnist(folder, images):
    """A tiny MNIST of blurred bars, half of the files gzipped."""
    rng = np.random.default_rng(0)
    folder.mkdir()
    for part, count, suffix in (("train", images, ".gz"), ("t10k", 40, "")):
        labels = rng.integers(0, 10, count)
        images = rng.integers(0, 60, (count, 28, 28))
        for image, label in zip(images, labels, strict=True):
            image[2 * label : 2 * label + 4] = 255
        write_idx(folder / f"{part}-images-idx3-ubyte{suffix}", images)
        write_idx(folder / f"{part}-labels-idx1-ubyte{suffix}", labels)
    return folder


class TestData:
    def test_moons_and_digits(self):
        moons, digits = load("moons"), load("digits")
        assert moons.train.shape == (5120, 2)
        assert digits.train.shape == (1437, 64)
        assert digits.train.min() == -1
        assert digits.train.max() == 1
        assert digits.side == 8

    def test_mnist(self, mnist_folder, monkeypatch):
        monkeypatch.setenv(MNIST_VARIABLE, str(mnist_folder))
        found = load("mnist")
        assert found.train.shape == (96, 784)
        assert found.held_out.shape == (40, 784)
        assert (found.train.min(), found.train.max()) == (-1, 1)
        row = found.train[0].reshape(28, 28).mean(1)
        assert row.argmax() // 2 in (found.train_labels[0], found.train_labels[0] + 1)

    @pytest.mark.parametrize(
        ("spoil", "message"),
        [
            (lambda folder: None, "MNIST is not here"),
            (lambda folder: (folder / "t10k-labels-idx1-ubyte").unlink(), "has no t10k-labels"),
            (
                lambda folder: (folder / "t10k-images-idx3-ubyte").write_bytes(b"\0\0\x08\x03\0"),
                "not an IDX file",
            ),
            (
                lambda folder: (folder / "t10k-images-idx3-ubyte").write_bytes(
                    (folder / "t10k-images-idx3-ubyte").read_bytes()[:-5]
                ),
                "is truncated",
            ),
            (
                lambda folder: (folder / "train-images-idx3-ubyte.gz").write_bytes(b"GIF89a"),
                "cannot be read",
            ),
            (
                lambda folder: (folder / "t10k-images-idx3-ubyte").write_bytes(b"GIF89a" * 9),
                "not an IDX file",
            ),
        ],
        ids=["no folder", "missing", "header only", "truncated", "not gzip", "foreign"],
    )
    def test_spoilt_files_get_one_clear_line(
        self, mnist_folder, spoil, message, capsys, monkeypatch, tmp_path
    ):
        monkeypatch.delenv(MNIST_VARIABLE, raising=False)
        spoil(mnist_folder)
        arguments = [] if message.startswith("MNIST") else ["--data", str(mnist_folder)]
        code = main(["learn", "mnist", "--out", str(tmp_path / "run"), *arguments])
        error = capsys.readouterr().err
        assert code == 2
        assert message in error
        assert error.count("\n") == 1

    def test_idx_files_come_back(self, tmp_path):
        array = np.random.default_rng(0).integers(0, 256, (5, 3, 2))
        write_idx(tmp_path / "some", array)
        np.testing.assert_array_equal(read_idx(tmp_path / "some", 2051), array)


class TestConfiguration:
    def test_phases(self):
        one = Configuration("moons", phases=(Phase(2, 0.1), Phase(1, 0.01, 0.5)))
        assert one.epochs == 3
        assert [one.phase_of(epoch).step for epoch in (1, 2, 3)] == [0.1, 0.1, 0.01]
        assert [loss.weights.temperature for loss in one.make_losses()] == [1.0, 0.5]
        assert Configuration.from_dict(json.loads(json.dumps(one.to_dict()))) == one

    def test_presets_are_those_of_the_paper(self):
        found = {
            name: (one.temperature, one.batch, tuple(phase[:2] for phase in one.phases))
            for name, one in PRESETS.items()
            if name != "mnist-gmmn"  # which it compares with, by other authors
        }
        long = ((500, 1e-3), (500, 1e-4))
        assert found == {
            "moons-1": (10.0, 256, ((500, 1e-4),)),
            "moons-2": (1.0, 256, ((500, 1e-4),)),
            "moons-3": (0.05, 256, ((500, 1e-4),)),
            "mnist-1": (10.0, 256, long),
            "mnist-2": (10.0, 512, long),
            "mnist-3": (10.0, 128, ((100, 1e-3), (100, 1e-4))),
            "mnist-4": (5.0, 128, ((100, 1e-4), (100, 1e-4))),
        }
        for one in PRESETS.values():
            assert Configuration.from_dict(json.loads(json.dumps(one.to_dict()))) == one
            one.make_losses()

    def test_the_same_in_fewer_epochs(self):
        short = with_epochs(PRESETS["mnist-1"], 5)
        assert sorted(phase.epochs for phase in short.phases) == [2, 3]
        assert [phase.epochs for phase in with_epochs(PRESETS["mnist-1"], 1).phases] == [1, 1]
        assert with_steps(PRESETS["mnist-3"], 4680, 60_000).epochs == 10
        assert with_steps(PRESETS["mnist-1"], 4680, 60_000).epochs == 20


class TestReproduction:
    @pytest.mark.slow
    def test_moons_goes_on_where_it_stopped(self, tmp_path, capsys, monkeypatch):
        command = ["reproduce", "moons", "--epochs", "2", "--out", str(tmp_path)]
        save = RunFolder.save

        def save_and_interrupt(self, state, metrics):
            save(self, state, metrics)
            if self.path.name == "moons-2" and metrics["epoch"] == 1:
                interrupt_and_wait()

        monkeypatch.setattr(datasets, "MOONS_TRAIN_POINTS", 512)
        with monkeypatch.context() as patch:
            patch.setattr(RunFolder, "save", save_and_interrupt)
            assert main(command) == 130
        stopped = "crossedge: interrupted; the same command goes on from here\n"
        assert capsys.readouterr().err == stopped
        assert not (tmp_path / "moons.png").exists()
        first = (tmp_path / "moons-1" / "metrics.jsonl").read_text()
        assert main(command) == 0
        assert (tmp_path / "moons-1" / "metrics.jsonl").read_text() == first
        assert (tmp_path / "moons.png").stat().st_size > 10_000
        rows = (tmp_path / "quality.csv").read_text().splitlines()
        assert [row.split(",")[0] for row in rows] == ["model", "moons-1", "moons-2", "moons-3"]
        assert "coverage" in capsys.readouterr().out
        assert main(["reproduce", "moons", "--epochs", "3", "--out", str(tmp_path)]) == 2
        assert "other settings" in capsys.readouterr().err

    def test_a_run_on_mnist(self, mnist_folder, tmp_path):
        folder = tmp_path / "run"
        options = ["--phases", "1x1e-3", "--batch", "16", "--weights", "gaussian"]
        data = ["--data", str(mnist_folder), "--out", str(folder)]
        assert main(["learn", "mnist", *data, *options]) == 0
        found = json.loads((folder / "quality.json").read_text())
        assert sum(found["classes"]) == 100
        assert found["frechet_distance"] > 0

    @pytest.mark.slow
    def test_mnist(self, tmp_path, capsys, monkeypatch):
        folder = write_mnist(tmp_path / "mnist", 256)
        monkeypatch.delitem(mnist.MODELS, "mnist-2")  # a large batch
        monkeypatch.delitem(mnist.MODELS, "mnist-4")
        out = tmp_path / "out"
        options = ["--data", str(folder), "--steps", "1", "--out", str(out)]
        assert main(["reproduce", "mnist", *options]) == 0
        assert (out / "mnist.png").stat().st_size > 10_000
        assert len((out / "quality.csv").read_text().splitlines()) == 5
        assert "mnist-gmmn" in capsys.readouterr().out
