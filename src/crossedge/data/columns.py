"""Columns of any kind turned into points: numbers, dates, booleans, categories, missing values.

Every decision is taken on the pooled sample, without regard to which row is from which sample, so
that p-values by labellings stay valid. All coordinates are on one footing: a scaled number has
spread 1, so two of them differ by about sqrt(2), and two different categories are sqrt(2) apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crossedge.runtime.headroom import check_bytes
from crossedge.runtime.interrupts import checkpoint
from crossedge.runtime.types import Bools, Floats, Ints

SCALES = ("none", "std", "robust", "rank")
QUARTILES_OF_A_NORMAL = 1.3489795003921634  # interquartile range over standard deviation
APART = math.sqrt(2)  # root mean square difference of two numbers of spread 1
LARGEST_INTEGER = 2**53  # beyond it, not all integers are doubles
SECONDS_PER_DAY = 86_400
MOST_CATEGORIES = 50  # more distinct texts than these must be a small share of the rows
MOST_SHARE = 0.05  # of the rows, for distinct texts beyond MOST_CATEGORIES
MOST_COORDINATES = 1000  # one column makes at most this many
FEW_ROWS = 20  # up to this many rows, distinct values in sequence may be there by chance
FEW_NUMBERS = 20  # a text column with more distinct numbers is a number column with faults
SHOWN_NAMES = 3  # in a message
LEFT_OUT = "left out: "


@dataclass(frozen=True)
class Column:
    """What was done to one column of a table.

    Attributes
    ----------
    name : str
        The name of the column.
    kind : {"number", "date", "boolean", "category", "empty"}
        What the column holds.
    treatment : str
        What was done to it, in words.
    outputs : tuple of str
        The names of the coordinates of the points that it became; empty if it was left out.
    missing : int
        The number of missing values, over both samples.
    """

    name: str
    kind: str
    treatment: str
    outputs: tuple[str, ...] = ()
    missing: int = 0


class Encoded(NamedTuple):
    """Points made of the columns of two tables, and how they were made."""

    points: Floats  # (n, d), the rows of x first
    columns: tuple[Column, ...]
    cautions: tuple[str, ...]  # what was left out, one line each
    raws: tuple[Raw, ...]  # the pooled columns in their own units, in the order of `columns`


class Raw(NamedTuple):
    """One column of one sample, or of both, as arrays."""

    kind: str  # "number", "date", "boolean", "text" or "empty"
    values: npt.NDArray[Any]  # doubles, days, booleans or places in `texts`; any where missing
    missing: Bools
    whole: bool = False  # whether the numbers have a type of integers
    texts: tuple[str, ...] = ()  # the distinct texts, without blanks at their ends

    def rows(self, kept: Ints) -> Raw:
        """Return some rows of the column."""
        return self._replace(values=self.values[kept], missing=self.missing[kept])


class _Made(NamedTuple):
    column: Column
    coordinates: list[Floats]


def check_scale(scale: object) -> None:
    """Raise ValueError unless the scale is None or the name of one."""
    if scale is not None and scale not in SCALES:
        names = ", ".join(map(repr, SCALES))
        raise ValueError(f"scale={scale!r} is unknown: give one of {names}, or None")


def encode(x: Any, y: Any, names: Sequence[Any], scale: str) -> Encoded:
    """Turn two tables into points, column by column.

    A table gives a column for a name: x[name]. Both have all the names.
    """
    pooled = (
        (
            str(name),
            join(
                read_column(x[name], str(name), "x"),
                read_column(y[name], str(name), "y"),
                str(name),
            ),
        )
        for name in names
    )
    return encode_pooled(pooled, len(names), scale)


def encode_pooled(columns: Iterable[tuple[str, Raw]], count: int, scale: str) -> Encoded:
    """Turn so many columns, each with its name, into points."""
    made: list[_Made] = []
    raws: list[Raw] = []
    height = 0
    for name, column in columns:
        checkpoint()
        height = len(column.missing)
        made.append(_coordinates(column, name, scale, alone=count == 1))
        raws.append(column)
    described = tuple(each.column for each in made)
    if not any(column.outputs for column in described):
        reasons = "; ".join(
            f"{column.name!r} is {column.treatment}" for column in described[:SHOWN_NAMES]
        )
        raise ValueError(f"no column is left to compare ({reasons}): give one that varies")
    width = sum(len(each.coordinates) for each in made)
    check_bytes(16.0 * height * width, f"{height:,} points in {width} dimensions", "drop columns")
    points = np.empty((height, width))
    place = 0
    for each in made:
        for coordinate in each.coordinates:
            points[:, place] = coordinate
            place += 1
        each.coordinates.clear()
    return Encoded(points, described, tuple(left_out_lines(described)), tuple(raws))


def identifiers(x: Any, y: Any, names: Sequence[Any]) -> list[Column]:
    """Return the columns that number or name the rows and say nothing else."""
    if len(names) == 1:
        return []
    found = []
    for name in names:
        shown = str(name)
        joined = join(read_column(x[name], shown, "x"), read_column(y[name], shown, "y"), shown)
        if _numbers_rows(joined):
            found.append(_identifier(shown, "number"))
        elif joined.kind == "text" and _names_rows(joined):
            found.append(_identifier(shown, "category"))
    return found


def spelt_cells(column: Any, name: str) -> list[str]:
    """Return the cells of a column as text, with numbers as a file has them; "" if missing."""
    raw = read_column(column, name, "the table")
    if raw.kind == "empty":
        return [""] * len(raw.missing)
    if raw.kind != "text":
        distinct, codes = np.unique(raw.values, return_inverse=True)
        texts = [_spelt(value) for value in distinct.tolist()]
    else:
        codes, texts = raw.values, list(raw.texts)
    table = [*texts, ""]
    return [table[code] for code in np.where(raw.missing, -1, codes).tolist()]


def show_columns(columns: Iterable[Column]) -> str:
    """Return a table of what was done to each column, one line each."""
    rows = [(printable(column.name), column.kind, column.treatment) for column in columns]
    width = max((len(name) for name, _, _ in rows), default=0)
    return "\n".join(f"  {name:<{width}}  {kind:<8}  {done}" for name, kind, done in rows)


def printable(text: str) -> str:
    """Return text on one line, without characters that would move a cursor."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))


