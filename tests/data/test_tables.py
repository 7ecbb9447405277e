"""Files of all formats, as the command line reads them."""

import bz2
import gzip
import lzma
import pickle
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pytest
import zstandard
from PIL import Image

import crossedge as ce
from crossedge.cli.main import main
from crossedge.data.files import kind_of
from crossedge.data.samples import pool
from crossedge.data.selection import Pair, choose_columns, read_pair, sample_rows, split_by
from crossedge.data.tables import read_table
from table_cases import FORMATS, TABLE, packed_by

POINTS = np.array([[1.5, 2.0, 3.0], [4.0, 5.0, 6.5]])


def numbers(table):
    return np.asarray(table.values, float)


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
        "1.5|2|3\n4|5|6.5\n",
        "a   b c\n1.5 2     3\n 4 5 6.5\n",
        "1.5 2.0 3.0\n4.0 5.0 6.5",
        "a;b;c\n1,5;2;3\n4;5;6,5\n",
        "1,5\t2\t3,0\n4,0\t5\t6,5\n",
        'a,b,c\n"1,5",2,3\n4,5,"6,5"\n',
        "a\rb\rc\r".replace("\r", ",")[:-1] + "\r1.5,2,3\r4,5,6.5\r",
    ],
)
def test_tables_as_people_write_them(tmp_path, text):
    table = read_table(written(tmp_path / "x.csv", text))
    assert (numbers(table) == POINTS).all()


def test_one_column(tmp_path):
    assert read_table(written(tmp_path / "x.csv", "1\n2\n")).values.shape == (2, 1)
    assert read_table(written(tmp_path / "x.csv", "0.0\n2.5\n")).values.shape == (2, 1)
    assert read_table(written(tmp_path / "y.csv", "a\n1\n")).names == ("a",)


def test_columns_are_matched_by_name(tmp_path):
    x = written(tmp_path / "x.csv", "a,b,c\n1.5,2,3\n4,5,6.5\n")
    y = written(tmp_path / "y.csv", "c,a,b\n3,1.5,2\n6.5,4,5\n")
    for found in read_pair(x, y):
        assert (numbers(found) == POINTS).all()
        assert found.named
    plain = written(tmp_path / "plain.csv", "3,1.5,2\n6.5,4,5\n")
    np.save(tmp_path / "x.npy", POINTS)
    assert (numbers(read_pair(x, plain).y) == POINTS[:, [2, 0, 1]]).all()
    assert (numbers(read_pair(tmp_path / "x.npy", y).y) == POINTS[:, [2, 0, 1]]).all()
    assert read_pair(tmp_path / "x.npy", y).x.columns == ("c", "a", "b")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (",0,1\n0,1.5,2.5\n1,4.5,5.5\n", "without a name.*index=False"),
        ("1,x,3\n4,5,6\n", "begins with 1, x, 3, which may be names or a point"),
        ("1.5,x,3\n4,5,6\n", "begins with 1.5, x, 3, which may be names or a point"),
        (",a,b\n0,1,2\n1,4,5\n", "without a name.*index=False"),
        ("a,a\n1,2\n", "two columns of the same name"),
        ("5,2\n3,4,5\n", "line 2 has 3 cells, not 2"),
        ("a,b\n1,2,3\n", "line 2 has 3 cells, not 2"),
        ("a,b\n\n1\n", "line 3 has 1 cells, not 2"),
        ('a,b\n"1,2\n', "line 2 has 1 cells, not 2"),
        ('a\n"1,2\n', "it has a quote that is not closed"),
        ("", "is empty"),
        (" \n", "no points"),
        ("a,b\n", "no points"),
        ("\x00\x01\x02", "is no text"),
        ("{1}", "is no JSON"),
        ("%PDF-1.7\n", "is a PDF: give csv"),
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
    assert table.named
    assert len(table) == text.count("\n") - 1
    assert len(read_table(path, header=False)) == text.count("\n")


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
    assert len(read_table(path, header=False)) == text.count("\n")
    if text.count("\n") > 1:
        table = read_table(path, header=True)
        assert len(table) == text.count("\n") - 1
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
    assert not table.named
    assert len(table) == text.count("\n")


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("1.5,Bern\n2.5,Zug\n", 2),
        ("1,Bern,1\n2,Zug,2\n", 2),
        ("1,,3\n4,5,6\n", 2),  # a missing value, as names are not
        ("5,2\n3,two\n", 2),
    ],
)
def test_a_first_line_like_the_others_is_a_point(tmp_path, text, points):
    table = read_table(written(tmp_path / "x.csv", text))
    assert (len(table), table.named) == (points, False)


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
    assert main(["test", *tables]) == 2
    assert "--no-header" in capsys.readouterr().err
    assert main(["test", *tables, "--header"]) == 0
    assert "3 numbers" in capsys.readouterr().out
    assert main(["test", *tables, "--header", "--scale", "none"]) == 0
    found = capsys.readouterr().out
    assert found.partition("\n")[2] == expected.partition("\n")[2]
    assert main(["test", *tables, "--no-header"]) == 0
    assert "31 and 31 points" in capsys.readouterr().out
    for flag in ("--header", "--no-header"):
        assert main(["test", *arrays, flag]) == 2
        assert f"{flag} is for text and sheets, not for npy" in capsys.readouterr().err


