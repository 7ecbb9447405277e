"""The command: what it imports, how it complains, and how it ends."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time

import click
import numpy as np
import pandas as pd
import pytest

import crossedge as ce
from crossedge.cli import arguments, learn, reproduce, tables, test
from crossedge.cli.main import main
from crossedge.data.columns import SCALES
from crossedge.null import NULLS
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
            ("--help", 0, "Usage: crossedge"),
            ("--version", 0, f"crossedge {ce.__version__}\n"),
            ("test --help", 0, "--no-header"),
            ("learn --help", 0, "--preset"),
            ("reproduce power --help", 0, "--dask"),
            ("", 2, "Missing command (see crossedge --help)"),
            ("tset", 2, "No such command 'tset'"),
            ("test", 2, "Missing argument 'X' (see crossedge test --help)"),
            ("test x.csv", 2, "one file is given: give a second one, or --by COLUMN"),
            ("test x.csv x.csv --by a", 2, "--by splits one file, and two are given"),
            ("test x.csv none.csv", 2, "crossedge: no such file: none.csv\n"),
            ("test x.csv x.csv --plot out.xyz", 2, "give a name that ends in one of png, pdf, svg"),
            ("test x.csv x.csv --plot no/out.png", 2, "no is no folder, make it first"),
            ("test x.csv x.csv --statistic energy --weights tree", 2, "for --weights energy"),
            ("test x.csv x.csv --null tail", 2, "--null tail needs --weights"),
            ("test x.csv x.csv --pairs --where", 2, "--where does not go with --pairs, --strata"),
            ("test x.csv x.csv --strata a --sample 9", 2, "--sample does not go with --pairs"),
            ("test x.csv x.csv --tolerance 1", 2, "1 is no divergence"),
            ("test x.npy wide.npy", 2, "wide.npy has 3 columns, x.npy has 2"),
            ("test x.csv x.csv --resamples 0", 2, "'--resamples': 0 is out of range: give 1 to"),
            ("test x.csv x.csv --seed x", 2, "'--seed': 'x' is no whole number"),
            ("test x.csv x.csv --fail-below 0", 2, "'--fail-below': 0 is no p-value"),
            ("test x.csv x.csv --k 3", 2, "--k needs --weights"),
            ("test x.csv x.csv --k 3 --weights tree", 2, "--k does not go with weights 'tree'"),
            ("test x.csv x.csv --scale big", 2, "'--scale': 'big' is not one of"),
            ("learn moons --k 0", 2, "k=0 is too small"),
            ("learn moons --temperature -1", 2, "temperature -1.0 is not above 0"),
            ("learn moons --phases 2x-1", 2, "a step size is -1.0"),
            ("learn moons --resume", 2, "holds no run to resume"),
            ("learn mnist --data .", 2, "has no train-images"),
            ("reproduce power --jobs 0", 2, "'--jobs': 0 is no number of processes"),
            ("reproduce power --dimensions 2,0", 2, "0 is out of range"),
            ("reproduce mnist --data .", 2, "has no train-images"),
        ],
    )
    def test_words_come_before_torch(self, tmp_path, arguments, code, words):
        (tmp_path / "x.csv").write_text("1.5,2\n3,4\n")
        np.save(tmp_path / "x.npy", np.zeros((2, 2)))
        np.save(tmp_path / "wide.npy", np.zeros((2, 3)))
        process = start([sys.executable, "-c", AFTER_THE_COMMAND, *arguments.split()], cwd=tmp_path)
        found, out, err = end(process)
        err, imported = err.split("imported:")
        assert found == code
        assert words in (err if code else out)
        assert bool(out) == (code == 0)
        assert code == 0 or err.count("\n") == 1
        assert not set(HEAVY) & set(imported.split())

    def test_names_are_those_of_the_library(self):
        assert sorted(STATISTICS) == list(arguments.STATISTICS)
        assert list(NULLS) == list(arguments.NULLS)
        assert tables.SCALES == SCALES

    def test_every_flag_says_its_default(self):
        for command in (test.command, learn.command, *reproduce.command.commands.values()):
            for option in command.params:
                if isinstance(option, click.Option) and not option.is_flag:
                    shown = option.default is not None or "[default: " in option.help
                    assert shown, option.name


class TestInterrupts:
    @pytest.mark.parametrize(
        ("arguments", "moment"),
        [
            ("--help", "threading"),
            ("--help", "crossedge.cli.main"),
            ("--help", "click"),
            ("test x.csv x.csv", "pandas"),
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


def write_samples(folder, shift=0.0):
    """Two files that call for no warning."""
    rng = np.random.default_rng(0)
    for name, centre in (("x", 0.0), ("y", shift)):
        table = rng.normal(centre, size=(30, 2))
        np.savetxt(folder / f"{name}.csv", table, "%.6f", ",", header="a,b", comments="")


@pytest.mark.parametrize("buffered", ["", "1"])
@pytest.mark.parametrize("arguments", ["--help", "test x.csv y.csv"])
def test_a_closed_pipe_ends_it_quietly(tmp_path, arguments, buffered):
    write_samples(tmp_path)
    environment = {**os.environ, "PYTHONUNBUFFERED": buffered}
    process = start([*COMMAND, *arguments.split()], cwd=tmp_path, env=environment)
    process.stdout.close()
    assert process.wait(30) == 141
    assert process.stderr.read() == ""
    process.stderr.close()


def test_output_that_cannot_be_written(tmp_path):
    write_samples(tmp_path)
    with open("/dev/full", "w") as full:
        found = subprocess.run(
            [*COMMAND, "test", "x.csv", "y.csv"],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert found.returncode == 2
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

    monkeypatch.setattr("crossedge.findings.find", fail)
    np.save(tmp_path / "x.npy", np.zeros((2, 2)))
    assert main(["test", str(tmp_path / "x.npy"), str(tmp_path / "x.npy")]) == 2
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
    assert main(arguments.split()) == 2
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


class TestTables:
    @pytest.fixture(autouse=True)
    def _here(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        rng = np.random.default_rng(0)
        rows = ["city,size,group,id"]
        for place in range(60):
            group = "ab"[place % 2]
            size = rng.normal() + 3 * (group == "b")
            rows.append(f"{rng.choice(['Bern', 'Zug'])},{size:.4f},{group},{place}")
        (tmp_path / "all.csv").write_text("\n".join(rows))
        write_samples(tmp_path)

    def run(self, capsys, text):
        code = main(text.split())
        found = capsys.readouterr()
        return code, found.out, found.err

    def test_one_file_split_by_a_column(self, capsys):
        code, out, err = self.run(capsys, "test all.csv --by group")
        assert code == 0
        first, verdict, answer, *_ = out.splitlines()
        assert first == "all.csv, group=a against group=b"
        assert "evidence that the samples differ" in verdict
        assert answer.startswith("two-sample test: adaptive")
        assert "\n  id    number    left out: row numbers" in out
        assert err == "crossedge: warning: column 'id' is left out: row numbers\n"

    def test_one_file_split_in_three(self, capsys, tmp_path):
        rng = np.random.default_rng(0)
        rows = [f"{g},{rng.normal() + 3 * (g == 'c'):.3f}" for g in "abc" for _ in range(20)]
        file = tmp_path / "three.csv"
        file.write_text("\n".join(["group,size", *rows]))
        code, out, _ = self.run(capsys, f"test {file} --by group --resamples 99 --fail-below 0.05")
        assert code == 1
        assert "three.csv, group=a against group=b against group=c\n3-sample test" in out
        assert out.count("edges cross where") == 3
        code, out, _ = self.run(capsys, f"test {file} --by group --resamples 99 --json")
        pairs = {(p["a"], p["b"]): p["adjusted"] <= 0.05 for p in json.loads(out)["pairs"]}
        assert pairs == {
            ("group=a", "group=b"): False,
            ("group=a", "group=c"): True,
            ("group=b", "group=c"): True,
        }
        code, _, err = self.run(capsys, f"test {file} --by group --where")
        assert (code, "--where is for two samples, and --by group has 3 values" in err) == (2, True)
        code, _, err = self.run(capsys, f"plan {file} --by group")
        assert (code, "--by group has 3 values: choose two by group=a,b" in err) == (2, True)

    def test_identifiers_are_asked_back_by_name(self, capsys):
        for flags in ("", " --sample 20"):
            code, out, err = self.run(capsys, f"test all.csv --by group --columns size,id{flags}")
            assert (code, "left out" in err) == (0, False)
            assert "2 numbers, as points in 2 dimensions" in out

    def test_samples_go_by_their_names(self, capsys, tmp_path):
        code, out, _ = self.run(capsys, "test all.csv --by group --where --json")
        witness = json.loads(out)["witness"]
        assert (code, witness["names"]) == (0, ["group=a", "group=b"])
        assert all("group=b" in region["description"] for region in witness["regions"])
        assert witness["regions"]
        write_samples(tmp_path, shift=3.0)
        os.rename("y.csv", "y: new.csv")
        code = main(["test", "x.csv", "y: new.csv", "--where"])
        out = capsys.readouterr().out
        assert code == 0
        assert "30 points of x.csv and 30 of y: new.csv" in out
        assert re.search(r"where y: new.csv is over-represented, \d+ where x.csv is\n", out)
        assert re.search(r"(only in|none in|times as many in) y: new.csv", out)

    def test_what_flags_are_called_in_complaints(self, capsys):
        for flags, words in (
            ("--weights neighbours --k 500", "--k 500 is too large for 60 pooled points"),
            ("--weights tree --temperature -1", "--temperature -1.0 is not at least 0"),
            ("--statistic mmd_ratio", "--statistic mmd_ratio does not go with the adaptive test"),
            ("--strata z", "--strata or --clusters names the column 'z'"),
            ("--pairs --weights tree --null tail", "not known with --pairs, --strata or"),
        ):
            code, _, err = self.run(capsys, f"test x.csv y.csv {flags}")
            assert (code, err.count("\n")) == (2, 1)
            assert words in err
            assert "=" not in err.replace("null=", "")

    def test_every_ending_of_pictures_is_supported(self):
        from matplotlib.figure import Figure

        assert set(test.PICTURES) <= set(Figure().canvas.get_supported_filetypes())

    def test_a_tolerance(self, capsys):
        _, out, _ = self.run(capsys, "test all.csv --by group --tolerance 0.1 --json")
        effect = json.loads(out)["effect"]
        assert effect["tolerance"] == 0.1
        assert effect["tolerance_pvalue"] < 0.01 < 0.9 < effect["equivalence_pvalue"]
        gate = "--tolerance 0.9 --fail-above-effect 0.1"  # each has its own limit
        code, out, _ = self.run(capsys, f"test all.csv --by group {gate}")
        assert code == 1
        assert "larger than 0.9: p = " in out

    def test_equal_files(self, capsys):
        code, out, _ = self.run(capsys, "test x.csv x.csv --tolerance 0.1 --fail-above-effect 0.2")
        assert code == 0
        assert "\nthe samples have the same rows (p = 1)\n" in out
        assert "both samples have the same rows, which tells nothing" in out
        assert "between" not in out

    def test_the_gate_on_the_size_of_a_difference(self, capsys):
        code, out, _ = self.run(capsys, "test all.csv --by group --fail-above-effect 0.1 --json")
        effect = json.loads(out)["effect"]
        assert code == 1
        assert 0.1 < effect["interval"][0] < effect["divergence"] < effect["interval"][1] <= 1
        code, out, _ = self.run(capsys, "test all.csv --by group --fail-above-effect 0.99")
        assert code == 0
        assert "larger than 0.99: p = " in out
        code, _, err = self.run(capsys, "test all.csv --by group --fail-above-effect 1")
        assert code == 2
        assert "1 is no divergence" in err

    def test_facts_for_scripts(self, capsys):
        flags = "--weights neighbours --k 3 --statistic weighted --null normal --scale rank --json"
        code, out, err = self.run(capsys, f"test all.csv --by group=b,a --sample 20 {flags}")
        facts = json.loads(out)
        assert (code, facts["n_x"], facts["n_y"]) == (0, 20, 20)
        assert (facts["weights"], facts["null"]) == ("3-nearest neighbours", "normal")
        assert facts["pvalue"] < 0.01
        assert [column["name"] for column in facts["columns"]] == ["city", "size", "id"]
        assert facts["warnings"] == ["column 'id' is left out: row numbers"]
        assert err.count("\n") == 1

    def test_a_gate(self, capsys, tmp_path):
        gate = "--fail-below 0.01 --drop id --weights tree"
        assert self.run(capsys, f"test all.csv --by group {gate}")[::2] == (1, "")
        assert self.run(capsys, f"test all.csv --by group --columns city {gate}")[0] == 0
        assert self.run(capsys, "test x.csv y.csv --fail-below 0.01")[::2] == (0, "")
        write_samples(tmp_path, shift=2.0)
        assert self.run(capsys, "test x.csv y.csv")[0] == 0
        assert self.run(capsys, "test x.csv y.csv --fail-below 0.01")[0] == 1
        assert self.run(capsys, "test x.csv none.csv --fail-below 0.01")[0] == 2

    def test_a_gate_that_cannot_fire(self, capsys, tmp_path):
        for flags, drawn, needed in (
            ("--fail-below 0.0001", "9,999", 10000),
            ("--fail-below 0.01 --resamples 99", "99", 100),
            ("--fail-below 0.01 --resamples 50", "50", 100),
        ):
            code, out, err = self.run(capsys, f"test x.csv none.csv {flags}")  # before the files
            assert (code, out) == (2, "")
            assert f"can never fire: {drawn} labellings give no p-value below" in err
            assert f"Give --resamples {needed} or more" in err
        write_samples(tmp_path, shift=5.0)
        assert self.run(capsys, "test x.csv y.csv --fail-below 0.01 --resamples 100")[0] == 1
        flags = "--weights tree --null normal --fail-below 1e-9"
        assert self.run(capsys, f"test x.csv y.csv {flags}")[0] in (0, 1)

    def test_few_labellings(self, capsys, tmp_path):
        for name, values in (("few.csv", (1, 2, 3)), ("more.csv", (11, 12, 13))):
            (tmp_path / name).write_text("\n".join(["a", *map(str, values)]) + "\n")
        _, out, err = self.run(capsys, "test few.csv more.csv --weights tree")
        assert "p = 0.1" in out  # the smallest that there is
        assert "there are 20 labellings, so p cannot be below 0.1" in err
        code, _, err = self.run(capsys, "test few.csv more.csv --weights tree --fail-below 0.1")
        assert code == 2
        assert "--fail-below 0.1 can never fire: there are 20 labellings" in err
        assert self.run(capsys, "test few.csv more.csv --weights tree --fail-below 0.2")[0] == 1

    def test_a_gate_says_that_it_did_not_see_all_columns(self, capsys, tmp_path):
        rng = np.random.default_rng(0)
        for name, first in (("p.csv", 0), ("q.csv", 40)):
            rows = [f"{first + i},{value:.3f}" for i, value in enumerate(rng.normal(size=40))]
            (tmp_path / name).write_text("\n".join(["nr,v", *rows]) + "\n")
        code, out, err = self.run(capsys, "test p.csv q.csv --fail-below 0.001")
        assert code == 0
        assert "; 1 of 2 columns compared\n" in out
        assert "--fail-below saw not all of the data: 1 of 2 columns compared" in err

    def test_standard_input(self, tmp_path):
        content = (tmp_path / "x.csv").read_bytes()
        command = [*COMMAND, "test", "-", "y.csv", "--weights", "tree"]
        found = subprocess.run(command, input=content, capture_output=True, timeout=60)
        assert found.stdout.startswith(b"standard input against y.csv\n"), found.stderr
        assert main(["test", "-", "-"]) == 2

    def test_hostile_names_and_cells(self, tmp_path):
        rng = np.random.default_rng(0)
        for name in "xy":
            cells = {
                "größe\x1b[31m": rng.normal(size=30),
                "two\nlines": rng.choice(["a\nb", "\x1b]0;", "</script>"], 30),
            }
            frame = pd.DataFrame(cells)
            frame.to_json(tmp_path / f"{name}.json", orient="records")
        found = subprocess.run(
            [*COMMAND, "test", "x.json", "y.json"],
            env={**os.environ, "PYTHONIOENCODING": "ascii"},
            capture_output=True,
            timeout=60,
        )
        assert found.returncode == 0, found.stderr
        assert b"\x1b" not in found.stdout + found.stderr
        assert b"\n  two lines " in found.stdout

    def test_what_to_install(self, capsys, monkeypatch):
        monkeypatch.setitem(sys.modules, "pandas", None)
        code, _, err = self.run(capsys, "test x.csv y.csv")
        assert (code, err) == (
            2,
            "crossedge: x.csv needs pandas: pip install 'crossedge[tables]'\n",
        )
        np.save("x.npy", np.random.default_rng(0).normal(size=(30, 2)))
        np.save("y.npy", np.random.default_rng(1).normal(size=(30, 2)))
        assert self.run(capsys, "test x.npy y.npy")[::2] == (0, "")


def test_no_output_overwrites_an_input(tmp_path, capsys):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("u,v\n1,2\n3,4\n")
    files = [str(tmp_path / name) for name in ("a.csv", "b.csv")]
    for flags in (["--report", files[1]], ["--plot", files[0]]):
        assert main(["test", *files, *flags]) == 2
        assert "would overwrite what is read: name another file" in capsys.readouterr().err
    assert main(["test", *files, "--report", files[0] + "x", "--plot", files[0] + "x"]) == 2
    assert "would overwrite what --report writes" in capsys.readouterr().err
    assert (tmp_path / "a.csv").read_text() == "u,v\n1,2\n3,4\n"