def left_out_lines(columns: Sequence[Column]) -> Iterable[str]:
    """Yield one line for each reason for which columns were left out."""
    reasons: dict[str, list[str]] = {}
    for column in columns:
        if not column.outputs:
            reason = column.treatment.removeprefix(LEFT_OUT).partition(",")[0]
            reasons.setdefault(reason, []).append(column.name)
    for reason, names in reasons.items():
        more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
        shown = ", ".join(map(repr, names[:SHOWN_NAMES])) + more
        one = len(names) == 1
        yield f"column{'' if one else 's'} {shown} {'is' if one else 'are'} left out: {reason}"


# From columns of pandas, polars and numpy to arrays


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
        return _of_texts(codes, missing, [_spelt(value) for value in distinct])
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
    return _of_objects(*_factorized(column.to_list(), where), where)


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
        return Raw("date", np.array([*map(_day_of, distinct), np.nan])[codes], missing)
    if "date" in kinds:
        raise TypeError(f"{where} holds dates and other values: give one kind, or drop the column")
    return _of_texts(codes, missing, [_spelt(value) for value in distinct])


def _of_texts(codes: Ints, missing: Bools, texts: Sequence[str]) -> Raw:
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


def _day_of(value: date | time | timedelta) -> float:
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


def _spelt(value: Any) -> str:
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


# The two samples of a column together


def join(x: Raw, y: Raw, name: str) -> Raw:
    """Return the pooled column, of the kind that serves both samples."""
    missing = np.concatenate([x.missing, y.missing])
    kinds = {x.kind, y.kind} - {"empty"}
    if not kinds:
        return Raw("empty", np.zeros(len(missing)), missing)
    if kinds == {"number", "boolean"}:
        kinds = {"number"}
    if kinds == {"date", "text"}:
        x, y = (_read_dates(raw) or raw if raw.kind == "text" else raw for raw in (x, y))
        kinds = {x.kind, y.kind}
    if len(kinds) > 1 and "date" in kinds:
        (other,) = kinds - {"date"}
        raise TypeError(
            f"column {name!r} holds dates in one sample and {other} in the other: "
            "give both alike, or drop the column"
        )
    if "text" in kinds:
        return _join_texts(x, y, mixed=len(kinds) > 1)
    (kind,) = kinds
    whole = all(raw.whole or raw.kind in ("empty", "boolean") for raw in (x, y))
    plain = np.bool_ if kind == "boolean" else np.float64
    values = np.concatenate(
        [np.zeros(len(r.missing)) if r.kind == "empty" else r.values for r in (x, y)]
    )
    return Raw(kind, values.astype(plain), missing, whole)