def test_the_first_line_is_what_the_flag_says(tmp_path):
    path = written(tmp_path / "x.csv", "a,b\n1,2\n")
    assert len(read_table(path, header=False)) == 2
    with pytest.raises(ValueError, match="same name"):
        read_table(written(tmp_path / "y.csv", "1,1\n1,2\n"), header=True)


@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize("gap", ["", "5,\n"])
def test_integers_that_lose_digits_are_refused(tmp_path, sign, gap):
    most = 2**53
    x = read_table(written(tmp_path / "x.csv", f"a,b\n1,{sign}{most}\n2,1\n{gap}"))
    assert np.abs(pool(x, x, "none").values[:, 1]).max() == most
    y = read_table(written(tmp_path / "y.csv", f"a,b\n1,{sign}{most}\n2,{sign}{most + 1}\n{gap}"))
    with pytest.raises(ValueError, match=r"column 'b' of .*y.csv has integers beyond 2\^53"):
        pool(x, y)
    large = read_table(written(tmp_path / "z.csv", f"1.5,{sign}1e300\n2,{sign}9e15\n"))
    assert abs(numbers(large)[0, 1]) == 1e300


def test_cells_as_people_write_them(tmp_path):
    lines = [
        "amount;share;when;ok;group",
        "1.234,5;10 ;31.12.2024;True;a",
        "12,5; ;1.1.2025;False;NA",
        "-3,0;30;2.1.2025;True; b ",
    ]
    table = read_table(written(tmp_path / "x.csv", "\n".join(lines)))
    points = pool(table, table, "none")
    kinds = [column.kind for column in points.made]
    assert kinds == ["number", "number", "date", "boolean", "category"]
    assert points.values[:3, 0].tolist() == [1234.5, 12.5, -3.0]
    assert points.values[:3, 1].tolist() == [10.0, 20.0, 30.0]  # the median where it is missing
    assert "share missing" in points.columns
    assert "group=b" in points.columns
    american = read_table(written(tmp_path / "y.csv", 'a,b\n"1,234.5","1,000"\n"2",5\n'))
    assert numbers(american).tolist() == [[1234.5, 1000.0], [2.0, 5.0]]


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["1.103,68", "2.250", "10,5"], [1103.68, 2250, 10.5]),
        (["1,103.68", "2,250", "10.5"], [1103.68, 2250, 10.5]),
        (["0,950", "1,103"], [0.95, 1.103]),
        (["0.950", "1.103"], [0.95, 1.103]),
        (["1103,250", "1,103"], [1103.25, 1.103]),
        (["1,103,250", "1,103"], [1103250, 1103]),
        (["1.103.250", "1.103"], [1103250, 1103]),
        (["1,103", "2,250"], [1.103, 2.25]),
        (["1.103", "2.250"], [1.103, 2.25]),
        (["1'103.68", "-2'250", "950"], [1103.68, -2250, 950]),
        (["1 103,68", "2\u00a0250", "950"], [1103.68, 2250, 950]),
        (["1,5e3", "-2,25E-1"], [1500, -0.225]),
    ],
)
def test_a_column_tells_its_decimal_sign(tmp_path, cells, values):
    lines = "".join(f"{cell};x\n" for cell in cells)
    table = read_table(written(tmp_path / "x.csv", f"a;b\n{lines}"))
    assert table["a"].tolist() == values


