"""One small table in all formats that can be read."""

import bz2
import gzip
import io
import lzma

import pandas as pd
import zstandard

TABLE = pd.DataFrame(
    {
        "size": [1.5, 2.5, None],
        "count": [1, 2, 3],
        "name": ["ä", "b", None],
        "ok": [True, False, True],
    }
)


def csv_of(frame, **options):
    return frame.to_csv(index=False, **options).encode(options.pop("encoding", "utf-8"))


def packed_by(function, *arguments, **options):
    stream = io.BytesIO()
    function(stream, *arguments, **options)
    return stream.getvalue()


FORMATS = {
    "plain": lambda: csv_of(TABLE),
    "tabs": lambda: csv_of(TABLE, sep="\t"),
    "decimal commas": lambda: csv_of(TABLE, sep=";", decimal=","),
    "utf-8 with a mark": lambda: TABLE.to_csv(index=False).encode("utf-8-sig"),
    "utf-16": lambda: TABLE.to_csv(index=False).encode("utf-16"),
    "utf-16 without a mark": lambda: TABLE.to_csv(index=False).encode("utf-16-le"),
    "utf-16, the other way": lambda: TABLE.to_csv(index=False).encode("utf-16-be"),
    "latin-1": lambda: TABLE.to_csv(index=False).encode("latin-1"),
    "gz": lambda: gzip.compress(csv_of(TABLE)),
    "bz2": lambda: bz2.compress(csv_of(TABLE)),
    "xz": lambda: lzma.compress(csv_of(TABLE)),
    "zst": lambda: zstandard.compress(csv_of(TABLE)),
    "json lines": lambda: TABLE.to_json(orient="records", lines=True).encode(),
    "json": lambda: TABLE.to_json(orient="records").encode(),
    "json columns": lambda: TABLE.to_json(indent=2).encode(),
    "parquet": lambda: packed_by(lambda out: TABLE.to_parquet(out)),
    "parquet, another index": lambda: packed_by(
        lambda out: TABLE.set_axis([5, 7, 6]).to_parquet(out)
    ),
    "feather": lambda: packed_by(lambda out: TABLE.to_feather(out)),
    "feather, plain": lambda: packed_by(
        lambda out: TABLE.to_feather(out, compression="uncompressed")
    ),
    "xlsx": lambda: packed_by(lambda out: TABLE.to_excel(out, index=False)),
}
