"""Tables in files of all common formats, read by pandas and pyarrow, for the command line."""

from __future__ import annotations

import csv
import io
import re
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from crossedge.data.columns import as_number
from crossedge.data.files import (
    STDIN,
    as_utf8,
    check_size,
    kind_of,
    line_of,
    most_bytes,
    read_bytes,
)
from crossedge.data.headers import HEADER_LOOKAHEAD, INTEGER, Head, is_number, names_of
from crossedge.runtime.interrupts import checkpoint
from crossedge.runtime.lazy import what_to_install
from crossedge.runtime.types import Bools, Ints

DECIMAL_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+")
DECIMAL_POINT = re.compile(r"[+-]?(\d+|\d{1,3}(,\d{3})+)\.\d+")
THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
HEAD_BYTES = 1 << 18  # of a text, from which its separator and names are found
BLOCK_BYTES = 1 << 23  # of a text that is read at once; no row may be longer
BYTES_PER_CELL = 8
IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm", ".ppm")
INDEX_OF_PANDAS = re.compile(r"__index_level_\d+__")
# texts that stand for a missing value
MISSING = ["", " ", "#N/A", "#NA", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"]


@dataclass(frozen=True)
class Table:
    """The contents of a file, which `two_sample` takes like a frame."""

    source: str  # the name of the file
    values: Any  # a pandas frame, or an (n, d) array
    names: tuple[str, ...]
    named: bool  # whether the file names its columns; otherwise they are "1", "2", ...

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.names

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, name: str) -> Any:
        """Return a column."""
        place = self.names.index(name)
        is_array = isinstance(self.values, np.ndarray)
        return self.values[:, place] if is_array else self.values.iloc[:, place]

    def with_rows(self, rows: Ints | Bools) -> Table:
        """Return some of the rows."""
        is_array = isinstance(self.values, np.ndarray)
        return replace(self, values=self.values[rows] if is_array else self.values.iloc[rows])

    def with_columns(self, names: Sequence[str]) -> Table:
        """Return some of the columns, in the order of the names."""
        places = [self.names.index(name) for name in names]
        is_array = isinstance(self.values, np.ndarray)
        values = self.values[:, places] if is_array else self.values.iloc[:, places]
        return replace(self, values=values, names=tuple(names))


def matched(x: Table, y: Table) -> tuple[Table, Table]:
    """Return two tables with the same columns in the same order, or raise ValueError.

    Columns are matched by name if both tables have names, and by position otherwise.
    """
    if x.named and y.named:
        for one, other in ((x, y), (y, x)):
            strangers = [name for name in one.names if name not in other.names]
            if strangers:
                raise ValueError(
                    f"{one.source} has a column {strangers[0]!r} that {other.source} lacks: "
                    "both must have the same columns (choose some by --columns or --drop)"
                )
        return x, y.with_columns(x.names)
    if len(x.names) != len(y.names):
        raise ValueError(
            f"{y.source} has {len(y.names)} columns, {x.source} has {len(x.names)}: "
            "both must have the same columns"
        )
    names = x.names if x.named else y.names
    return replace(x, names=names), replace(y, names=names)


def read_table(path: Path, header: bool | None = None) -> Table:
    """Read one file or a folder of images, or raise ValueError that names the first fault."""
    name = "standard input" if str(path) == STDIN else str(path)
    if path.is_dir() and str(path) != STDIN:
        _check_no_header(header, "a folder of images")
        return _read_images(path)
    content = read_bytes(path)
    if not content:
        raise ValueError(f"{name} is empty: give a row for each point")
    kind = kind_of(content)
    if kind == "zip":
        kind = _kind_of_archive(content, name)
    if kind in ("npy", "npz", "parquet", "feather"):
        _check_no_header(header, kind)
    if kind == "npy":
        table = _read_array(content, name)
    elif kind == "npz":
        table = _read_arrays(content, name)
    else:
        table = _read_by_pandas(content, kind, name, header)
    if not len(table) or not table.names:
        raise ValueError(f"{name} has no points: give a row for each")
    return table


def _check_no_header(header: bool | None, kind: str) -> None:
    if header is not None:
        option = "--header" if header else "--no-header"
        raise ValueError(f"{option} is for text and sheets, not for {kind}: leave it out")


