"""Learning: data, runs that survive interruption, several processes, quality."""

import copy
import gzip
import json
import os
import signal
import struct
import subprocess
import sys
import time

import numpy as np
import pytest
import torch

import crossedge as ce
from crossedge.cli import main
from crossedge.experiments import mnist
from crossedge.learning import PRESETS, Configuration, Phase, Trainer, paper_generator, quality
from crossedge.learning.classifier import CACHE_VARIABLE
from crossedge.learning.configuration import with_epochs, with_steps
from crossedge.learning.datasets import MNIST_VARIABLE, load, read_idx
from crossedge.learning.runs import RunFolder
from crossedge.learning.trainer import NotFiniteError

WIDE = ["--phases", "1x1e-3", "--batch", "16", "--weights", "gaussian"]
TINY = ["--phases", "4x1e-3", "--batch", "64"]


@pytest.fixture(autouse=True)
def _few_points_for_quality(monkeypatch, tmp_path):
    monkeypatch.setattr(quality, "MOST", 100)
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
        assert code == 1
        assert message in error
        assert error.count("\n") == 1

    def test_idx_files_come_back(self, tmp_path):
        array = np.random.default_rng(0).integers(0, 256, (5, 3, 2))
        write_idx(tmp_path / "some", array)
        np.testing.assert_array_equal(read_idx(tmp_path / "some", 2051), array)


