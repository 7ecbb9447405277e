"""Files of points, as the command line reads them."""

import gzip

import numpy as np
import pytest

import crossedge as ce
from crossedge.cli.main import main
from crossedge.data.tables import read_table, read_two

POINTS = np.array([[1.5, 2.0, 3.0], [4.0, 5.0, 6.5]])


def written(path, text):
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "text",
    [
        "1.5,2,3\n4,5,6.5\n",
        "a,b,c\n1.5,2,3\n4,5,6.5",
        "a;b;c\n1.5;2;3\n4;5;6.5\n",
        "1.5\t2\t3\n\n4\t5\t6.5\n\n",
        '"a","b, really","c"\n"1.5","2","3"\n"4","5","6.5"\n',
        "\ufeffa,b,c\r\n1.5, 2,3\r\n4,5 ,6.5\r\n",
    ],
)
def test_tables_as_people_write_them(tmp_path, text):
    table = read_table(written(tmp_path / "x.csv", text))
    assert (table.values == POINTS).all()


def test_one_column(tmp_path):
    assert read_table(written(tmp_path / "x.csv", "1\n2\n")).values.shape == (2, 1)
    assert read_table(written(tmp_path / "x.csv", "0.0\n2.5\n")).values.shape == (2, 1)
    assert read_table(written(tmp_path / "y.csv", "a\n1\n")).names == ["a"]


def test_columns_are_matched_by_name(tmp_path):
    x = written(tmp_path / "x.csv", "a,b,c\n1.5,2,3\n4,5,6.5\n")
    y = written(tmp_path / "y.csv", "c,a,b\n3,1.5,2\n6.5,4,5\n")
    for found in read_two(x, y):
        assert (found == POINTS).all()
    plain = written(tmp_path / "plain.csv", "3,1.5,2\n6.5,4,5\n")
    np.save(tmp_path / "x.npy", POINTS)
    assert (read_two(x, plain)[1] == POINTS[:, [2, 0, 1]]).all()
    assert (read_two(tmp_path / "x.npy", y)[1] == POINTS[:, [2, 0, 1]]).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (",0,1\n0,1.5,2.5\n1,4.5,5.5\n", "without a name.*index=False"),
        ("1,,3\n4,5,6\n", "'' among numbers in its first line"),
        ("1,x,3\n4,5,6\n", "'x' among numbers in its first line"),
        (",a,b\n0,1,2\n1,4,5\n", "without a name.*index=False"),
        ("a,a\n1,2\n", "two columns of the same name"),
        ("a,b\n\n1,2\n3,\n", "line 4 has '' in column 'b'"),
        ("5,2\n3,two\n", "line 2 has 'two' in column 2"),
        ("5,2\n3,4,5\n", "line 2 has 3 cells, not 2"),
        ("a,b\n1,2,3\n", "line 2 has 3 cells, not 2"),
        ("a,b\n1\n", "line 2 has 1 cells, not 2"),
        ("1.5,2\n3,1_000\n", "line 2 has '1_000' in column 2"),
        ("1" * 200_000, "infinity in line 1, column 1"),
        ("1\n" + "x" * 200_000, "line 2 has 'x{37}...' in column 1$"),
        ("a,b\n1,2\n3,nan\n", "NaN in line 3, column 'b': drop such rows"),
        ("1.5,2\n\n-inf,3\n", "infinity in line 3, column 1"),
        ("1 2\n3 4\n", "'1 2'|line 2 has '3 4'"),
        ("", "no points"),
        ("a,b\n", "no points"),
    ],
)
def test_what_is_wrong_and_where(tmp_path, text, message):
    with pytest.raises(ValueError, match=message) as error:
        read_table(written(tmp_path / "odd.csv", text))
    assert "odd.csv" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "0,1\n0.5,1.5\n2.5,0.25\n",  # as pandas writes a frame that has no names
        "0,1,2\n0.5,1.0,-2.0\n",
        "0,1\n1,2\n" + "0.5,1.5\n" * 100,  # a whole number by chance
        "1;2;3\n0.5;1.0;2.5e-3\n",
        '"400.5","2"\n1,2\n',  # names in quotes, numbers without
    ],
)
def test_numbers_that_are_names(tmp_path, text):
    path = written(tmp_path / "x.csv", text)
    table = read_table(path)
    assert table.names is not None
    assert len(table.values) == text.count("\n") - 1
    assert len(read_table(path, header=False).values) == text.count("\n")