def _read_by_pandas(content: bytes, kind: str, name: str, header: bool | None) -> Table:
    try:
        import pandas  # noqa: F401
        import pyarrow  # noqa: F401
    except ModuleNotFoundError as missing:
        raise ImportError(what_to_install(name, missing)) from None
    if kind in ("parquet", "feather", "xlsx"):
        readers = {"parquet": _read_parquet, "feather": _read_feather}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about styles and the like
                if kind == "xlsx":
                    return _read_sheet(content, name, header)
                return _framed(readers[kind](content, name), name)
        except (_FaultError, MemoryError, ImportError):
            raise
        except Exception as error:  # parsers of damaged files raise anything
            raise ValueError(f"{name} is a damaged {kind} file: {line_of(error)}") from None
    text = as_utf8(content, name)
    if text.lstrip()[:1] in (b"{", b"["):
        table = _read_json(text, name)
        if table is not None:
            _check_no_header(header, "json")
            return table
    return _read_text(text, name, header)


class _FaultError(ValueError):
    """A fault of a file that has been put into words."""


# Arrays and images


def _read_array(content: bytes, name: str) -> Table:
    """Read a .npy file as (n, d) doubles."""
    try:
        array = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    except (ValueError, EOFError, SyntaxError, TypeError, OverflowError, MemoryError):
        array = None
    return _of_array(array, name)


def _of_array(array: Any, name: str) -> Table:
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
        raise ValueError(f"{name} is no array of numbers: save one by numpy.save")
    if array.ndim not in (1, 2) or not array.size:
        raise ValueError(f"{name} has shape {array.shape}: give a row for each point, (n, d)")
    values = array.reshape(len(array), -1)
    return Table(name, values, tuple(map(str, range(1, values.shape[1] + 1))), named=False)


def _read_arrays(content: bytes, name: str) -> Table:
    """Read a .npz file: one array of points, or a column in each of several arrays."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except (_FaultError, MemoryError):
        raise
    except Exception:
        raise ValueError(f"{name} is no archive of arrays: save one by numpy.savez") from None
    if len(arrays) == 1:
        return _of_array(next(iter(arrays.values())), name)
    shapes = {array.shape for array in arrays.values()}
    kinds = {array.dtype.kind for array in arrays.values()}
    if len(shapes) != 1 or len(*shapes) != 1 or not kinds <= set("biuf"):
        listed = ", ".join(f"{key} {array.shape}" for key, array in list(arrays.items())[:5])
        raise ValueError(f"{name} holds {listed}: give one array, or columns of equal length")
    return Table(name, np.stack([*arrays.values()], 1), tuple(arrays), named=True)


def _kind_of_archive(content: bytes, name: str) -> str:
    """Tell a workbook from an archive of arrays, and refuse what is too large."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise ValueError(f"{name} is damaged: {line_of(error)}") from None
    check_size(sum(member.file_size for member in members), name)
    names = [member.filename for member in members]
    if names and all(each.endswith(".npy") for each in names):
        return "npz"
    if "xl/workbook.xml" in names:
        return "xlsx"
    raise ValueError(f"{name} is an archive without a table: unpack it")


def _read_images(folder: Path) -> Table:
    """Read all images of a folder, of one size, as rows of grey or colour values."""
    files = sorted(file for file in folder.iterdir() if file.suffix.lower() in IMAGES)
    if not files:
        raise ValueError(f"{folder} has no images: give a file, or a folder of png or jpg files")
    try:
        from PIL import Image
    except ModuleNotFoundError as missing:
        raise ImportError(what_to_install(str(folder), missing)) from None
    rows: list[Any] = []
    mode, size = "L", None
    for file in files:
        checkpoint()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with Image.open(file) as image:
                    size = size or image.size
                    if image.size != size:
                        raise _FaultError(
                            f"{file} has {_by(image.size)} pixels, {files[0].name} has "
                            f"{_by(size)}: give images of one size"
                        )
                    check_size_of_cells(3.0 * size[0] * size[1], len(files), str(folder))
                    grey = image.mode in ("1", "L", "LA", "I", "I;16", "F")
                    mode = mode if grey else "RGB"
                    rows.append(np.asarray(image.convert("L" if grey else "RGB")))
        except (_FaultError, MemoryError):
            raise
        except Exception as error:
            raise ValueError(f"{file} is no image that can be read: {line_of(error)}") from None
    if mode == "RGB":
        rows = [row if row.ndim == 3 else np.repeat(row[..., None], 3, 2) for row in rows]
    values = np.stack(rows).reshape(len(rows), -1)
    return Table(str(folder), values, tuple(map(str, range(1, values.shape[1] + 1))), named=False)