def _join_texts(x: Raw, y: Raw, mixed: bool) -> Raw:
    """Return pooled text as dates if it is dates; numbers and text as numbers if all are numbers.

    Otherwise it is text, with numbers as a file would have them.
    """
    codes: list[Ints] = []
    texts: list[str] = []
    for raw in (x, y):
        places, own = raw.values, list(raw.texts)
        if raw.kind not in ("text", "empty"):
            distinct, places = np.unique(raw.values, return_inverse=True)
            own = [_spelt(value) for value in distinct.tolist()]
        elif mixed:
            numbers = [as_number(text) for text in own]
            own = [t if v is None else _spelt(v) for t, v in zip(own, numbers, strict=True)]
        # a column without values has numbers instead of places
        codes.append(np.where(raw.missing, 0, places).astype(np.int64) + len(texts))
        texts += own
    missing = np.concatenate([x.missing, y.missing])
    joined = _of_texts(np.where(missing, -1, np.concatenate(codes)), missing, texts)
    found = [as_number(text) for text in joined.texts] if mixed else [None]
    known = [number for number in found if number is not None]
    if len(known) == len(found):
        return Raw("number", np.array([*known, np.nan])[joined.values], joined.missing)
    return _read_dates(joined) or joined


def as_number(text: str) -> float | None:
    """Return the number that a text spells; None if it is something else."""
    try:
        number = float(text)
    except ValueError:
        return None
    # Python reads 1_000 as a number, other programs do not
    return number if math.isfinite(number) and "_" not in text else None


def _read_dates(raw: Raw) -> Raw | None:
    """Return text as dates if all of it is dates: 2024-05-31, with or without a time, or 31.5.2024.

    Slashes are left alone: nobody knows whether 1/2/2024 is in January or in February.
    """
    days: list[float] = []
    for text in raw.texts:
        day = _date_of(text)
        if day is None:
            return None
        days.append(day)
    return Raw("date", np.array([*days, np.nan])[raw.values], raw.missing)


def _date_of(text: str) -> float | None:
    if not text[:1].isdigit() or not ("-" in text or "." in text):
        return None
    readers: tuple[Callable[[str], datetime], ...] = (
        datetime.fromisoformat,
        lambda given: datetime.strptime(given, "%d.%m.%Y"),
    )
    for read in readers:
        try:
            return _day_of(read(text))
        except ValueError:
            continue
    return None


# From a pooled column to coordinates


def _coordinates(raw: Raw, name: str, scale: str, alone: bool) -> _Made:
    missing = int(raw.missing.sum())
    if raw.kind == "empty":
        return _Made(Column(name, "empty", f"{LEFT_OUT}no values", (), missing), [])
    if raw.kind == "text" or (raw.kind == "boolean" and missing):
        return _categories(raw, name, alone)
    if raw.kind == "boolean":
        return _two_values(raw, name)
    if not alone and _numbers_rows(raw):
        return _Made(_identifier(name, raw.kind), [])
    return _numbers(raw, name, scale)


def _identifier(name: str, kind: str) -> Column:
    what = "row numbers" if kind == "number" else "a different text in every row"
    return Column(name, kind, LEFT_OUT + what)


def _numbers_rows(raw: Raw) -> bool:
    """Return whether a column counts the rows, once over both samples or once in each."""
    if not (raw.kind == "number" and raw.whole) or raw.missing.any() or len(raw.values) <= FEW_ROWS:
        return False
    least, most = raw.values.min(), raw.values.max()
    if most - least >= len(raw.values):
        return False
    counts = np.bincount((raw.values - least).astype(np.int64))
    return bool(counts.min() >= 1 and counts.max() <= 2)


def _names_rows(raw: Raw) -> bool:
    """Return whether all texts are different."""
    return len(raw.texts) > FEW_ROWS and len(raw.texts) == int((~raw.missing).sum())


def _two_values(raw: Raw, name: str) -> _Made:
    """Return one coordinate, in which the two values are as far apart as two categories are."""
    if raw.values.all() or not raw.values.any():
        return _Made(Column(name, raw.kind, f"{LEFT_OUT}constant, {bool(raw.values[0])}"), [])
    made = Column(name, raw.kind, "two values", (f"{name}=True",))
    return _Made(made, [raw.values * APART])


