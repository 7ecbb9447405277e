"""The bytes of a file: decompressed within a limit, and decoded if they are text.

Files are data and never code. What a file holds is told by its first bytes, not by its name.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import sys
import zlib
from pathlib import Path
from typing import IO, Any

from crossedge.runtime.headroom import GIB, free_memory
from crossedge.runtime.interrupts import checkpoint
from crossedge.runtime.lazy import what_to_install

MOST_BYTES = 2 * GIB  # of a file after decompression
SHARE_OF_MEMORY = 0.25  # of what is free, that the bytes of a file may take
CHUNK = 1 << 20  # bytes read at once
STDIN = "-"  # the name of standard input
NOT_IN_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")

MAGIC = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstandard",
    b"\x93NUMPY": "npy",
    b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip",
    b"PAR1": "parquet",
    b"ARROW1": "feather",
    b"FEA1": "an old feather file",
    b"\xd0\xcf\x11\xe0": "an old Excel file",
    b"\x89HDF": "an HDF5 file",
    b"%PDF": "a PDF",
    b"SQLite format 3": "a database",
    b"\x80\x04\x95": "a pickle",
    b"\x80\x05\x95": "a pickle",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"\x7fELF": "a program",
}
COMPRESSED = ("gzip", "bzip2", "xz", "zstandard")
READABLE = ("npy", "zip", "parquet", "feather", "text")


def read_bytes(path: Path) -> bytes:
    """Return the decompressed bytes of a file, or of standard input if the path is -."""
    if str(path) == STDIN:
        if sys.stdin is None:
            raise ValueError("standard input is closed: give a file")
        return _decompressed(sys.stdin.buffer, "standard input")
    if path.is_dir():
        raise ValueError(f"{path} is a folder: give a file, or a folder of images")
    with path.open("rb") as file:
        return _decompressed(file, str(path))


def kind_of(content: bytes) -> str:
    """Return what the first bytes say: the name of a format, or "text" if they say nothing."""
    for magic, kind in MAGIC.items():
        if content.startswith(magic):
            return kind
    return "text"


def as_utf8(content: bytes, name: str) -> bytes:
    """Return text as UTF-8, from UTF-8, UTF-16 or, if it is neither, Windows-1252 (Latin-1)."""
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if content.startswith(mark):
            return _recoded(content, encoding, name)
    content = content.removeprefix(b"\xef\xbb\xbf")
    head = content[:1000]
    if head.count(b"\x00") >= max(len(head) // 4, 1):  # every other byte of Latin text in UTF-16
        even = head[::2].count(b"\x00") > head[1::2].count(b"\x00")
        return _recoded(content, "utf-16-be" if even else "utf-16-le", name)
    if NOT_IN_TEXT.search(content):
        raise _no_text(name)
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return _recoded(content, "cp1252", name)
    return content


def check_size(needed: float, name: str) -> None:
    """Raise ValueError if the contents of a file would take more memory than is allowed."""
    limit = most_bytes()
    if needed > limit:
        raise ValueError(
            f"{name} holds more than {limit / GIB:.1f} GiB after decompression: "
            "take a part of its rows or columns"
        )


def most_bytes() -> float:
    """Return how many bytes the contents of a file may take."""
    return min(MOST_BYTES, SHARE_OF_MEMORY * free_memory())


def _recoded(content: bytes, encoding: str, name: str) -> bytes:
    try:
        utf8 = content.decode(encoding).removeprefix("\ufeff").encode()
    except UnicodeError:
        raise _no_text(name) from None
    if NOT_IN_TEXT.search(utf8):
        raise _no_text(name)
    return utf8


def _no_text(name: str) -> ValueError:
    return ValueError(
        f"{name} is no text, nor any other table: give csv, json lines, parquet, feather, xlsx, "
        "npy or npz"
    )


def _decompressed(file: IO[bytes], name: str) -> bytes:
    content = _bounded(file, name)
    kind = kind_of(content)
    if kind not in COMPRESSED:
        return _readable(content, kind, name)
    packed = io.BytesIO(content)
    try:
        content = _bounded(_opened(packed, kind, name), name)
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise ValueError(f"{name} is damaged: {line_of(error)}") from None
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "zstandard":
            raise
        raise ValueError(f"{name} is damaged: {line_of(error)}") from None
    return _readable(content, kind_of(content), name)


def _readable(content: bytes, kind: str, name: str) -> bytes:
    if kind in COMPRESSED:
        raise ValueError(f"{name} is compressed twice: unpack it")
    if kind not in READABLE:
        hint = "; a picture belongs into a folder of images" if kind == "a picture" else ""
        raise ValueError(f"{name} is {kind}: give csv, json lines, parquet, xlsx or npy{hint}")
    return content


def _opened(packed: IO[bytes], kind: str, name: str) -> IO[bytes]:
    if kind == "zstandard":
        try:
            import zstandard
        except ModuleNotFoundError as missing:
            raise ImportError(what_to_install(name, missing)) from None
        reader: Any = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
        return reader  # type: ignore[no-any-return]
    openers: dict[str, Any] = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}
    opened: IO[bytes] = openers[kind](packed)
    return opened


def _bounded(file: IO[bytes], name: str) -> bytes:
    """Read all of a file, but no more than the limit."""
    limit, parts, size = most_bytes(), [], 0
    while part := file.read(CHUNK):
        checkpoint()
        parts.append(part)
        size += len(part)
        if size > limit:
            check_size(size, name)
    return b"".join(parts)


def line_of(error: BaseException) -> str:
    """Return the first line of a message, without a full stop."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