def _by(size: tuple[int, int]) -> str:
    return f"{size[0]} x {size[1]}"


# Frames


def _framed(frame: Any, name: str, named: bool = True) -> Table:
    """Return a frame as a table."""
    names = tuple(map(str, frame.columns))
    if len(set(names)) < len(names):
        raise _FaultError(f"{name} has two columns of the same name: rename one of them")
    return Table(name, frame, names, named)


def _to_pandas(table: Any) -> Any:
    """Return an Arrow table as a frame, with integers as they are even if some are missing."""
    import pandas as pd
    import pyarrow as pa

    whole = {
        getattr(pa, kind.lower())(): getattr(pd, f"{kind}Dtype")()
        for kind in ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
    }
    # metadata of pandas is not looked at: it says how to rebuild an index
    return table.to_pandas(types_mapper=whole.get, ignore_metadata=True, date_as_object=False)


def _read_parquet(content: bytes, name: str) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    source = pa.BufferReader(content)
    schema = parquet.read_schema(source)
    texts = [field.name for field in schema if _is_text(field.type)]
    file = parquet.ParquetFile(source, read_dictionary=texts)  # repeated texts are kept once
    rows, columns = file.metadata.num_rows, file.metadata.num_columns
    check_size_of_cells(rows, columns, name)
    wanted = [each for each in schema.names if not INDEX_OF_PANDAS.fullmatch(each)]
    batches, size = [], 0
    for batch in file.iter_batches(1 << 16, columns=wanted):
        checkpoint()
        batches.append(batch)
        size += batch.nbytes
        if size > most_bytes():
            check_size_of_cells(size, 1, name)
    return _to_pandas(_together(batches, file.schema_arrow, wanted))


def _together(batches: list[Any], schema: Any, wanted: list[str]) -> Any:
    import pyarrow as pa

    if batches:
        return pa.Table.from_batches(batches).unify_dictionaries()
    return schema.empty_table().select(wanted)


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _read_feather(content: bytes, name: str) -> Any:
    import pyarrow as pa

    file = pa.ipc.open_file(pa.BufferReader(content))
    batches, size = [], 0
    for place in range(file.num_record_batches):
        checkpoint()
        batch = file.get_batch(place)
        batch.validate(full=True)
        batches.append(batch)
        size += batch.nbytes
        if size > most_bytes():
            check_size_of_cells(size, 1, name)
    wanted = [each for each in file.schema.names if not INDEX_OF_PANDAS.fullmatch(each)]
    return _to_pandas(_together(batches, file.schema, wanted).select(wanted))


def check_size_of_cells(rows: float, columns: float, name: str) -> None:
    """Raise a fault if so many cells are too large."""
    try:
        check_size(BYTES_PER_CELL * float(rows) * columns, name)
    except ValueError as error:
        raise _FaultError(str(error)) from None


def _read_sheet(content: bytes, name: str, header: bool | None) -> Table:
    """Read the first sheet of a workbook."""
    import openpyxl
    import pandas as pd

    book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
    rows, cells = [], 0
    for row in book.worksheets[0].iter_rows(values_only=True):
        checkpoint()
        cells += len(row)
        check_size_of_cells(cells, 1, name)
        if any(cell is not None for cell in row):
            rows.append(row)
    book.close()
    if not rows:
        raise _FaultError(f"{name} has no points: give a row for each in its first sheet")
    width = max(map(len, rows))
    rows = [(*row, *[None] * (width - len(row))) for row in rows]
    head = [["" if cell is None else str(cell).strip() for cell in row] for row in rows]
    try:
        names = names_of(name, Head(head[: HEADER_LOOKAHEAD + 1]), header)
    except ValueError as error:
        raise _FaultError(str(error)) from None
    below = rows if names is None else rows[1:]
    frame = pd.DataFrame(below, columns=names or _numbered(width), dtype=object).infer_objects()
    return _framed(frame, name, names is not None)