@pytest.mark.parametrize(
    "text",
    [
        "0,1,2\n3,1,4\n1,5,9\n",  # whole numbers throughout
        "0,1\n1,0\n",
        "1,2,3\n4,5,6.5\n",
        "0,1,2\n0.5,1.5,2\n",
        "0,1,2\n",
        "10,50,20\n0.5,1.5,2.5\n",  # nothing else is a whole number
        "10,50,20\n1,0.5,7\n2,0.25,8\n",  # in the second column
        "0\n5\n7\n",  # as pandas writes a series that has no name
        "0\n0.5\n",
        "2001,2002,2003,2004\n5,7,1,0\n",
        "400.1,400.2,400.3,400.4\n0.5,0.7,0.1,0.2\n",
        "0.0,1.0,2.0,3.0\n0.5,0.7,0.1,0.2\n",
    ],
)
def test_numbers_that_may_be_names_are_refused(tmp_path, text):
    path = written(tmp_path / "x.csv", text)
    with pytest.raises(ValueError, match=r"x.csv begins with .*--header .*--no-header") as error:
        read_table(path)
    assert "\n" not in str(error.value)
    assert len(read_table(path, header=False).values) == text.count("\n")
    if text.count("\n") > 1:
        table = read_table(path, header=True)
        assert len(table.values) == text.count("\n") - 1
        assert ",".join(table.names) == text.splitlines()[0]


@pytest.mark.parametrize(
    "text",
    [
        "3,1,4\n1,5,9\n",
        "1,1\n0,1\n",
        "1\n0\n1\n",
        "21.0\n20.5\n19.8\n",
        "3.0,1.0\n0.5,0.25\n",
        "3,4\n1.5,2.5\n1,2\n",
        "5,3,1.5\n4,5,6.5\n",
        "3,4,5,6\n6,7,8,9\n",  # all rows are in equal steps
        "7,2,9\n",
    ],
)
def test_numbers_that_are_a_point(tmp_path, text):
    table = read_table(written(tmp_path / "x.csv", text))
    assert table.names is None
    assert len(table.values) == text.count("\n")


