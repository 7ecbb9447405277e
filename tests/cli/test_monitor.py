"""`crossedge monitor`: files in order, a state that goes on, and exit codes."""

import json

import numpy as np
import pytest

from crossedge.cli.main import main
from crossedge.monitoring import Monitor

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


def test_a_state_knows_its_reference_and_its_settings(place, capsys):
    folder, rng = place
    new, state = f"{folder}/new", f"{folder}/s.npz"
    call = ["monitor", f"{folder}/reference.csv", new, "--state", state, "--drop", "city"]
    assert main([*call, "--seed", "3"]) == 0
    kept = (folder / "s.npz").read_bytes()
    write(folder / "other.csv", rng, n=200)
    write(folder / "new" / "day3.csv", rng)
    for other, said in (
        (["monitor", f"{folder}/other.csv", *call[2:]], "another reference, or with other"),
        (call[:-2], "with other --columns or --drop"),
        ([*call[:-1], "height"], "with other --columns or --drop"),
        ([*call, "--seed", "4"], "another --seed"),
        ([*call, "--max-points", "99"], "another --max-points"),
        (["monitor", f"{folder}/none.csv", *call[2:]], "no such file"),
    ):
        assert main(other) == 2, other
        assert said in capsys.readouterr().err
        assert (folder / "s.npz").read_bytes() == kept
    assert main([*call, "--seed", "3"]) == 0
    assert "day3.csv: 60 rows" in capsys.readouterr().out
    assert main(call) == 0  # which is silent about the seed


def test_reset_after_an_alarm(place, capsys):
    folder, rng = place
    state = folder / "s.npz"
    call = ["monitor", f"{folder}/reference.csv", f"{folder}/new", "--state", str(state)]
    assert main([*call, "--reset"]) == 2
    assert "--reset is for a monitor that was kept" in capsys.readouterr().err
    assert main([*call, "--adopt"]) == 2
    for day in (3, 4, 5):
        write(folder / "new" / f"day{day}.csv", rng, shift=2.0)
    assert main(call) == 1
    assert "the alarm stands until --reset" in capsys.readouterr().out
    alarmed = state.read_bytes()
    assert main(call) == 1  # no new file, and still red
    assert main([*call, "--reset"]) == 0
    assert main(call) == 0
    assert main([*call, "--reset"]) == 2
    assert "has no alarm" in capsys.readouterr().err
    rows = len(Monitor.load(state)._rows)
    assert rows == 200 + 2 * 60  # without the days since the change
    state.write_bytes(alarmed)
    assert main([*call, "--reset", "--adopt"]) == 0
    assert len(Monitor.load(state)._rows) == 3 * 60


def test_a_state_that_cannot_be_kept_fails_before_the_work(place, capsys):
    folder, _ = place
    call = ["monitor", f"{folder}/reference.csv", f"{folder}/new", "--state"]
    for state, said in ((f"{folder}/no/s.npz", "no is no folder, make it"), (str(folder), "is a ")):
        assert main([*call, state]) == 2
        seen = capsys.readouterr()
        assert said in seen.err
        assert seen.out == ""


def test_files_that_leave_their_decimal_sign_open_are_read_like_the_reference(tmp_path):
    rng = np.random.default_rng(0)
    cells = [f"{value:.3f}".replace(".", ",") for value in rng.uniform(1, 9, 400)]
    (tmp_path / "new").mkdir()
    (tmp_path / "r.csv").write_text("\n".join(["a;b", "1,5;x", *(f"{c};y" for c in cells[:300])]))
    day = "\n".join(["a;b", *(f"{c.replace(',', '.')};y" for c in cells[300:])])
    (tmp_path / "new" / "day.csv").write_text(day)
    state = tmp_path / "s.npz"
    main(["monitor", f"{tmp_path}/r.csv", f"{tmp_path}/new", "--state", str(state)])
    assert Monitor.load(state)._rows.table["a"].values[-1] > 1000
