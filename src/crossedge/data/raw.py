"""One column of one sample as arrays, from pandas, polars, numpy and plain lists."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crossedge.runtime.types import Bools, Floats, Ints

LARGEST_INTEGER = 2**53  # beyond it, not all integers are doubles
SECONDS_PER_DAY = 86_400


class Raw(NamedTuple):
    """One column of one sample, or of both, as arrays."""

    kind: str  # "number", "date", "boolean", "text" or "empty"
    values: npt.NDArray[Any]  # doubles, days, booleans or places in `texts`; any where missing
    missing: Bools
    whole: bool = False  # whether the numbers have a type of integers
    texts: tuple[str, ...] = ()  # the distinct texts, without blanks at their ends
    is_category: bool = False  # whether the type of a column says so, also of texts like numbers
    unit: str = ""  # that all numbers had in text, such as kg or $
    decimal: str = ""  # the decimal sign that they told, as in `decimal_signs`

    def rows(self, kept: Ints) -> Raw:
        """Return some rows of the column."""
        return self._replace(values=self.values[kept], missing=self.missing[kept])


def read_column(column: Any, name: str, sample: str) -> Raw:
    """Return a column as arrays, or raise TypeError or ValueError."""
    where = f"column {name!r} of {sample}"
    if type(column).__module__.partition(".")[0] == "polars":
        return _raw_polars(column, where)
    if hasattr(column, "isna") and hasattr(column, "dtype"):
        return _raw_pandas(column, where)
    values = np.asarray(column)
    if values.ndim != 1:
        raise ValueError(f"{where} has {values.ndim} dimensions: give one value for each row")
    if values.dtype.kind in "biuf":
        missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), np.bool_)
        return _of_kind(values.dtype.kind, values, missing, where)
    if values.dtype.kind in "Mm":
        return Raw("date", _days(values), np.isnat(values))
    return _of_objects(*_factorized(values.tolist(), where), where)


def _raw_pandas(column: Any, where: str) -> Raw:
    kind = getattr(column.dtype, "kind", "O")
    if kind in "iuf" and column.dtype.name != "category":
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        missing = np.isnan(values)
        if kind in "iu" and (np.abs(values) >= LARGEST_INTEGER).any():
            _check_integers(column.min(), column.max(), where)
        return _of_kind(kind, values, missing, where, checked=True)
    missing = np.asarray(column.isna(), np.bool_)
    if kind == "b":
        return Raw("boolean", column.to_numpy(dtype=np.bool_, na_value=False), missing)
    if kind in "Mm":
        unit = "datetime64[us]" if kind == "M" else "timedelta64[us]"
        return Raw("date", _days(column.to_numpy(dtype=unit)), missing)
    try:
        codes, distinct = column.factorize()
    except TypeError:
        raise TypeError(_NESTED.format(where)) from None
    if column.dtype.name == "category":  # somebody says so, also of numbers
        made = of_texts(codes, missing, [spelt(value) for value in distinct])
        return made._replace(is_category=True)
    return _of_objects(codes, list(distinct), where)


def _raw_polars(column: Any, where: str) -> Raw:
    missing = np.asarray(column.is_null().to_numpy(), np.bool_)
    kind = str(column.dtype).partition("(")[0]
    if column.dtype.is_numeric():
        whole = column.dtype.is_integer()
        if whole:
            _check_integers(column.min(), column.max(), where)
        values = column.cast(float).to_numpy()
        missing = missing | np.isnan(values)
        return _of_kind("i" if whole else "f", values, missing, where, checked=True)
    if kind == "Boolean":
        return Raw("boolean", column.fill_null(False).to_numpy(), missing)
    if kind in ("Date", "Datetime", "Duration"):
        return Raw("date", _days(column.to_numpy()), missing)
    made = _of_objects(*_factorized(column.to_list(), where), where)
    return made._replace(is_category=kind in ("Categorical", "Enum"))


_NESTED = "{} holds lists or dictionaries: give one value for each cell, or drop the column"


def _factorized(values: list[Any], where: str) -> tuple[Ints, list[Any]]:
    """Return the distinct values, and for each value its place among them; -1 for None."""
    places: dict[Any, int] = {}
    try:
        codes = [-1 if v is None else places.setdefault(v, len(places)) for v in values]
    except TypeError:
        raise TypeError(_NESTED.format(where)) from None
    return np.array(codes, np.int64), list(places)


def _of_kind(
    kind: str, values: npt.NDArray[Any], missing: Bools, where: str, checked: bool = False
) -> Raw:
    """Return numbers or booleans by the letter of their numpy type."""
    if kind == "b":
        return Raw("boolean", values, missing)
    if kind in "iu" and not checked and values.size:
        _check_integers(values.min(), values.max(), where)
    values = values.astype(np.float64, copy=False)
    infinite = np.isinf(values)
    if infinite.any():
        row = int(np.flatnonzero(infinite)[0])
        raise ValueError(f"{where} has infinity in row {row + 1}: drop such rows or fill them")
    return Raw("empty" if missing.all() else "number", values, missing, kind in "iu")


def _check_integers(least: Any, most: Any, where: str) -> None:
    """Raise ValueError if integers in this range are not all doubles."""
    for value in (least, most):
        try:
            size = abs(int(value))
        except (TypeError, ValueError):  # no values at all
            continue
        if size > LARGEST_INTEGER:
            raise ValueError(
                f"{where} has integers beyond 2^53, which lose digits as floating point numbers: "
                "subtract a common offset first, or drop the column"
            )


def _days(values: npt.NDArray[Any]) -> Floats:
    """Return dates as days since 1970, and durations as days."""
    fine = values.astype(f"{values.dtype.kind}8[us]").astype(np.int64)
    days: Floats = fine / (1e6 * SECONDS_PER_DAY)
    return days


def _of_objects(codes: Ints, distinct: list[Any], where: str) -> Raw:
    """Return a column of objects by what they are: places of distinct values, -1 where missing."""
    missing = codes < 0
    kinds = {_kind_of(value, where) for value in distinct}
    if not kinds:
        return Raw("empty", codes, missing)
    if kinds <= {"boolean"}:
        return Raw("boolean", np.array([*map(bool, distinct), False])[codes], missing)
    if kinds <= {"number", "boolean"}:
        numbers = np.array([*(_double(value, where) for value in distinct), np.nan])[codes]
        whole = all(isinstance(value, int | np.integer) for value in distinct)
        return _of_kind("i" if whole else "f", numbers, np.isnan(numbers), where, checked=True)
    if kinds == {"date"}:
        return Raw("date", np.array([*map(day_of, distinct), np.nan])[codes], missing)
    if "date" in kinds:
        raise TypeError(f"{where} holds dates and other values: give one kind, or drop the column")
    return of_texts(codes, missing, [spelt(value) for value in distinct])


def of_texts(codes: Ints, missing: Bools, texts: Sequence[str]) -> Raw:
    """Return text, given as places in a list that may name a text twice; empty text is missing."""
    places: dict[str, int] = {}
    table = [places.setdefault(text, len(places)) if text else -1 for text in texts]
    codes = np.where(missing, -1, np.array([*table, -1])[codes])
    return Raw("text" if places else "empty", codes, codes < 0, texts=tuple(places))


def _kind_of(value: Any, where: str) -> str:
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool | np.bool_):
        return "boolean"
    if isinstance(value, Real | Decimal | Fraction | np.number) and not isinstance(value, complex):
        return "number"
    if isinstance(value, date | time | timedelta):
        return "date"
    raise TypeError(
        f"{where} holds {type(value).__name__}: give numbers, text, dates or booleans, "
        "or drop the column"
    )


def _double(value: Any, where: str) -> float:
    if isinstance(value, int | np.integer):
        _check_integers(value, value, where)
    try:
        return float(value)
    except (OverflowError, ValueError):
        raise ValueError(f"{where} has numbers beyond the range of doubles: rescale it") from None


def day_of(value: date | time | timedelta) -> float:
    """Return a date as days since 1970, a time of the day or a duration as days."""
    if isinstance(value, timedelta):
        return value.total_seconds() / SECONDS_PER_DAY
    if isinstance(value, time):
        seconds = 3600 * value.hour + 60 * value.minute + value.second + value.microsecond / 1e6
        return seconds / SECONDS_PER_DAY
    if not isinstance(value, datetime):
        return float(value.toordinal() - date(1970, 1, 1).toordinal())
    aware = value if value.tzinfo else value.replace(tzinfo=UTC)
    return (aware - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() / SECONDS_PER_DAY


def spelt(value: Any) -> str:
    """Return text without blanks at its ends, and numbers as a file would have them."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, date | time | timedelta):
        return str(value)
    number = float(value)
    if not math.isfinite(number):
        return ""
    return str(int(number)) if number.is_integer() else repr(number)


def spelt_cells(column: Any, name: str) -> list[str]:
    """Return the cells of a column as text, with numbers as a file has them; "" if missing."""
    raw = read_column(column, name, "the table")
    if raw.kind == "empty":
        return [""] * len(raw.missing)
    if raw.kind != "text":
        distinct, codes = np.unique(raw.values, return_inverse=True)
        texts = [spelt(value) for value in distinct.tolist()]
    else:
        codes, texts = raw.values, list(raw.texts)
    table = [*texts, ""]
    return [table[code] for code in np.where(raw.missing, -1, codes).tolist()]
