"""Tables in text, whose separator, names and decimal sign are told by their first rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from crossedge.data.amounts import MISSING
from crossedge.data.decimal_signs import BOTH, OPEN, sign_of, with_point, without_blanks
from crossedge.data.files import line_of
from crossedge.data.headers import HEADER_LOOKAHEAD, INTEGER, Head, is_number, names_of
from crossedge.data.spelling import as_number
from crossedge.data.stored_tables import to_pandas
from crossedge.data.table import Table, framed, numbered
from crossedge.runtime.interrupts import checkpoint

HEAD_BYTES = 1 << 18  # of a text, from which its separator and names are found
BLOCK_BYTES = 1 << 23  # of a text that is read at once; no row may be longer


def read_text(text: bytes, name: str, header: bool | None, decimal: str = "") -> Table:
    """Read a table whose separator, names and decimal sign are told by its first rows.

    A decimal sign is given by another file, for cells that leave it open.
    """
    import pyarrow as pa
    import pyarrow.csv as arrow

    start = text[:HEAD_BYTES].decode("utf-8", "ignore")
    if len(text) > HEAD_BYTES:
        start = start[: start.rfind("\n") + 1] or start
    lines = [line for line in start.splitlines() if line.strip()][: HEADER_LOOKAHEAD + 1]
    if not lines:
        raise ValueError(f"{name} has no points: give a row for each")
    separator = _separator(lines)
    if separator == " ":
        text = b"\n".join(b"\t".join(line.split()) for line in text.splitlines())
        lines, separator = ["\t".join(line.split()) for line in lines], "\t"
    rows = [[cell.strip() for cell in row] for row in _cells(lines, separator)]
    decimal, told = _decimal(rows, separator, decimal)
    if decimal == ",":
        rows = [[with_point(cell, ",") for cell in row] for row in rows]
    quoted = lines[0].count('"') == 2 * len(rows[0])
    names = names_of(name, Head(rows, quoted and len(lines) > 1 and '"' not in lines[1]), header)
    try:
        table = arrow.read_csv(
            io.BytesIO(text + b"\n"),
            arrow.ReadOptions(
                column_names=names or numbered(len(rows[0])),
                skip_rows_after_names=0 if names is None else 1,
                block_size=BLOCK_BYTES,
            ),
            arrow.ParseOptions(delimiter=separator, newlines_in_values=b'"' in text),
            arrow.ConvertOptions(
                strings_can_be_null=True, null_values=[*MISSING], decimal_point=decimal
            ),
        )
    except pa.ArrowInvalid as error:
        fault = _fault(text.decode(), separator) or line_of(error)
        raise ValueError(f"{name} is no table: {fault}") from None
    if any(_ends_a_line(column) for column in table.columns):
        raise ValueError(f"{name} is no table: it has a quote that is not closed")
    frame = to_pandas(table)
    for place, kind in enumerate(frame.dtypes):
        if kind not in ("Int64", "float64", "bool"):
            frame.isetitem(place, _mended(frame.iloc[:, place], decimal))
    return replace(framed(frame, name, names is not None), decimal=told)


def _ends_a_line(column: Any) -> bool:
    """Return whether the last cell goes on beyond its line, as after a quote that is not closed."""
    last = column[-1].as_py() if len(column) else None
    return isinstance(last, str) and last.endswith("\n")


def _separator(lines: Sequence[str]) -> str:
    """Return the separator that cuts all lines into equally many cells; a blank for blanks."""
    for separator in "\t;|,":
        widths = {len(row) for row in _cells(lines, separator)}
        if len(widths) == 1 and widths != {1}:
            return separator
    first = lines[0]
    if any(separator in first for separator in "\t;|,"):
        return max(",;\t|", key=first.count)
    words = [line.split() for line in lines]
    below = words[1:] or words
    if len(below[0]) > 1 and all(is_number(with_point(cell, ",")) for cell in below[0]):
        return " "
    if len({len(row) for row in words}) == 1 and len(words[0]) > 1:
        for column in zip(*below, strict=True):
            if all(is_number(with_point(cell, ",")) for cell in column):
                return " "
    return ","


def _cells(lines: Sequence[str], separator: str) -> list[list[str]]:
    try:
        return [row for row in csv.reader(lines, delimiter=separator) if row]
    except csv.Error:  # a cell longer than the limit of the csv module
        return [line.split(separator) for line in lines]


def _decimal(rows: Sequence[Sequence[str]], separator: str, known: str) -> tuple[str, str]:
    """Return the decimal sign, and whether the cells tell it: the sign again, OPEN or BOTH.

    Where the cells leave it open it is `known` from another file, or a comma if no cell has a
    point; unless commas separate cells, and those within quotes separate groups.
    """
    cells = [cell for row in rows for cell in row]
    told = sign_of(cells)
    if told in (",", "."):
        return told, told
    if told != OPEN:
        return ".", told
    has_point = any("." in cell and sign_of([cell]) == OPEN for cell in cells)
    return known or ("." if has_point or separator == "," else ","), told


def _mended(column: Any, decimal: str) -> Any:
    """Return numbers, if all of the text in a column is numbers once blanks and groups go.

    The column tells its decimal sign, or else the file does.
    """
    import pandas as pd

    if column.dtype.kind not in "OU" and str(column.dtype) != "str":
        return column
    codes, distinct = column.factorize()
    if not all(isinstance(value, str) for value in distinct):
        return column
    texts = [without_blanks(value.strip()) for value in distinct]
    told = sign_of(texts)
    if told == BOTH:
        return column
    sign = told if told in (",", ".") else decimal
    texts = [with_point(text, sign) for text in texts]
    numbers: list[float] = []
    for text in texts:
        number = as_number(text) if text else np.nan
        if number is None:
            return column
        numbers.append(number)
    if all(map(INTEGER.fullmatch, texts)) and max(map(abs, numbers), default=0) < 2**63:
        return pd.array([None if code < 0 else int(texts[code]) for code in codes], "Int64")
    return np.array([*numbers, np.nan])[codes]


def _fault(text: str, separator: str) -> str | None:
    """Describe the first row with too few or too many cells, and its line."""
    width = None
    try:
        reader = csv.reader(_lines(text), delimiter=separator)
        for row in reader:
            if not row or (len(row) == 1 and not row[0].strip()):
                continue
            width = width or len(row)
            if len(row) != width:
                return f"line {reader.line_num} has {len(row)} cells, not {width}"
    except csv.Error:
        return "it has a cell that is too long, perhaps after a quote that is not closed"
    if text.count('"') % 2:
        return "it has a quote that is not closed"
    return None


def _lines(text: str) -> Iterator[str]:
    """Yield each line, interruptibly."""
    for line in io.StringIO(text):
        checkpoint()
        yield line