def test_columns_of_unlike_signs(tmp_path):
    text = "a;b;c\n1,5;1.5;1,5\n1.103;1,103;1.5\n"
    table = read_table(written(tmp_path / "x.csv", text))
    assert table["a"].tolist() == [1.5, 1103]
    assert table["b"].tolist() == [1.5, 1103]
    assert table["c"].tolist() == ["1,5", "1.5"]  # both in one column are no numbers


def test_files_agree_on_the_decimal_sign(tmp_path, monkeypatch):
    unsure = written(tmp_path / "unsure.csv", "a;b\n1.103;1\n2.250;2\n")
    comma = written(tmp_path / "comma.csv", "a;b\n1.103,5;1\n2.250;2\n")
    point = written(tmp_path / "point.csv", "a;b\n1103.5;1\n2250;2\n")
    for pair in ((unsure, comma), (comma, unsure)):
        found = [table["a"].tolist() for table in read_pair(*pair)]
        assert [1103, 2250] in found
        assert [1103.5, 2250] in found
    for pair in ((unsure, point), (unsure, unsure)):
        assert read_pair(*pair).x["a"].tolist() == [1.103, 2.25]
    for name in ("unsure", "comma"):  # standard input is read only once
        with open(tmp_path / f"{name}.csv") as file:
            monkeypatch.setattr("sys.stdin", file)
            other = comma if name == "unsure" else unsure
            assert read_pair(Path("-"), other).x["a"].tolist()[1] == 2250


def test_arrays_are_checked(tmp_path):
    for array, message in (
        (np.zeros((2, 3, 4)), r"shape \(2, 3, 4\)"),
        (np.zeros((0, 3)), r"shape \(0, 3\)"),
        (np.array(1.0), r"shape \(\)"),
        (np.array([1j]), "no array of numbers"),
        (np.array(["a"]), "no array of numbers"),
    ):
        np.save(tmp_path / "odd.npy", array)
        with pytest.raises(ValueError, match=rf"odd.npy .*{message}"):
            read_table(tmp_path / "odd.npy")
    np.save(tmp_path / "large.npy", np.array([1, 2**64 - 1], np.uint64))
    large = read_table(tmp_path / "large.npy")
    with pytest.raises(ValueError, match="integers beyond 2"):
        pool(large, large)


def test_other_widths(tmp_path):
    x = written(tmp_path / "x.csv", "a,b\n1,2\n")
    np.save(tmp_path / "y.npy", np.zeros((4, 3)))
    with pytest.raises(ValueError, match=r"y.npy has 3 columns, .*x.csv has 2: both must have"):
        read_pair(x, tmp_path / "y.npy")


def test_other_names(tmp_path):
    x = written(tmp_path / "x.csv", "a,b\n1,2\n")
    y = written(tmp_path / "y.csv", "a,b,c\n1,2,3\n")
    for pair in ((x, y), (y, x)):
        with pytest.raises(ValueError, match=r"y.csv has a column 'c' that .*x.csv lacks"):
            read_pair(*pair)


@pytest.mark.filterwarnings("ignore:the samples have:UserWarning")
@pytest.mark.parametrize("made", FORMATS.values(), ids=FORMATS.keys())
def test_formats_tell_the_same(tmp_path, made):
    path = tmp_path / "x.table"  # the name says nothing
    path.write_bytes(made())
    table = read_table(path)
    assert (table.columns, table.named) == (tuple(TABLE.columns), True)
    found, expected = pool(table, table), pool(TABLE, TABLE)
    np.testing.assert_allclose(found.values, expected.values)
    assert found.columns == expected.columns


def test_arrays_in_archives(tmp_path):
    np.savez(tmp_path / "one.npz", POINTS)
    assert (numbers(read_table(tmp_path / "one.npz")) == POINTS).all()
    np.savez_compressed(tmp_path / "columns.npz", a=POINTS[:, 0], b=POINTS[:, 1])
    table = read_table(tmp_path / "columns.npz")
    assert (table.columns, table.named) == (("a", "b"), True)
    assert (numbers(table) == POINTS[:, :2]).all()
    np.savez(tmp_path / "odd.npz", a=POINTS, b=POINTS[:, 1])
    with pytest.raises(ValueError, match=r"odd.npz holds a \(2, 3\), b \(2,\): give one array"):
        read_table(tmp_path / "odd.npz")


