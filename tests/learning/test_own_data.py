"""Runs on data of one's own: tables, arrays and images; samples of them, and tests against them."""

import json
import re
import sys
import types
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from crossedge.cli.main import main
from crossedge.data.tables import read_table
from crossedge.learning import Phase, Run, generators, learn, quality
from crossedge.learning.classifier import CACHE_VARIABLE
from crossedge.learning.configuration import Configuration
from crossedge.learning.datasets import Dataset
from crossedge.learning.recipes import own_recipe, temperatures_of
from crossedge.learning.sources import dataset_of, fingerprint, is_alike, load_own

SHORT = ["--phases", "1x1e-3", "--batch", "32", "--weights", "gaussian"]


@pytest.fixture(autouse=True)
def _small(monkeypatch, tmp_path):
    monkeypatch.setattr(quality, "MAX_POINTS", 40)
    monkeypatch.setattr(learn, "RESAMPLES", 100)
    monkeypatch.setitem(learn.LAWS, "log_pvalue", "normal")
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def people(rows=120, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "id": [f"person {seed} {place}" for place in range(rows)],
            "age": rng.integers(18, 90, rows),
            "income": np.round(rng.lognormal(3, 1, rows), 2),
            "city": rng.choice(["Aarau", "Basel", "Chur"], rows).astype(object),
            "since": pd.Timestamp("2024-01-31") + pd.to_timedelta(rng.integers(0, 90, rows), "D"),
            "kind": rng.choice([1, 2, 10], rows),
        }
    )
    frame.loc[3:30, "income"] = np.nan
    return frame


@pytest.fixture
def table(tmp_path):
    people().to_csv("people.csv", index=False)
    return "people.csv"


def learned(data, *options):
    assert main(["learn", data, "--out", "run", *SHORT, *options]) == 0
    return Run.load("run")


