"""Files of all kinds of badness: one clear line or a right answer, never a traceback."""

import gzip
import io
import json
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crossedge.cli.main import main
from crossedge.data.samples import pool
from crossedge.data.tables import read_table
from table_cases import FORMATS, TABLE

RIGHT = pool(TABLE, TABLE).values
EXPECTED = (ValueError, TypeError, OSError, MemoryError)
CONTENTS = {name: made() for name, made in FORMATS.items()}


def archive(**members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        for name, content in members.items():
            file.writestr(name.replace("__", "/").replace("_", "."), content)
    return stream.getvalue()


def array(value, **options):
    stream = io.BytesIO()
    np.save(stream, value, **options)
    return stream.getvalue()


def lines(*rows):
    return "\n".join(rows).encode()


# every one of these is refused
REFUSED = {
    "nothing": b"",
    "blank": b"   ",
    "blank lines": b"\n\n\r\n\n",
    "a byte order mark": b"\xef\xbb\xbf",
    "a mark of utf-16": b"\xff\xfe",
    "half a character": "a,b\n1,2\n".encode("utf-16")[:-1],
    "zeros": bytes(1000),
    "one zero": b"a,b\n1,\x00\n",
    "control characters": b"a,b\n1,\x07\n",
    "names only": b"a,b,c",
    "names only, twice": b"a,a\n1,2",
    "no name": b"a,,c\n1,2,3",
    "no names": b",,\n1,2,3",
    "a longer row": b"a,b\n1,2\n1,2,3\n",
    "a shorter row": b"a,b\n1,2\n1\n",
    "a ragged head": b"a,b,c\n1,2\n1,2\n",
    "ragged blanks": b"1.5 2.5\n1.5 2.5 3.5\n1.5 2.5\n",
    "an open quote": b'a,b\n1,"2\n3,4\n5,6\n',
    "an open quote at the end": b'a,b\n1,2\n3,"',
    "infinity": b"a,b\n1,inf\n2,3\n",
    "minus infinity": b"a\n1\n-inf\n",
    "beyond doubles": b"a\n1\n1e400\n",
    "large integers": b"a\n1\n9007199254740993\n",
    "only constants": b"a,b\n1,x\n1,x\n",
    "only missing values": b"a,b\n,\n,\n",
    "a slip of the pen": lines("a", *map(str, range(30)), "3O"),
    "comments": b"# written by a program\na,b\n1,2\n",
    "a report": b"Report of May\n\na,b\n1,2\n3,4\n",
    "html": b"<!DOCTYPE html><html><body><table><tr><td>1</td></tr></table></body></html>",
    "a pdf": b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n",
    "a png": b"\x89PNG\r\n\x1a\n",
    "a jpeg": b"\xff\xd8\xff\xe0",
    "a program": b"\x7fELF\x02\x01\x01",
    "a pickle": b"\x80\x04\x95\x10\x00",
    "hdf5": b"\x89HDF\r\n\x1a\n",
    "sqlite": b"SQLite format 3\x00",
    "old excel": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
    "old feather": b"FEA1" + bytes(20),
    "gzip, the magic": b"\x1f\x8b",
    "gzip, cut": CONTENTS["gz"][:-12],
    "gzip, a wrong sum": CONTENTS["gz"][:-8] + b"\x00" * 8,
    "gzip of nothing": gzip.compress(b""),
    "gzip of gzip": gzip.compress(gzip.compress(b"a\n1\n2\n")),
    "bzip2, the magic": b"BZh9",
    "bzip2, cut": CONTENTS["bz2"][:-5],
    "xz, the magic": b"\xfd7zXZ\x00",
    "xz, cut": CONTENTS["xz"][:-5],
    "zstandard, the magic": b"\x28\xb5\x2f\xfd",
    "zstandard, garbage": b"\x28\xb5\x2f\xfd" + b"\xff" * 50,
    "parquet, the magic": b"PAR1",
    "parquet, both ends": b"PAR1PAR1",
    "parquet, a length that lies": b"PAR1" + b"\xff\xff\xff\x7f" + b"PAR1",
    "parquet, cut": CONTENTS["parquet"][:-100],
    "parquet, a hole": CONTENTS["parquet"][:20] + bytes(200) + CONTENTS["parquet"][220:],
    "feather, the magic": b"ARROW1",
    "feather, both ends": b"ARROW1\x00\x00ARROW1",
    "feather, cut": CONTENTS["feather"][:-50],
    "zip, the magic": b"PK\x03\x04",
    "zip of nothing": archive(),
    "zip of a csv": archive(a_csv=b"a\n1\n2\n"),
    "zip, cut": archive(a_csv=b"a\n1\n2\n")[:-10],
    "a document": archive(word__document_xml=b"<w/>"),
    "a hollow workbook": archive(xl__workbook_xml=b""),
    "a workbook that is no xml": archive(xl__workbook_xml=b"<<<<"),
    "a workbook of entities": archive(
        xl__workbook_xml=b'<!DOCTYPE l [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><l>&b;</l>'
    ),
    "xlsx, cut": CONTENTS["xlsx"][:-300],
    "npz of text": archive(a_npy=b"1,2"),
    "npz of objects": archive(a_npy=array(np.array([None]), allow_pickle=True)),
    "npz of unequal arrays": archive(a_npy=array([1.0]), b_npy=array([1.0, 2.0])),
    "npy, the magic": b"\x93NUMPY",
    "npy, cut": array(np.ones(100))[:-80],
    "npy of text": array(np.array(["a", "b"])),
    "npy of complex numbers": array(np.array([1j, 2])),
    "npy of objects": array(np.array([{}, None]), allow_pickle=True),
    "npy of dates": array(np.array(["2024-01-01"], "datetime64[D]")),
    "npy of records": array(np.zeros(3, [("a", float), ("b", int)])),
    "npy of nothing": array(np.zeros((0, 3))),
    "npy of one number": array(1.0),
    "npy of cubes": array(np.zeros((2, 2, 2))),
    "npy of infinities": array(np.array([np.inf, 1.0])),
    "npy of large integers": array(np.array([2**60, 1])),
    "npy that lies": array(np.ones(3)).replace(b"(3,)", b"(9999999999999999999,)"),
    "npy with code for a header": b"\x93NUMPY\x01\x00\x30\x00"
    + b"__import__('os')".ljust(47)
    + b"\n",
    "json, cut": b'{"a": 1}\n{"a": ',
    "json without quotes": b"{a: 1}\n",
    "json of lists": b'{"a": [1, 2]}\n{"a": [3]}\n',
    "json of objects": b'{"a": {"b": 1}}\n{"a": {"b": 2}}\n',
    "json of nothing": b"{}\n",
    "json, an empty list": b"[]",
    "json, deep": b"[" * 5000,
    "json, deep objects": b'{"a":' * 5000,
    "a first line that may be names": b"0,1\n1,0\n2,5\n",
    "years": b"2001,2002,2003,2004\n5,7,1,0\n",
    "names among numbers": b"1,x,3\n4,5,6\n",
    "latin-1 with a control character": b"a\n\xe9\x01\n",
    "many texts": lines("a,b", *(f"text {place % 60},{place}" for place in range(100))),
}
# these are read, as so many points in so many dimensions
READ = {
    "no line at the end": (b"a,b\n1,2\n3,5", 2, 2),
    "old lines of a Mac": (b"a,b\r1,2\r3,5\r", 2, 2),
    "blank lines between": (b"a,b\n\n1,2\n\n\n3,5\n\n", 2, 2),
    "blanks around cells": (b"a , b\n 1 , 2 \n 3 , 5 \n", 2, 2),
    "a blank for a number": (b"a,b\n1, \n3,5\n4,6\n", 3, 3),
    "quotes": (b'"a","b ""c"""\n"1","2"\n"3","5"\n', 2, 2),
    "a line in a cell": (b'a,b\nu,"two\nlines"\nv,"one"\n', 2, 4),
    "an inch": (b'a,b\n1,5"\n2,6"\n', 2, 3),
    "one column": (b"a\n1\n2\n", 2, 1),
    "names in other letters": ("größe,中文\n1,2\n3,5\n".encode(), 2, 2),
    "names in latin-1": ("größe,b\n1,2\n3,5\n".encode("latin-1"), 2, 2),
    "quotes of windows": ("a,b\n“u”,2\nv,5\n".encode("cp1252"), 2, 3),
    "missing values in words": (b"a,b\n1,NA\nnull,5\n3,n/a\n4,7\n", 4, 4),
    "hexadecimal text": (b"a,b\n0x1F,1\nxyz,2\n", 2, 3),
    "html in cells": (b"a,b\n<b>1</b>,1\n<script>,2\n", 2, 3),
    "formulas in cells": (b"a,b\n=1+1,1\n@x,2\n", 2, 3),
    "a million in groups": (b'a,b\n"1,000,000",1\n"2,000",2\n', 2, 2),
    "decimal commas": (b"a;b\n1,5;2\n2,5;3\n", 2, 2),
    "small and large": (b"a,b\n1e-300,1e300\n2e-300,-1e300\n", 2, 2),
    "a json list": (b'[{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]', 2, 3),
    "json with gaps": (b'{"a": 1}\n{"b": 2}\n{"a": 3, "b": 4}\n', 3, 4),
    "json of mixed kinds": (b'{"a": 1}\n{"a": "x"}\n{"a": false}\n', 3, 3),
    "json, blank lines": (b'{"a": 1}\n\n{"a": 2}\n\n', 2, 1),
    "brackets that are no json": (b"[a],[b]\n1,2\n3,5\n", 2, 2),
    "a wide row": (",".join(f"c{i}" for i in range(2000)).encode() + b"\n"
                   + b"\n".join(",".join(str(i * k % 7) for i in range(1, 2001)).encode()
                                for k in (1, 2, 3)), 3, None),
}  # fmt: skip


def judged(path):
    """The points that a file makes, or None after one clear line."""
    try:
        table = read_table(path)
        points = pool(table, table).values
    except EXPECTED as error:
        line = str(error)
        assert line
        assert len(line) < 500
        return None
    assert np.isfinite(points).all()
    return points


@pytest.mark.parametrize("name", REFUSED)
def test_bad_files_get_one_clear_line(name, tmp_path, capsys):
    path = tmp_path / "bad.file"
    path.write_bytes(REFUSED[name])
    assert main(["test", str(path), str(path), "--weights", "tree"]) == 2
    found = capsys.readouterr()
    assert found.out == ""
    assert found.err.startswith("crossedge: ")
    assert found.err.count("\n") == 1
    assert "Error" not in found.err
    assert str(path) in found.err or "column" in found.err


@pytest.mark.parametrize("name", READ)
def test_odd_files_are_read(name, tmp_path):
    content, rows, width = READ[name]
    path = tmp_path / "odd.file"
    path.write_bytes(content)
    points = judged(path)
    assert points is not None
    assert len(points) == 2 * rows
    assert width is None or points.shape[1] == width


@st.composite
def damaged(draw):
    """A file that was cut, overwritten, or mixed up with another one."""
    content = CONTENTS[draw(st.sampled_from(sorted(CONTENTS)))]
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(content)))
        length = draw(st.integers(1, 40))
        kind = draw(st.sampled_from(["cut", "drop", "write", "insert", "join", "flip"]))
        if kind == "cut":
            content = content[:place]
        elif kind == "drop":
            content = content[:place] + content[place + length :]
        elif kind == "write":
            content = content[:place] + draw(st.binary(max_size=40)) + content[place + length :]
        elif kind == "insert":
            content = content[:place] + draw(st.binary(max_size=40)) + content[place:]
        elif kind == "join":
            content += CONTENTS[draw(st.sampled_from(sorted(CONTENTS)))][place:]
        elif content:
            at = min(place, len(content) - 1)
            flipped = content[at] ^ (1 << draw(st.integers(0, 7)))
            content = content[:at] + bytes([flipped]) + content[at + 1 :]
    return content