def test_files_are_never_code(tmp_path):
    np.save(tmp_path / "objects.npy", np.array([{}, None]), allow_pickle=True)
    np.savez(tmp_path / "objects.npz", np.array([{}, None]))
    (tmp_path / "x.pkl").write_bytes(pickle.dumps(TABLE))
    (tmp_path / "x.npy").write_text("1,2")
    for name, message in (
        ("objects.npy", "no array of numbers"),
        ("objects.npz", "no archive of arrays"),
        ("x.pkl", "is a pickle: give csv"),
    ):
        with pytest.raises(ValueError, match=message):
            read_table(tmp_path / name)


def test_a_folder_of_images(tmp_path):
    rng = np.random.default_rng(0)
    grey = rng.integers(0, 255, (3, 4, 5), np.uint8)
    for place, pixels in enumerate(grey):
        Image.fromarray(pixels).save(tmp_path / f"{place}.png")
    table = read_table(tmp_path)
    assert (table.values == grey.reshape(3, 20)).all()
    assert not table.named
    Image.fromarray(rng.integers(0, 255, (4, 5, 3), np.uint8)).save(tmp_path / "colour.png")
    assert read_table(tmp_path).values.shape == (4, 60)
    Image.fromarray(grey[0, :3]).save(tmp_path / "z.png")
    with pytest.raises(ValueError, match=r"z.png has 5 x 3 pixels, 0.png has 5 x 4: give"):
        read_table(tmp_path)
    (tmp_path / "z.png").write_bytes(b"\x89PNG")
    with pytest.raises(ValueError, match=r"z.png is no image that can be read"):
        read_table(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="empty has no images"):
        read_table(tmp_path / "empty")


class TestLimits:
    @pytest.fixture(autouse=True)
    def _small(self, monkeypatch):
        monkeypatch.setattr("crossedge.data.files.MOST_BYTES", 10**6)

    def bombs(self):
        zeros, ones = b"0\n" * 10**6, np.ones(10**6)
        yield from (gzip.compress(zeros), bz2.compress(zeros), lzma.compress(zeros))
        yield zstandard.compress(zeros)
        yield packed_by(lambda out: np.savez_compressed(out, ones))
        frame = pd.DataFrame({"a": ones})
        yield packed_by(lambda out: frame.to_parquet(out))
        yield packed_by(lambda out: frame.to_feather(out, compression="zstd"))
        long = pd.DataFrame({"a": ["x" * 10**5] * 30})
        yield packed_by(lambda out: long.to_feather(out, compression="zstd"))
        book = openpyxl.Workbook()
        for row in range(1, 50):
            book.active.cell(row, 16_000, 1)
        yield packed_by(book.save)

    def test_bombs_do_not_go_off(self, tmp_path):
        for content in self.bombs():
            assert len(content) < 10**5
            (tmp_path / "bomb").write_bytes(content)
            with pytest.raises(ValueError, match=r"bomb holds more than 0.0 GiB after"):
                read_table(tmp_path / "bomb")

    def test_long_texts_that_repeat_are_kept_once(self, tmp_path):
        long = pd.DataFrame({"a": ["x" * 10**5, "y"] * 30})
        long.to_parquet(tmp_path / "x.parquet")
        assert len(read_table(tmp_path / "x.parquet")) == 60

    def test_images_are_measured_before_they_are_read(self, tmp_path):
        Image.new("L", (1000, 1000)).save(tmp_path / "a.png")
        with pytest.raises(ValueError, match="holds more than"):
            read_table(tmp_path)


def test_kinds_are_told_by_content():
    assert kind_of(b"PAR1") == "parquet"
    assert kind_of(b"a,b") == "text"