class TestTrainer:
    def make(self, seed=0, epochs=3, batch=32, loss=None):
        data = torch.randn(128, 2, generator=torch.Generator().manual_seed(1)) + 2
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            generator = paper_generator(3, 2)
        loss = loss or ce.TwoSampleLoss(ce.NearestNeighbours(1, 1.0))
        phases = [Phase(epochs, 1e-3)]
        return Trainer(generator, data, loss, batch=batch, phases=phases, noise=3, seed=seed)

    def test_it_learns(self):
        trainer = self.make(epochs=30)
        losses = [epoch.loss for epoch in trainer.run()]
        assert losses[-1] < losses[0] / 3
        assert (trainer.sample(500).mean(0) - 2).abs().max() < 0.8

    def test_a_restored_state_goes_on_bit_for_bit(self):
        whole = self.make()
        expected = [epoch.loss for epoch in whole.run()]
        first = self.make()
        epochs = first.run()
        found = [next(epochs).loss]
        second = self.make(seed=99)
        second.restore(first.state())
        found += [epoch.loss for epoch in second.run()]
        assert found == expected
        for name, value in whole.generator.state_dict().items():
            assert torch.equal(value, second.generator.state_dict()[name])

    def test_a_loss_that_is_not_finite_stops(self):
        for loss in (
            lambda x, y: (y * torch.nan).sum(),
            lambda x, y: (y * 0).sum().sqrt(),  # finite, but its gradient is not
        ):
            trainer = self.make(loss=loss)
            with pytest.raises(NotFiniteError, match="smaller step size"):
                list(trainer.run())
            assert all(value.isfinite().all() for value in trainer.generator.parameters())

    def test_generators_with_dropout_and_batch_norm_are_resumed_too(self):
        def make():
            layers = torch.nn.Linear(3, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout()
            generator = torch.nn.Sequential(*layers, torch.nn.Linear(8, 2))
            return Trainer(
                generator,
                torch.ones(64, 2),
                lambda x, y: ((x - y) ** 2).mean(),
                batch=32,
                phases=[Phase(3, 1e-2)],
                noise=3,
            )

        whole = make()
        epochs = whole.run()
        next(epochs)
        state = copy.deepcopy(whole.state())
        expected = [epoch.loss for epoch in epochs]
        other = make()
        other.restore(state)
        before = other.generator[1].running_mean.clone()
        other.sample(10)
        assert torch.equal(other.generator[1].running_mean, before)
        assert [epoch.loss for epoch in other.run()] == expected

    def test_phases_have_steps_and_losses_of_their_own(self):
        seen = []

        def first(x, y):
            seen.append("first")
            return ((x.mean(0) - y.mean(0)) ** 2).sum()

        def second(x, y):
            seen.append("second")
            return first(x, y)

        def make():
            trainer = self.make()
            return Trainer(
                trainer.generator,
                trainer.data,
                [first, second],
                batch=64,
                phases=[Phase(1, 1e-3), Phase(2, 1e-5)],
                noise=3,
            )

        trainer = make()
        steps = []
        for epoch in trainer.run():
            steps.append((epoch.step, trainer.optimizer.param_groups[0]["lr"]))
            if epoch.epoch == 1:
                assert "second" not in seen
                resumed = make()
                resumed.restore(trainer.state())
        assert steps == [(1e-3, 1e-3), (1e-5, 1e-5), (1e-5, 1e-5)]
        assert seen.count("second") == 4
        list(resumed.run())
        for name, value in trainer.generator.state_dict().items():
            assert torch.equal(value, resumed.generator.state_dict()[name])
        with pytest.raises(ValueError, match="1 losses for 2 phases"):
            Trainer(
                trainer.generator, trainer.data, [first], batch=8, phases=[Phase(1, 1)] * 2, noise=3
            )
        with pytest.raises(ValueError, match="positive"):
            Trainer(trainer.generator, trainer.data, first, batch=8, phases=[Phase(1, -1)], noise=3)
        one = Configuration("moons", phases=(Phase(2, 0.1), Phase(1, 0.01, 0.5)))
        assert one.epochs == 3
        assert [one.phase_of(epoch).step for epoch in (1, 2, 3)] == [0.1, 0.1, 0.01]
        assert [loss.weights.temperature for loss in one.make_losses()] == [1.0, 0.5]
        assert Configuration.from_dict(json.loads(json.dumps(one.to_dict()))) == one

    def test_batches_that_do_not_fit_are_refused(self):
        with pytest.raises(ValueError, match="larger than the data"):
            self.make(batch=129)


class TestRun:
    def learn(self, *arguments):
        return main(["learn", "moons", *TINY, *map(str, arguments)])

    def test_a_run_leaves_all_that_it_promises(self, tmp_path, capsys):
        folder = tmp_path / "run"
        assert self.learn("--out", folder) == 0
        assert "coverage" in capsys.readouterr().out
        metrics = RunFolder(folder).metrics()
        assert [line["epoch"] for line in metrics] == [1, 2, 3, 4]
        assert json.loads((folder / "config.json").read_text())["batch"] == 64
        assert {path.name for path in folder.iterdir()} == {
            "checkpoint.pt",
            "config.json",
            "loss.png",
            "metrics.jsonl",
            "quality.json",
            "samples",
        }
        state = torch.load(folder / "checkpoint.pt", weights_only=True)  # no code in it
        assert state["epoch"] == 4
        assert self.learn("--out", folder) == 1  # does not overwrite
        assert "--resume" in capsys.readouterr().err

    def test_resuming_is_as_if_never_interrupted(self, tmp_path):
        whole, parts = tmp_path / "whole", tmp_path / "parts"
        self.learn("--out", whole)
        short = ["--phases", "2x1e-3", "--batch", "64"]
        assert main(["learn", "moons", "--out", str(parts), *short]) == 0
        configuration = json.loads((parts / "config.json").read_text())
        configuration["phases"] = [[4, 1e-3, None]]
        (parts / "config.json").write_text(json.dumps(configuration))
        # a line of an epoch that has no checkpoint, and half of another: the run was killed then
        with (parts / "metrics.jsonl").open("a") as file:
            file.write('{"epoch": 3, "loss": 1.0, "seconds": 1, "log_pvalue": 0}\n{"epo')
        assert main(["learn", "moons", "--resume", "--out", str(parts)]) == 0
        one, other = (RunFolder(folder).metrics() for folder in (whole, parts))
        assert [line["loss"] for line in one] == [line["loss"] for line in other]
        states = [torch.load(folder / "checkpoint.pt") for folder in (whole, parts)]
        for name, value in states[0]["generator"].items():
            assert torch.equal(value, states[1]["generator"][name])

    def test_a_run_that_is_killed_can_be_resumed(self, tmp_path):
        folder = tmp_path / "run"
        command = [sys.executable, "-c", "import sys, crossedge.cli as c; sys.exit(c.main())"]
        arguments = ["learn", "moons", "--out", str(folder), "--phases", "500x1e-3"]
        process = subprocess.Popen(
            [*command, *arguments, "--batch", "64"], stdout=subprocess.DEVNULL
        )
        while not (folder / "checkpoint.pt").exists():
            assert process.poll() is None
            time.sleep(0.05)
        time.sleep(0.3)
        process.send_signal(signal.SIGKILL)
        process.wait()
        run = RunFolder(folder)
        lines = len(run.metrics())
        state = run.load()
        assert lines - 1 <= state["epoch"] <= lines
        assert len(run.metrics()) == state["epoch"]

    def test_ctrl_c_stops_after_the_epoch(self, tmp_path, capsys, monkeypatch):
        folder = tmp_path / "run"
        save = RunFolder.save

        def save_and_interrupt(self, state, metrics):
            save(self, state, metrics)
            if metrics["epoch"] == 2:
                os.kill(os.getpid(), signal.SIGINT)

        monkeypatch.setattr(RunFolder, "save", save_and_interrupt)
        assert self.learn("--out", folder) == 130
        assert "stopped after epoch 2" in capsys.readouterr().out
        assert len(RunFolder(folder).metrics()) == 2

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

    def test_a_run_that_diverges_says_so_and_keeps_the_last_good_checkpoint(self, tmp_path, capsys):
        folder = tmp_path / "run"
        phases = ["--phases", "1x1e-3,3x1e30", "--batch", "64", "--out", str(folder)]
        assert main(["learn", "moons", *phases]) == 1
        error = capsys.readouterr().err
        assert "not finite in step" in error
        assert "smaller step size" in error
        state = torch.load(folder / "checkpoint.pt")
        assert state["epoch"] >= 1
        assert all(value.isfinite().all() for value in state["generator"].values())

    def test_a_start_that_failed_does_not_occupy_the_folder(self, tmp_path):
        common = ["learn", "moons", "--phases", "1x1e-3", "--batch", "64", "--out", str(tmp_path)]
        assert main([*common, "--k", "600", "--temperature", "1"]) == 1
        assert main(common) == 0

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--device", "foo"], "--device foo is not here"),
            (["--noise", "-1"], "noise=-1 is too small"),
            (["--weights", "energy", "--temperature", "3"], "--temperature does not go with"),
            (["--phases", "2x-1"], "a step size is -1.0"),
            (["--weights", "laplace", "--k", "3"], "--k does not go with"),
        ],
    )
    def test_options_that_cannot_be_get_one_line(self, options, message, capsys, tmp_path):
        assert main(["learn", "moons", *options, "--out", str(tmp_path / "run")]) == 1
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
        assert not (tmp_path / "run").exists()

    @pytest.mark.parametrize("text", ["2", "2x1e-3@cold", "axb"])
    def test_phases_that_are_none(self, text, capsys, tmp_path):
        with pytest.raises(SystemExit):
            main(["learn", "moons", "--phases", text, "--out", str(tmp_path / "run")])
        assert "is no phase: give EPOCHSxSTEP" in capsys.readouterr().err

    def test_wrong_options_get_one_line(self, capsys, tmp_path):
        assert main(["learn", "moons", "--preset", "mnist-1", "--out", str(tmp_path / "a")]) == 1
        assert "is for mnist" in capsys.readouterr().err
        assert main(["learn", "moons", "--resume", "--out", str(tmp_path / "b")]) == 1
        assert "no run to resume" in capsys.readouterr().err
        assert main(["learn", "moons", "--resume", "--batch", "64", "--seed", "1"]) == 1
        assert "leave out --batch, --seed" in capsys.readouterr().err
        assert main(["learn", "moons", "--temperature", "0", "--out", str(tmp_path / "c")]) == 1
        assert "temperature 0" in capsys.readouterr().err
        assert not (tmp_path / "c").exists()

    def test_mnist_runs(self, mnist_folder, tmp_path):
        folder = tmp_path / "run"
        code = main(["learn", "mnist", "--data", str(mnist_folder), "--out", str(folder), *WIDE])
        assert code == 0
        found = json.loads((folder / "quality.json").read_text())
        assert sum(found["classes"]) == 100
        assert found["frechet_distance"] > 0