class TestTables:
    def test_from_the_table_to_a_sample_of_its_kind(self, table, capsys):
        learned(table, "--drop", "id")
        assert main(["sample", "run", "-n", "50", "--out", "made.csv"]) == 0
        assert "50 rows of run after 1 epochs" in capsys.readouterr().out
        made, real = read_table(Path("made.csv")), read_table(Path(table))
        assert made.names == real.names[1:]
        kept = real.values.drop(columns="id")
        assert [str(kind) for kind in made.values.dtypes] == [str(kind) for kind in kept.dtypes]
        for name in ("age", "income", "since"):
            assert made[name].min() >= real[name].min()
            assert made[name].max() <= real[name].max()
        assert set(made["city"]) <= {"Aarau", "Basel", "Chur"}
        assert made["income"].isna().any()
        with open("made.csv") as file:
            assert re.match(r"\d+,\d*\.?\d*,[A-Z][a-z]+,2024-\d\d-\d\d,\d+\n", [*file][1])

    def test_parquet_has_the_types(self, table):
        learned(table, "--drop", "id")
        assert main(["sample", "run", "--out", "made.parquet"]) == 0
        made = pd.read_parquet("made.parquet")
        assert len(made) == 1000
        assert made["since"].dtype.kind == "M"
        assert main(["sample", "run", "--out", "made.npy"]) == 2  # it holds texts

    def test_a_sample_is_that_of_its_seed(self, table):
        run = learned(table, "--drop", "id")
        assert run.rows(20, seed=1).equals(run.rows(20, seed=1))
        assert not run.rows(20, seed=1).equals(run.rows(20, seed=2))

    def test_a_run_is_tested_without_its_data(self, table, tmp_path, capsys):
        learned(table, "--drop", "id")
        (tmp_path / table).unlink()
        people(70, seed=1).to_csv("others.csv", index=False)
        capsys.readouterr()
        command = ["test", "others.csv", "run", "--resamples", "99", "--json"]
        assert main(command) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["samples"] == "others.csv against 70 rows of run, not learned: id"
        assert main([*command, "--sample", "33"]) == 0
        assert "33 rows of run" in json.loads(capsys.readouterr().out)["samples"]
        assert main(["test", "run", "run", "--sample", "50", "--resamples", "99"]) == 0
        assert "50 rows of run against 50 rows of run" in capsys.readouterr().out

    def test_a_report_of_held_out_and_generated_rows(self, table, capsys):
        learned(table, "--drop", "id", "--report", "q.html")
        assert "report: q.html" in capsys.readouterr().out
        text = Path("q.html").read_text()
        assert "income" in text
        assert "generated" in text

    def test_it_goes_on_where_it_stopped(self, table):
        options = ["--out", "run", "--drop", "id", "--batch", "32", "--weights", "gaussian"]
        assert main(["learn", table, *options, "--phases", "2x1e-3"]) == 0
        assert main(["learn", table, *options[2:], "--phases", "1x1e-3", "--out", "other"]) == 0
        settings = Path("other/config.json")
        configuration = json.loads(settings.read_text())
        configuration["phases"] = [[2, 1e-3, None]]
        settings.write_text(json.dumps(configuration))
        assert main(["learn", table, "--resume", "--out", "other"]) == 0
        one, other = (Run.load(name).sample(20) for name in ("run", "other"))
        assert torch.equal(one, other)

    def test_data_that_changed_are_refused(self, table, capsys):
        learned(table, "--drop", "id")
        people(seed=5).to_csv(table, index=False)
        assert main(["learn", table, "--resume", "--out", "run"]) == 2
        assert "people.csv has changed since run was begun" in capsys.readouterr().err

    def test_a_preset_of_the_paper(self, table):
        run = learned(table, "--drop", "id", "--preset", "mnist-1")
        assert run.configuration.standardize is True
        assert run.configuration.average == 0

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["none.csv"], "none.csv is no file or folder, nor one of digits, mnist, moons"),
            (["people.csv"], "'id' has a different text in every row"),
            (["people.csv", "--columns", "age,size"], "has no column 'size'"),
            (["people.csv", "--drop", "id", "--condition", "x"], "has no column 'x'"),
            (["people.csv", "--drop", "id", "--condition", "income"], "has missing labels"),
            (["people.csv", "--drop", "id", "--generator", "conv"], "conv is for images"),
            (["people.csv", "--drop", "id", "--generator", "big"], "package.module:factory"),
            (["people.csv", "--drop", "id", "--generator", "no:where"], "cannot be imported"),
            (["people.csv", "--drop", "id", "--data", "."], "is a file or folder itself"),
            (["people.csv", "--drop", "id", "--average", "1"], "average=1.0 is no decay"),
            (["moons", "--columns", "1"], "--columns is for files"),
            (["moons", "--condition", "label"], "moons has no column 'label'"),
            (["moons", "--image", "2"], "'2' is no size"),
        ],
    )
    def test_what_cannot_be_gets_one_line(self, table, options, message, capsys, tmp_path):
        assert main(["learn", *options, "--out", "run"]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
        assert not (tmp_path / "run").exists()


class TestConditions:
    def test_labels_are_given_and_come_back(self, table, capsys):
        run = learned(table, "--drop", "id", "--condition", "kind")
        assert main(["sample", "run", "-n", "9", "--given", "10", "--out", "made.csv"]) == 0
        made = pd.read_csv("made.csv")
        assert list(made) == list(people())[1:]
        assert made["kind"].tolist() == [10] * 9
        shares = run.rows(4000, seed=3)["kind"].value_counts(normalize=True)
        expected = people()["kind"].value_counts(normalize=True)
        assert (shares - expected).abs().max() < 0.03
        assert main(["sample", "run", "--given", "3", "--out", "made.csv"]) == 2
        assert "'kind' has no label '3': give one of 1, 2, 10" in capsys.readouterr().err

    def test_the_generator_listens(self):
        """Two clusters, one for each label."""
        rng = np.random.default_rng(0)
        kind = np.arange(400) % 2
        frame = pd.DataFrame({"x": rng.normal(6 * kind, 1), "kind": np.array(["a", "b"])[kind]})
        frame.to_parquet("two.parquet")
        given = Configuration(
            "two.parquet", "energy", phases=(Phase(20, 1e-2),), batch=64, condition="kind"
        )
        run = Run.begin("run", given)
        list(run.trainer.run())
        assert run.rows(200, given="a")["x"].mean() == pytest.approx(0, abs=1)
        assert run.rows(200, given="b")["x"].mean() == pytest.approx(6, abs=1)

    def test_the_loss_sees_labels_at_the_scale_of_the_data(self):
        people().to_csv("people.csv", index=False)
        given = Configuration("people.csv", drop=("id",), condition="city")
        dataset = load_own(given)
        layout = dataset.layout
        labels = dataset.train[:, layout.dimension :]
        assert (labels > 0).sum(1).eq(1).all()
        own = torch.pdist(dataset.train[:, : layout.dimension].double()).median()
        assert labels.max() * 2**0.5 == pytest.approx(float(own), rel=0.2)

    def test_classes_of_digits(self):
        given = Configuration(
            "digits", "energy", phases=(Phase(1, 1e-3),), batch=512, condition="label"
        )
        run = Run.begin("run", given)
        next(run.trainer.run())
        run.save()
        assert run.sample(5, given="7").shape == (5, 74)
        assert main(["sample", "run", "-n", "3", "--given", "7", "--out", "sevens"]) == 0
        assert read_table(Path("sevens")).values.shape == (3, 64)


class TestArrays:
    def test_numbers_without_names(self, tmp_path, capsys):
        points = np.random.default_rng(0).normal(size=(200, 3)).astype(np.float32)
        np.save("points.npy", points)
        run = learned("points.npy")
        rows = run.rows(10)
        assert rows.dtype == np.float32
        assert rows.shape == (10, 3)
        assert main(["sample", "run", "-n", "10", "--out", "made.csv"]) == 0
        np.testing.assert_allclose(read_table(Path("made.csv"), False).values, rows, rtol=1e-6)
        capsys.readouterr()
        assert main(["test", "points.npy", "run", "--resamples", "99"]) == 0
        assert "points.npy against 200 rows of run" in capsys.readouterr().out

    def test_one_column(self):
        np.save("points.npy", np.random.default_rng(0).normal(size=100))
        assert learned("points.npy").rows(4).shape == (4, 1)

    def test_temperatures_have_their_perplexity(self):
        points = torch.randn(300, 4, generator=torch.Generator().manual_seed(0)) * 7
        found = temperatures_of(points, 100, (0.1, 0.5))
        order = torch.randperm(300, generator=torch.Generator().manual_seed(0))[:100]
        distances = torch.cdist(points[order], points[order])
        for share, temperature in zip((0.1, 0.5), found, strict=True):
            chosen = torch.exp(-distances / temperature).fill_diagonal_(0)
            chosen /= chosen.sum(1, keepdim=True)
            count = (-torch.xlogy(chosen, chosen).sum(1)).exp().median()
            assert count == pytest.approx(100 * share, rel=0.03)
        scaled = temperatures_of(10 * points, 100, (0.1, 0.5))
        assert scaled == pytest.approx([10 * one for one in found], rel=0.01)

    def test_the_recipe_fits_few_points_and_many(self):
        few, many = (torch.randn(rows, 2) for rows in (40, 20_000))
        assert own_recipe("few", few).batch == 40
        for points in (few, many):
            recipe = own_recipe("some", points)
            steps = recipe.epochs * (len(points) // recipe.batch)
            assert 2900 < steps < 3100


def write_images(folder, count, shape, seed=0):
    folder.mkdir(parents=True)
    values = np.random.default_rng(seed).integers(0, 256, (count, *shape), dtype=np.uint8)
    for place, image in enumerate(values):
        Image.fromarray(image).save(folder / f"{place:03d}.png")
    return values


class TestFingerprints:
    def test_other_values_other_rows_and_another_order_show(self):
        points = torch.randn(200, 3, generator=torch.Generator().manual_seed(0))
        known = fingerprint(Dataset("some", points, points))
        rounded = points * (1 + 1e-7 * torch.randn(200, 3))
        assert is_alike(known, fingerprint(Dataset("some", rounded, points)))
        changed = points.clone()
        changed[17, 1] += 0.01
        for other in (points.flip(0), points.flip(1), points[:-1], changed):
            assert not is_alike(known, fingerprint(Dataset("some", other, points)))


class TestImages:
    def test_a_folder_of_images(self, tmp_path, capsys, monkeypatch):
        values = write_images(tmp_path / "images", 40, (9, 7, 3))
        given = Configuration("images", image=(9, 7, 3))
        dataset = dataset_of(given)
        assert dataset.train.min() >= 0
        assert dataset.train.max() <= 1
        both = np.concatenate([dataset.train, dataset.held_out])
        back = np.unique(dataset.layout.decode(both.astype(np.float64)), axis=0)
        np.testing.assert_array_equal(back, np.unique(values.reshape(40, -1), axis=0))
        monkeypatch.setattr(generators, "CHANNELS", 8)
        learned("images", "--generator", "conv")
        assert main(["sample", "run", "-n", "4", "--out", "made"]) == 0
        assert read_table(tmp_path / "made").values.shape == (4, 189)
        capsys.readouterr()
        assert main(["test", "images", "run", "--resamples", "99"]) == 0
        assert "40 rows of run" in capsys.readouterr().out

    def test_folders_are_labels(self, tmp_path):
        for place, name in enumerate(("cat", "dog")):
            write_images(tmp_path / "pets" / name, 15 + 10 * place, (4, 4), seed=place)
        run = learned("pets", "--condition", "label")
        assert run.layout.label_shares == (0.375, 0.625)
        assert main(["sample", "run", "-n", "2", "--given", "dog", "--out", "dogs"]) == 0
        assert len(list((tmp_path / "dogs").iterdir())) == 2
        assert main(["test", "pets", "run", "--resamples", "99"]) == 0

    @pytest.mark.parametrize("shape", [(30, 5, 6), (30, 5, 6, 3), (30, 30)])
    def test_arrays(self, shape):
        values = np.random.default_rng(0).random(shape)
        np.save("images.npy", values)
        options = ["--image", "5x6"] if len(shape) == 2 else []
        run = learned("images.npy", "--batch", "8", *options)
        assert run.layout.image == (5, 6, 3 if len(shape) == 4 else 1)
        rows = run.rows(7)
        assert rows.shape == (7, int(np.prod(shape[1:])))
        assert 0 <= rows.min() <= rows.max() <= 1

    def test_images_of_two_sizes_are_refused(self, tmp_path, capsys):
        write_images(tmp_path / "images", 30, (4, 4))
        Image.fromarray(np.zeros((5, 4), np.uint8)).save(tmp_path / "images" / "z.png")
        assert main(["learn", "images", "--out", "run"]) == 2
        assert "give images of one size" in capsys.readouterr().err


class TestFactories:
    @pytest.fixture(autouse=True)
    def _module(self, tmp_path, monkeypatch):
        (tmp_path / "my_generators.py").write_text(
            "import math, torch\n"
            "def small(inputs, shape):\n"
            "    return torch.nn.Linear(inputs, math.prod(shape))\n"
            "def narrow(inputs, shape):\n"
            "    return torch.nn.Linear(inputs, 1)\n"
            "def text(inputs, shape):\n"
            "    return 'no module'\n"
            "def bomb(inputs, shape):\n"
            "    raise SystemExit('code was run')\n"
        )
        monkeypatch.syspath_prepend(tmp_path)
        np.save("points.npy", np.random.default_rng(0).normal(size=(100, 2)))

    def test_anybodys_generator(self):
        factory = ["--generator", "my_generators:small"]
        command = ["learn", "points.npy", "--out", "run", *SHORT, *factory, "--noise", "4"]
        assert main(command) == 0
        assert main(["sample", "run", "--out", "made.npy", *factory]) == 0
        assert main(["learn", "points.npy", "--resume", "--out", "run", *factory]) == 0
        run = Run.load("run", generator="my_generators:small")
        state = run.folder.load()["generator"]
        assert [tuple(value.shape) for value in state.values()] == [(2, 4), (2,)]
        assert run.sample(3).shape == (3, 2)

    def test_a_folder_alone_runs_no_code(self, tmp_path, capsys):
        learned("points.npy")
        settings = tmp_path / "run" / "config.json"
        configuration = json.loads(settings.read_text())
        configuration["generator"] = "my_generators:bomb"
        settings.write_text(json.dumps(configuration))
        capsys.readouterr()
        for command in (
            ["sample", "run", "--out", "x.npy"],
            ["sample", "run", "--out", "x.npy", "--generator", "my_generators:small"],
            ["test", "points.npy", "run"],
            ["learn", "points.npy", "--resume", "--out", "run"],
        ):
            assert main(command) == 2
            assert "is code, my_generators:bomb: to run it, name it" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("name", "message"),
        [("narrow", "makes (2, 1) of (2, 10) noise: make (2, 2)"), ("text", "returned str")],
    )
    def test_what_makes_something_else_is_refused(self, name, message, capsys):
        command = ["learn", "points.npy", "--generator", f"my_generators:{name}", "--out", "run"]
        assert main(command) == 2
        assert message in capsys.readouterr().err


def test_samples_that_cannot_be_get_one_line(capsys):
    np.save("points.npy", np.random.default_rng(0).normal(size=(60, 2)))
    learned("points.npy")
    capsys.readouterr()
    for arguments, message in (
        ("nowhere --out x.npy", "nowhere holds no run"),
        ("run --out x.txt", "unknown ending: give .npy, .csv, .parquet"),
        ("run --out no/x.npy", "no is no folder"),
        ("run --out x.npy --given a", "--given is for runs with --condition"),
        ("run --out x", "makes no images"),
    ):
        assert main(["sample", *arguments.split()]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1


def test_tensorboard_is_an_extra(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("crossedge.cli.learn.installed", lambda package: False)
    assert main(["learn", "moons", "--tensorboard", "--out", "run"]) == 2
    assert "pip install 'crossedge[tensorboard]'" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_tensorboard_gets_the_metrics(monkeypatch):
    """The package itself is not needed to see what it is told."""
    written, opened = [], []

    class SummaryWriter:
        def __init__(self, path, purge_step):
            opened.append((str(path), purge_step))

        def add_scalar(self, name, value, epoch):
            written.append((name, epoch))

        def flush(self):
            pass

    module = types.ModuleType("tensorboard")
    module.SummaryWriter = SummaryWriter
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    monkeypatch.setattr("crossedge.cli.learn.installed", lambda package: True)
    np.save("points.npy", np.random.default_rng(0).normal(size=(60, 2)))
    learned("points.npy", "--tensorboard")
    assert opened == [("run/tensorboard", 1)]
    assert ("loss", 1) in written
    assert ("log_pvalue", 1) in written