def _numbered(width: int) -> list[str]:
    return [str(place) for place in range(1, width + 1)]


def _read_json(text: bytes, name: str) -> Table | None:
    """Read objects, one to a line or in a list; None if the text is no JSON."""
    import pandas as pd

    ways = [True, False] if text.lstrip()[:1] == b"{" else [False]
    for lines in ways:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                frame = pd.read_json(
                    io.BytesIO(text), lines=lines, dtype=False, convert_dates=False
                )
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError, OverflowError):
            continue
        return _framed(frame, name)
    if text.lstrip()[:1] == b"{" or name.endswith((".json", ".jsonl", ".ndjson")):
        raise ValueError(f"{name} is no JSON: give an object for each row, one to a line")
    return None


# Text


def _read_text(text: bytes, name: str, header: bool | None) -> Table:
    """Read a table whose separator, names and decimal sign are told by its first rows."""
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
    decimal = _decimal(rows, separator)
    if decimal == ",":
        rows = [[_with_point(cell) for cell in row] for row in rows]
    quoted = lines[0].count('"') == 2 * len(rows[0])
    names = names_of(name, Head(rows, quoted and len(lines) > 1 and '"' not in lines[1]), header)
    try:
        table = arrow.read_csv(
            io.BytesIO(text + b"\n"),
            arrow.ReadOptions(
                column_names=names or _numbered(len(rows[0])),
                skip_rows_after_names=0 if names is None else 1,
                block_size=BLOCK_BYTES,
            ),
            arrow.ParseOptions(delimiter=separator, newlines_in_values=b'"' in text),
            arrow.ConvertOptions(
                strings_can_be_null=True, null_values=MISSING, decimal_point=decimal
            ),
        )
    except pa.ArrowInvalid as error:
        fault = _fault(text.decode(), separator) or line_of(error)
        raise ValueError(f"{name} is no table: {fault}") from None
    if any(_ends_a_line(column) for column in table.columns):
        raise ValueError(f"{name} is no table: it has a quote that is not closed")
    frame = _to_pandas(table)
    for place, kind in enumerate(frame.dtypes):
        if kind not in ("Int64", "float64", "bool"):
            frame.isetitem(place, _mended(frame.iloc[:, place], decimal))
    return _framed(frame, name, names is not None)


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
    if len(below[0]) > 1 and all(is_number(_with_point(cell)) for cell in below[0]):
        return " "
    if len({len(row) for row in words}) == 1 and len(words[0]) > 1:
        for column in zip(*below, strict=True):
            if all(is_number(_with_point(cell)) for cell in column):
                return " "
    return ","


def _cells(lines: Sequence[str], separator: str) -> list[list[str]]:
    try:
        return [row for row in csv.reader(lines, delimiter=separator) if row]
    except csv.Error:  # a cell longer than the limit of the csv module
        return [line.split(separator) for line in lines]


def _decimal(rows: Sequence[Sequence[str]], separator: str) -> str:
    """Return a comma if some cells are numbers with a decimal comma, and none with a point."""
    cells = [cell for row in rows for cell in row]
    commas = [cell for cell in cells if DECIMAL_COMMA.fullmatch(cell)]
    if not commas or any(DECIMAL_POINT.fullmatch(cell) for cell in cells):
        return "."
    if separator == "," and all(THOUSANDS.fullmatch(cell) for cell in commas):
        return "."
    return ","


def _with_point(cell: str) -> str:
    """Return a number with a decimal comma as one with a point."""
    is_number = DECIMAL_COMMA.fullmatch(cell)
    return cell.replace(".", "").replace(",", ".") if is_number else cell


def _mended(column: Any, decimal: str) -> Any:
    """Return numbers, if all of the text in a column is numbers once blanks and groups go."""
    import pandas as pd

    if column.dtype.kind not in "OU" and str(column.dtype) != "str":
        return column
    codes, distinct = column.factorize()
    numbers: list[float] = []
    texts: list[str] = []
    for value in distinct:
        if not isinstance(value, str):
            return column
        text = value.strip()
        if decimal == ",":
            text = _with_point(text)
        elif THOUSANDS.fullmatch(text):
            text = text.replace(",", "")
        number = as_number(text) if text else np.nan
        if number is None:
            return column
        numbers.append(number)
        texts.append(text)
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