class Double(torch.nn.Module):
    """In double precision, so that rounding is far below any mistake."""

    def __init__(self):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.inner = paper_generator(3, 2).double()

    def forward(self, noise):
        return self.inner(noise.double())


def learn_in_double():
    data = torch.randn(96, 2, generator=torch.Generator().manual_seed(1)).double() + 1
    loss, phases = ce.TwoSampleLoss(ce.SpanningTree(1.0)), [Phase(2, 1e-3)]
    trainer = Trainer(Double(), data, loss, batch=32, phases=phases, noise=3)
    list(trainer.run())
    return trainer.generator.state_dict()


WORKER = """
import sys, torch, torch.distributed as dist
sys.path.insert(0, sys.argv[1])
from test_learning import learn_in_double
torch.set_num_threads(1)
rank, meet, out = int(sys.argv[2]), sys.argv[3], sys.argv[4]
dist.init_process_group("gloo", f"file://{meet}", rank=rank, world_size=2)
state = learn_in_double()
if rank == 0:
    torch.save(state, out)
"""


def test_two_processes_are_as_good_as_one(tmp_path):
    """The same global batch, half of it made in each process."""
    here, out = os.path.dirname(__file__), tmp_path / "out.pt"
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, here, str(rank), str(tmp_path / "meet"), str(out)]
        )
        for rank in range(2)
    ]
    expected = learn_in_double()
    assert all(worker.wait(300) == 0 for worker in workers)
    found = torch.load(out)
    for name, value in expected.items():
        torch.testing.assert_close(value, found[name], rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_two_processes_by_the_command(tmp_path):
    folders = [tmp_path / name for name in ("one", "two")]
    options = ["--phases", "1x1e-3", "--batch", "512", "--out"]
    assert main(["learn", "moons", *options, str(folders[0])]) == 0
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nfrom crossedge.cli import main\nfrom crossedge.learning import quality\n"
        "quality.MOST = 100\nsys.exit(main())\n"
    )
    command = [*torchrun, str(script), "learn", "moons", *options, str(folders[1])]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stderr
    assert found.stdout.count("coverage") == 1  # one of them speaks
    states = [torch.load(folder / "checkpoint.pt")["generator"] for folder in folders]
    for name, value in states[0].items():  # Adam makes much of rounding where gradients are small
        torch.testing.assert_close(value, states[1][name], rtol=0, atol=1e-3)
    losses = [RunFolder(folder).metrics()[-1]["loss"] for folder in folders]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