class TestSelection:
    frame = pd.DataFrame(
        {"group": ["a", "b", "b", "c", None] * 8, "size": range(40), "id": range(40), "z": 1.5}
    )
    letters = frame.assign(letter=list("abcdefghijklm" * 3 + "a"))

    def table(self, tmp_path, frame=None, name="x.csv"):
        (self.frame if frame is None else frame).to_csv(tmp_path / name, index=False)
        return read_table(tmp_path / name)

    def test_by_a_column(self, tmp_path):
        table = self.table(tmp_path)
        (x, y), told = split_by(table, "group=b,a")
        assert told == "group=b against group=a, 16 other rows not used"
        assert (len(x), len(y)) == (16, 8)
        assert x.columns == ("size", "id", "z")
        groups, told = split_by(table, "group")
        assert told == "group=a against group=b against group=c, 8 other rows not used"
        assert [len(each) for each in groups] == [8, 16, 8]
        two = self.table(tmp_path, self.frame.assign(group=np.arange(40) % 2))
        (x, y), told = split_by(two, "group")
        assert told == "group=0 against group=1"
        assert y["size"].tolist() == list(range(1, 40, 2))

    @pytest.mark.parametrize(
        ("by", "message"),
        [
            (
                "letter",
                r"column 'letter' of .* has 13 values \(a, b, c, d, e, ...\), not two to 12",
            ),
            ("z", r"has 1 value \(1.5\), not two to"),
            ("none", r"--by: .* has no column 'none': it has group, size, id, z, letter"),
            ("group=a", r"--by group=a does not name two values or more"),
            ("group=a,a", r"does not name two values"),
            ("group=a,d", r"has no value 'd'"),
        ],
    )
    def test_by_what_does_not_do(self, tmp_path, by, message):
        with pytest.raises(ValueError, match=message):
            split_by(self.table(tmp_path, self.letters), by)

    def test_columns(self, tmp_path):
        x = self.table(tmp_path)
        y = self.table(tmp_path, self.frame.assign(more=2).drop(columns="z"), "y.csv")
        path = tmp_path / "x.csv", tmp_path / "y.csv", None
        for columns, drop, names in (
            (["size, group"], [], ("size", "group")),
            (["size", "id"], ["id"], ("size",)),
            ([], ["z,more"], ("group", "size", "id")),
        ):
            assert read_pair(*path, columns, drop).x.columns == names
            assert read_pair(*path, columns, drop).y.columns == names
        with pytest.raises(ValueError, match=r"x.csv has a column 'z' that .*y.csv lacks"):
            read_pair(*path)
        with pytest.raises(ValueError, match=r"--columns: .*y.csv has no column 'z'"):
            read_pair(*path, ["z"], [])
        with pytest.raises(ValueError, match="--drop leaves no column"):
            choose_columns(Pair(x, x), ["z"], ["z"])
        with pytest.raises(ValueError, match=r"--drop: .* has no column 'q'"):
            choose_columns(Pair(x, y), [], ["q"])

    def test_random_rows(self, tmp_path):
        table = self.table(tmp_path)
        (x, y), left_out = sample_rows(Pair(table, table.with_rows(np.arange(5))), 10, seed=3)
        assert (len(x), len(y)) == (10, 5)
        assert [column.name for column in left_out] == ["size", "id"]
        again = sample_rows(Pair(table, table), 10, seed=3).pair.x
        assert x.values.equals(again.values)
        assert not x.values.equals(sample_rows(Pair(table, table), 10, seed=4).pair.x.values)


def test_the_command_tests_two_files(tmp_path, capsys):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 2)), rng.normal(size=(30, 2)) + 1
    np.save(tmp_path / "x.npy", x)
    np.savetxt(tmp_path / "y.csv", y, "%.17g", delimiter=",", header="a,b", comments="")
    files = [str(tmp_path / "x.npy"), str(tmp_path / "y.csv")]
    assert main(["test", *files]) == 0
    frames = (pd.DataFrame(points, columns=["a", "b"]) for points in (x, y))
    told = capsys.readouterr().out
    assert told.startswith(f"{files[0]} against {files[1]}\n")
    assert f"\n{ce.two_sample(*frames, rng=0)}\n" in told
    assert "\n  a  number    centred at " in told
    assert main(["test", *files, "--scale", "none"]) == 0
    raw = ce.two_sample(x, y, rng=0)
    assert f"\n{raw}\n  columns    2 numbers" in capsys.readouterr().out
    (tmp_path / "text.csv").write_text("a,b\n1,two,three\n")
    (tmp_path / "empty.csv").write_text("a,b\n")
    (tmp_path / "infinite.csv").write_text("1,inf\n")
    for name, message in (
        ("none.csv", "none.csv"),
        ("text.csv", "text.csv is no table: line 2 has 3 cells, not 2"),
        ("empty.csv", "empty.csv has no points"),
        ("infinite.csv", "infinite.csv has infinity in row 1"),
    ):
        assert main(["test", str(tmp_path / "x.npy"), str(tmp_path / name)]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
