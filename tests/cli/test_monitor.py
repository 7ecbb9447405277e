"""`crossedge monitor`: files in order, a state that goes on, and exit codes."""

import json

import numpy as np
import pytest

from crossedge.cli.main import main

pytest.importorskip("pandas")


def write(path, rng, shift=0.0, n=60):
    rows = rng.normal((shift, 0), size=(n, 2))
    cities = rng.choice(["Bern", "Zug"], n)
    lines = [f"{a:.4f},{b:.4f},{c}" for (a, b), c in zip(rows, cities, strict=True)]
    path.write_text("\n".join(["age,height,city", *lines]) + "\n")


@pytest.fixture
def place(tmp_path):
    rng = np.random.default_rng(0)
    write(tmp_path / "reference.csv", rng, n=200)
    (tmp_path / "new").mkdir()
    for day in (1, 2):
        write(tmp_path / "new" / f"day{day}.csv", rng)
    return tmp_path, rng


def test_new_files_only_then_an_alarm(place, capsys):
    folder, rng = place
    call = ["monitor", f"{folder}/reference.csv", f"{folder}/new", "--state", f"{folder}/s.npz"]
    assert main(call) == 0
    assert "day2.csv: 60 rows" in capsys.readouterr().out
    assert main([*call, "--json"]) == 0
    assert capsys.readouterr().out == ""
    for day in (3, 4, 5):
        write(folder / "new" / f"day{day}.csv", rng, shift=2.0)
    assert main([*call, "--json"]) == 1
    states = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [state["name"] for state in states] == ["day3.csv", "day4.csv", "day5.csv"]
    assert states[-1]["since"] == 3
    assert states[-1]["columns"][0]["name"] == "age"
    assert main([*call, "--watch", "0.01"]) == 1  # the alarm stands


def test_a_bad_file_keeps_what_was_done(place, capsys):
    folder, _ = place
    call = ["monitor", f"{folder}/reference.csv", f"{folder}/new", "--state", f"{folder}/s.npz"]
    (folder / "new" / "day3.csv").write_text("other,names\n1,2\n2,3\n")
    assert main(call) == 2
    seen = capsys.readouterr()
    assert "day2.csv" in seen.out
    assert "day3.csv: batch has no column" in seen.err
    assert main(call) == 2
    assert "day2.csv" not in capsys.readouterr().out
    (folder / "new" / "day0.csv").write_text('a\n"1,2\n')
    assert main(call) == 2
    assert capsys.readouterr().err.splitlines()[0].count("day0.csv") == 1
    assert main([*call, "--scale", "rank"]) == 2
    assert "another --scale" in capsys.readouterr().err


def test_a_bad_file_hides_no_alarm(place, capsys):
    folder, rng = place
    (folder / "new" / "day0.csv").write_text("")
    for day in (3, 4, 5):
        write(folder / "new" / f"day{day}.csv", rng, shift=2.0)
    assert main(["monitor", f"{folder}/reference.csv", f"{folder}/new"]) == 1
    seen = capsys.readouterr()
    assert "ALARM: the data has changed since about batch 3 (day3.csv), most in age" in seen.out
    assert "day0.csv is empty" in seen.err
    assert "p-value 0.0000" not in seen.out
    assert "p-value 0," not in seen.out


def test_bad_arguments(place, capsys):
    folder, _ = place
    reference = f"{folder}/reference.csv"
    assert main(["monitor", reference, reference]) == 2
    assert "is no folder" in capsys.readouterr().err
    both = ["--false-alarm-rate", "0.1", "--run-length", "9"]
    assert main(["monitor", reference, f"{folder}/new", *both]) == 2
    assert "both given" in capsys.readouterr().err