def test_headers_by_the_command(tmp_path, capsys):
    """Names that are taken for a point change the p-value."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 9, (30, 3)), rng.integers(0, 9, (30, 3))
    for name, points in (("x", x), ("y", y)):
        np.savetxt(tmp_path / f"{name}.csv", points, "%d", ",", header="0,1,2", comments="")
        np.save(tmp_path / f"{name}.npy", points)
    tables, arrays = (
        [str(tmp_path / f"{name}.{kind}") for name in "xy"] for kind in ("csv", "npy")
    )
    assert main(["test", *arrays]) == 0
    expected = capsys.readouterr().out
    assert main(["test", *tables]) == 1
    assert "--no-header" in capsys.readouterr().err
    assert main(["test", *tables, "--header"]) == 0
    assert capsys.readouterr().out == expected
    assert main(["test", *tables, "--no-header"]) == 0
    assert "31 and 31 points" in capsys.readouterr().out
    for flag in ("--header", "--no-header"):
        assert main(["test", *arrays, flag]) == 1
        assert f"{flag} is for .csv files" in capsys.readouterr().err


def test_the_first_line_is_what_the_flag_says(tmp_path):
    path = written(tmp_path / "x.csv", "a,b\n1,2\n")
    with pytest.raises(ValueError, match="line 1 has 'a' in column 1"):
        read_table(path, header=False)
    with pytest.raises(ValueError, match="same name"):
        read_table(written(tmp_path / "y.csv", "1,1\n1,2\n"), header=True)


@pytest.mark.parametrize("sign", ["", "-", "+"])
def test_integers_that_lose_digits_are_refused(tmp_path, sign):
    most = 2**53
    kept = read_table(written(tmp_path / "x.csv", f"a,b\n1,{sign}{most}\n"))
    assert abs(kept.values[0, 1]) == most
    path = written(tmp_path / "y.csv", f"a,b\n1,{sign}{most}\n\n2,{sign}{most + 1}\n")
    with pytest.raises(ValueError, match=r"y.csv has .?\d+ in line 4, column 'b'.*2\^53"):
        read_table(path)
    values = read_table(written(tmp_path / "z.csv", f"1.5,{sign}1e300\n2,{sign}9e15\n")).values
    assert abs(values[0, 1]) == 1e300


def test_arrays_are_checked_without_torch(tmp_path):
    for array, message in (
        (np.array([2**53 + 1, 1]), "integers beyond 2"),
        (np.array([1, 2**64 - 1], np.uint64), "integers beyond 2"),
        (np.zeros((2, 3, 4)), r"shape \(2, 3, 4\)"),
        (np.zeros((0, 3)), r"shape \(0, 3\)"),
        (np.array(1.0), r"shape \(\)"),
        (np.array([1j]), "no array of numbers"),
        (np.array(["a"]), "no array of numbers"),
        (np.array([[1.0, 2.0], [np.nan, 1.0]]), "NaN in row 2, column 1"),
    ):
        np.save(tmp_path / "odd.npy", array)
        with pytest.raises(ValueError, match=rf"odd.npy .*{message}"):
            read_table(tmp_path / "odd.npy")


def test_other_widths(tmp_path):
    x = written(tmp_path / "x.csv", "a,b\n1,2\n")
    np.save(tmp_path / "y.npy", np.zeros((4, 3)))
    with pytest.raises(ValueError, match=r"y.npy has 3 columns, .*x.csv has 2: both must have"):
        read_two(x, tmp_path / "y.npy")


def test_other_names(tmp_path):
    x = written(tmp_path / "x.csv", "a,b\n1,2\n")
    y = written(tmp_path / "y.csv", "a,b,c\n1,2,3\n")
    for pair in ((x, y), (y, x)):
        with pytest.raises(ValueError, match=r"y.csv has a column 'c' that .*x.csv lacks"):
            read_two(*pair)


def test_other_files(tmp_path):
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(b"1,2\n"))
    np.savez(tmp_path / "x.npz", POINTS)
    for name in ("x.csv.gz", "x.npz"):
        with pytest.raises(ValueError, match=r"is no text: give a \.csv"):
            read_table(tmp_path / name)
    (tmp_path / "x.npy").write_text("1,2")
    np.save(tmp_path / "objects.npy", np.array([{}, None]), allow_pickle=True)
    for name in ("x.npy", "objects.npy"):
        with pytest.raises(ValueError, match="no array of numbers") as error:
            read_table(tmp_path / name)
        assert "pickle" not in str(error.value)


def test_the_command_tests_two_files(tmp_path, capsys):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 2)), rng.normal(size=(30, 2)) + 1
    np.save(tmp_path / "x.npy", x)
    np.savetxt(tmp_path / "y.csv", y, delimiter=",", header="a,b", comments="")
    assert main(["test", str(tmp_path / "x.npy"), str(tmp_path / "y.csv")]) == 0
    assert capsys.readouterr().out == f"{ce.two_sample(x, y, rng=0)}\n"
    (tmp_path / "text.csv").write_text("a,b\n1,two\n")
    (tmp_path / "empty.csv").write_text("a,b\n")
    (tmp_path / "nan.csv").write_text("1,nan\n")
    for name, message in (
        ("none.csv", "none.csv"),
        ("text.csv", "text.csv is no table"),
        ("empty.csv", "empty.csv has no points"),
        ("nan.csv", "nan.csv has NaN in line 1, column 2"),
    ):
        assert main(["test", str(tmp_path / "x.npy"), str(tmp_path / name)]) == 1
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