BY_FILE = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@settings(suppress_health_check=BY_FILE, max_examples=200)
@given(content=damaged())
def test_damaged_files(tmp_path, content):
    (tmp_path / "damaged").write_bytes(content)
    judged(tmp_path / "damaged")


@settings(suppress_health_check=BY_FILE, max_examples=100)
@given(content=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
def test_garbage(tmp_path, content):
    (tmp_path / "garbage").write_bytes(content)
    judged(tmp_path / "garbage")


CELL = st.one_of(
    st.sampled_from(["", " ", "NA", "1", "-2.5", "1e5", "True", "x", "y z", "2024-01-01", '"a,b"']),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=4),
)


@settings(suppress_health_check=BY_FILE, max_examples=100)
@given(
    rows=st.lists(st.lists(CELL, min_size=1, max_size=4), min_size=1, max_size=8),
    separator=st.sampled_from(",;\t| "),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_texts_of_cells(tmp_path, rows, separator, end):
    (tmp_path / "x.csv").write_bytes(end.join(map(separator.join, rows)).encode())
    judged(tmp_path / "x.csv")


@pytest.mark.slow
@settings(suppress_health_check=BY_FILE, max_examples=10_000, derandomize=False)
@given(content=damaged())
def test_many_damaged_files(tmp_path, content):
    (tmp_path / "damaged").write_bytes(content)
    judged(tmp_path / "damaged")


def test_the_same_bytes_through_the_door_of_scripts(tmp_path, capsys):
    """A fault leaves nothing on the output, where a script would look for JSON."""
    (tmp_path / "x.csv").write_bytes(CONTENTS["plain"])
    assert main(["test", str(tmp_path / "x.csv"), str(tmp_path / "x.csv"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_x"] == 3
    (tmp_path / "y.csv").write_bytes(b"\x00")
    assert main(["test", str(tmp_path / "x.csv"), str(tmp_path / "y.csv"), "--json"]) == 2
    assert capsys.readouterr().out == ""
