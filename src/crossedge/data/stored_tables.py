"""Tables in files that programs write: arrays, parquet, feather, sheets, json and images."""

from __future__ import annotations

import io
import re
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from crossedge.data.files import check_size, line_of, most_bytes
from crossedge.data.headers import HEADER_LOOKAHEAD, Head, names_of
from crossedge.data.table import FaultError, Table, check_size_of_cells, framed, numbered
from crossedge.runtime.interrupts import checkpoint
from crossedge.runtime.lazy import what_to_install

IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm", ".ppm")
INDEX_OF_PANDAS = re.compile(r"__index_level_\d+__")


def read_array(content: bytes, name: str) -> Table:
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


def read_arrays(content: bytes, name: str) -> Table:
    """Read a .npz file: one array of points, or a column in each of several arrays."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except (FaultError, MemoryError):
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


def kind_of_archive(content: bytes, name: str) -> str:
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


def read_images(folder: Path) -> Table:
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
                        raise FaultError(
                            f"{file} has {_by(image.size)} pixels, {files[0].name} has "
                            f"{_by(size)}: give images of one size"
                        )
                    check_size_of_cells(3.0 * size[0] * size[1], len(files), str(folder))
                    grey = image.mode in ("1", "L", "LA", "I", "I;16", "F")
                    mode = mode if grey else "RGB"
                    rows.append(np.asarray(image.convert("L" if grey else "RGB")))
        except (FaultError, MemoryError):
            raise
        except Exception as error:
            raise ValueError(f"{file} is no image that can be read: {line_of(error)}") from None
    if mode == "RGB":
        rows = [row if row.ndim == 3 else np.repeat(row[..., None], 3, 2) for row in rows]
    values = np.stack(rows).reshape(len(rows), -1)
    return Table(str(folder), values, tuple(map(str, range(1, values.shape[1] + 1))), named=False)


def _by(size: tuple[int, int]) -> str:
    return f"{size[0]} x {size[1]}"


def to_pandas(table: Any) -> Any:
    """Return an Arrow table as a frame, with integers as they are even if some are missing."""
    import pandas as pd
    import pyarrow as pa

    whole = {
        getattr(pa, kind.lower())(): getattr(pd, f"{kind}Dtype")()
        for kind in ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
    }
    # metadata of pandas is not looked at: it says how to rebuild an index
    return table.to_pandas(types_mapper=whole.get, ignore_metadata=True, date_as_object=False)


def read_parquet(content: bytes, name: str) -> Any:
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
    frame = to_pandas(_together(batches, file.schema_arrow, wanted))
    # kept once, they look like categories: as objects they are text again, still kept once
    return frame.astype({each: object for each in wanted if each in texts})


def _together(batches: list[Any], schema: Any, wanted: list[str]) -> Any:
    import pyarrow as pa

    if batches:
        return pa.Table.from_batches(batches).unify_dictionaries()
    return schema.empty_table().select(wanted)


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def read_feather(content: bytes, name: str) -> Any:
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
    return to_pandas(_together(batches, file.schema, wanted).select(wanted))


def read_sheet(content: bytes, name: str, header: bool | None) -> Table:
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
        raise FaultError(f"{name} has no points: give a row for each in its first sheet")
    width = max(map(len, rows))
    rows = [(*row, *[None] * (width - len(row))) for row in rows]
    head = [["" if cell is None else str(cell).strip() for cell in row] for row in rows]
    try:
        names = names_of(name, Head(head[: HEADER_LOOKAHEAD + 1]), header)
    except ValueError as error:
        raise FaultError(str(error)) from None
    below = rows if names is None else rows[1:]
    frame = pd.DataFrame(below, columns=names or numbered(width), dtype=object).infer_objects()
    return framed(frame, name, names is not None)


def read_json(text: bytes, name: str) -> Table | None:
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
        return framed(frame, name)
    if text.lstrip()[:1] == b"{" or name.endswith((".json", ".jsonl", ".ndjson")):
        raise ValueError(f"{name} is no JSON: give an object for each row, one to a line")
    return None