def _categories(raw: Raw, name: str, alone: bool) -> _Made:
    """Return a coordinate for each category, of which missing values are one."""
    kind = "category"
    if raw.kind == "boolean":
        found = np.unique(raw.values[~raw.missing])
        texts = tuple(str(bool(value)) for value in found)
        kind, raw = "boolean", raw._replace(values=raw.values == found[-1], texts=texts)
        raw = raw._replace(values=raw.values.astype(np.int64) * (len(texts) - 1))
    missing = int(raw.missing.sum())
    present = len(raw.missing) - missing
    levels = sorted(raw.texts)
    if kind == "category":
        _check_numbers(levels, name)
        if not alone and _names_rows(raw):
            return _Made(_identifier(name, kind), [])
        if len(levels) > MOST_CATEGORIES and (
            len(levels) > MOST_SHARE * present or len(levels) > MOST_COORDINATES
        ):
            raise ValueError(
                f"column {name!r} is text with {len(levels):,} distinct values in {present:,} "
                f"rows, such as {_shown(levels[0])}: drop it, or group its values into categories "
                "(dates are read as 2024-05-31)"
            )
    order = {level: place for place, level in enumerate(levels)}
    table = np.array([*(order[text] for text in raw.texts), len(levels)])
    codes = table[np.where(raw.missing, -1, raw.values)]
    outputs = [f"{name}={level}" for level in levels] + [f"{name} missing"] * bool(missing)
    if len(outputs) == 1:
        return _Made(Column(name, kind, f"{LEFT_OUT}constant, {_shown(levels[0])}"), [])
    listed = ", ".join(map(_brief, levels[:SHOWN_NAMES]))
    count = f"{len(levels)} categor{'y' if len(levels) == 1 else 'ies'}"
    treatment = f"{count}: {listed}{', ...' if len(levels) > SHOWN_NAMES else ''}"
    if missing:
        treatment += f"; {missing:,} missing, a category of their own"
    made = Column(name, kind, treatment, tuple(outputs), missing)
    return _Made(made, [(codes == place).astype(np.float64) for place in range(len(outputs))])


def _check_numbers(levels: Sequence[str], name: str) -> None:
    """Raise ValueError if text is numbers for the most part, as after a slip of the pen."""
    odd = [level for level in levels if as_number(level) is None]
    numbers = len(levels) - len(odd)
    if numbers > FEW_NUMBERS and numbers > len(odd) > 0:
        raise ValueError(
            f"column {name!r} holds numbers but also {_shown(odd[0])}: mend such cells, leave them "
            "empty if the values are missing, or drop the column"
        )


def _numbers(raw: Raw, name: str, scale: str) -> _Made:
    """Return scaled numbers, and an indicator if some are missing, which get the median."""
    present, missing = ~raw.missing, int(raw.missing.sum())
    known = raw.values[present]
    # the largest is brought to the order of 1, so that no square leaves the range of doubles
    exponent = int(np.frexp(np.abs(known).max())[1])
    known = np.ldexp(known, -exponent)
    varies = bool(known.min() < known.max())
    centre = float(np.median(known))
    spread, done = 1.0, "as it is"
    if not varies:
        if not missing:
            return _Made(Column(name, raw.kind, f"{LEFT_OUT}constant, {raw.values[0]:.6g}"), [])
        scaled, centre, spread = np.zeros_like(known), 0.0, 1.0
        done = "constant, only whether it is missing counts"
    elif scale == "none":
        scaled, spread = known, float(known.std())
    elif scale == "rank":
        scaled, centre, done = _ranks(known), 0.0, "ranks"
    else:
        if scale == "std":
            centre, spread = float(known.mean()), float(known.std())
            by = "standard deviation"
        else:
            low, high = np.quantile(known, [0.25, 0.75])
            spread, by = float(high - low) / QUARTILES_OF_A_NORMAL, "interquartile range / 1.349"
            if spread == 0:
                spread, by = float(known.std()), "standard deviation"
        spread = spread or float(np.abs(known - centre).max())  # a std that underflows
        scaled = (known - centre) / spread
        with np.errstate(over="ignore"):
            at, over = np.ldexp([centre, spread], exponent)
        done = f"centred at {at:.6g}, divided by {over:.6g} ({by})"
    values = np.empty(len(raw.values))
    values[present] = scaled
    raw_units = scale == "none" and varies
    values[~present] = centre if raw_units else 0.0
    coordinates: list[Floats] = [values] if varies else []
    outputs = [name] if varies else []
    if missing:
        done += f"; {missing:,} missing, marked" + (" and filled by the median" if varies else "")
        apart = APART * spread if raw_units else APART
        coordinates.append(np.where(raw.missing, np.float64(apart), 0.0))
        outputs.append(f"{name} missing")
    if raw_units:
        coordinates = [np.ldexp(coordinate, exponent) for coordinate in coordinates]
    if raw.kind == "date":
        done = f"in days, {done}"
    return _Made(Column(name, raw.kind, done, tuple(outputs), missing), coordinates)


def _ranks(values: Floats) -> Floats:
    """Return ranks from -sqrt(3) to sqrt(3), of spread 1; equal values have their mean rank."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    middle = ends - (counts + 1) / 2 + 0.5
    ranks: Floats = (middle / len(values) - 0.5)[place] * math.sqrt(12)
    return ranks


def _shown(text: str) -> str:
    """Return a text in quotes, shortened to 40 characters."""
    return repr(text if len(text) <= 40 else text[:37] + "...")


def _brief(text: str) -> str:
    return printable(text if len(text) <= 20 else text[:17] + "...")
