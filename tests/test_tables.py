"""Files of points, as the command line reads them."""

import gzip

import numpy as np
import pytest

from crossedge.cli import main
from crossedge.tables import read_table, read_two

POINTS = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.5]])


def written(path, text):
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "text",
    [
        "1,2,3\n4,5,6.5\n",
        "a,b,c\n1,2,3\n4,5,6.5",
        "a;b;c\n1;2;3\n4;5;6.5\n",
        "1\t2\t3\n\n4\t5\t6.5\n\n",
        '"a","b, really","c"\n"1","2","3"\n"4","5","6.5"\n',
        "\ufeffa,b,c\r\n1, 2,3\r\n4,5 ,6.5\r\n",
    ],
)
def test_tables_as_people_write_them(tmp_path, text):
    table = read_table(written(tmp_path / "x.csv", text))
    assert (table.values == POINTS).all()


def test_one_column(tmp_path):
    assert read_table(written(tmp_path / "x.csv", "1\n2\n")).values.shape == (2, 1)
    assert read_table(written(tmp_path / "y.csv", "a\n1\n")).names == ["a"]


def test_columns_are_matched_by_name(tmp_path):
    x = written(tmp_path / "x.csv", "a,b,c\n1,2,3\n4,5,6.5\n")
    y = written(tmp_path / "y.csv", "c,a,b\n3,1,2\n6.5,4,5\n")
    for found in read_two(x, y):
        assert (found == POINTS).all()
    plain = written(tmp_path / "plain.csv", "3,1,2\n6.5,4,5\n")
    np.save(tmp_path / "x.npy", POINTS)
    assert (read_two(x, plain)[1] == POINTS[:, [2, 0, 1]]).all()
    assert (read_two(tmp_path / "x.npy", y)[1] == POINTS[:, [2, 0, 1]]).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,,3\n4,5,6\n", "'' among numbers in its first line"),
        ("1,x,3\n4,5,6\n", "'x' among numbers in its first line"),
        (",a,b\n0,1,2\n1,4,5\n", "without a name.*index=False"),
        ("a,a\n1,2\n", "two columns of the same name"),
        ("a,b\n\n1,2\n3,\n", "line 4 has '' in column 'b'"),
        ("1,2\n3,two\n", "line 2 has 'two' in column 2"),
        ("1,2\n3,4,5\n", "line 2 has 3 cells, not 2"),
        ("a,b\n1,2,3\n", "line 2 has 3 cells, not 2"),
        ("a,b\n1\n", "line 2 has 1 cells, not 2"),
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
    np.save(tmp_path / "x.npy", rng.normal(size=(40, 2)))
    y = rng.normal(size=(30, 2)) + 1
    np.savetxt(tmp_path / "y.csv", y, delimiter=",", header="a,b", comments="")
    assert main(["test", str(tmp_path / "x.npy"), str(tmp_path / "y.csv")]) == 0
    assert "p-value    0.0004" in capsys.readouterr().out
    (tmp_path / "text.csv").write_text("a,b\n1,two\n")
    (tmp_path / "empty.csv").write_text("a,b\n")
    (tmp_path / "nan.csv").write_text("1,nan\n")
    for name, message in (
        ("none.csv", "none.csv"),
        ("text.csv", "text.csv is no table"),
        ("empty.csv", "empty.csv has no points"),
        ("nan.csv", "y has NaN at row 0"),
    ):
        assert main(["test", str(tmp_path / "x.npy"), str(tmp_path / name)]) == 1
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