class TestReproduction:
    def test_moons_goes_on_where_it_stopped(self, tmp_path, capsys, monkeypatch):
        command = ["reproduce", "moons", "--epochs", "2", "--out", str(tmp_path)]
        save = RunFolder.save

        def save_and_interrupt(self, state, metrics):
            save(self, state, metrics)
            if self.path.name == "moons-2" and metrics["epoch"] == 1:
                os.kill(os.getpid(), signal.SIGINT)

        monkeypatch.setattr("crossedge.learning.datasets.MOONS", 512)
        with monkeypatch.context() as patch:
            patch.setattr(RunFolder, "save", save_and_interrupt)
            assert main(command) == 130
        assert not (tmp_path / "moons.png").exists()
        first = (tmp_path / "moons-1" / "metrics.jsonl").read_text()
        assert main(command) == 0
        assert (tmp_path / "moons-1" / "metrics.jsonl").read_text() == first
        assert (tmp_path / "moons.png").stat().st_size > 10_000
        rows = (tmp_path / "quality.csv").read_text().splitlines()
        assert [row.split(",")[0] for row in rows] == ["model", "moons-1", "moons-2", "moons-3"]
        assert "coverage" in capsys.readouterr().out
        assert main(["reproduce", "moons", "--epochs", "3", "--out", str(tmp_path)]) == 1
        assert "other settings" in capsys.readouterr().err

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

    def test_the_same_in_fewer_epochs(self):
        short = with_epochs(PRESETS["mnist-1"], 5)
        assert sorted(phase.epochs for phase in short.phases) == [2, 3]
        assert [phase.epochs for phase in with_epochs(PRESETS["mnist-1"], 1).phases] == [1, 1]
        assert with_steps(PRESETS["mnist-3"], 4680, 60_000).epochs == 10
        assert with_steps(PRESETS["mnist-1"], 4680, 60_000).epochs == 20
