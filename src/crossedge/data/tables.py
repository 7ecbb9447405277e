"""Tables in files of all common formats, read by pandas and pyarrow, for the command line."""

from __future__ import annotations

import warnings
from pathlib import Path

from crossedge.data.decimal_signs import OPEN
from crossedge.data.files import STDIN, as_utf8, kind_of, line_of, read_bytes
from crossedge.data.stored_tables import (
    kind_of_archive,
    read_array,
    read_arrays,
    read_feather,
    read_images,
    read_json,
    read_parquet,
    read_sheet,
)
from crossedge.data.table import FaultError, Table, framed
from crossedge.data.text_tables import read_text
from crossedge.runtime.lazy import what_to_install


def read_tables(x: Path, y: Path, header: bool | None = None) -> tuple[Table, Table]:
    """Read two files alike: where one leaves its decimal sign open, the other one tells it."""
    order = (y, x) if str(x) == STDIN else (x, y)  # standard input is read once, and last
    first = read_table(order[0], header)
    known = first.decimal if first.decimal in (",", ".") else ""
    second = read_table(order[1], header, known)
    if first.decimal == OPEN and second.decimal in (",", "."):
        first = read_table(order[0], header, second.decimal)
    return (second, first) if str(x) == STDIN else (first, second)


def read_table(path: Path, header: bool | None = None, decimal: str = "") -> Table:
    """Read one file or a folder of images, or raise ValueError that names the first fault.

    A decimal sign serves text that leaves it open.
    """
    name = "standard input" if str(path) == STDIN else str(path)
    if path.is_dir() and str(path) != STDIN:
        _check_no_header(header, "a folder of images")
        return read_images(path)
    content = read_bytes(path)
    if not content:
        raise ValueError(f"{name} is empty: give a row for each point")
    kind = kind_of(content)
    if kind == "zip":
        kind = kind_of_archive(content, name)
    if kind in ("npy", "npz", "parquet", "feather"):
        _check_no_header(header, kind)
    if kind == "npy":
        table = read_array(content, name)
    elif kind == "npz":
        table = read_arrays(content, name)
    else:
        table = _read_by_pandas(content, kind, name, header, decimal)
    if not len(table) or not table.names:
        raise ValueError(f"{name} has no points: give a row for each")
    return table


def _check_no_header(header: bool | None, kind: str) -> None:
    if header is not None:
        option = "--header" if header else "--no-header"
        raise ValueError(f"{option} is for text and sheets, not for {kind}: leave it out")


def _read_by_pandas(
    content: bytes, kind: str, name: str, header: bool | None, decimal: str
) -> Table:
    try:
        import pandas  # noqa: F401
        import pyarrow  # noqa: F401
    except ModuleNotFoundError as missing:
        raise ImportError(what_to_install(name, missing)) from None
    if kind in ("parquet", "feather", "xlsx"):
        readers = {"parquet": read_parquet, "feather": read_feather}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about styles and the like
                if kind == "xlsx":
                    return read_sheet(content, name, header)
                return framed(readers[kind](content, name), name)
        except (FaultError, MemoryError, ImportError):
            raise
        except Exception as error:  # parsers of damaged files raise anything
            raise ValueError(f"{name} is a damaged {kind} file: {line_of(error)}") from None
    text = as_utf8(content, name)
    if text.lstrip()[:1] in (b"{", b"["):
        table = read_json(text, name)
        if table is not None:
            _check_no_header(header, "json")
            return table
    return read_text(text, name, header, decimal)
