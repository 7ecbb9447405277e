"""Columns of text that are numbers, read alike in frames and in files.

Each sample tells its decimal sign by its own cells, or else by the other columns of its table, or
else by the other sample; where all leave it open, it is the point. Both samples must have the same
unit, or none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from crossedge.data.decimal_signs import BOTH, sign_of, with_point, without_blanks
from crossedge.data.headers import INTEGER
from crossedge.data.raw import LARGEST_INTEGER, Raw
from crossedge.data.spelling import as_number
from crossedge.data.units import Amount, amount_of, is_known, shown_unit

# texts that stand for a missing value
MISSING = ("", " ", "#N/A", "#NA", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null")
FEW_NUMBERS = 20  # a text column with more distinct numbers is a number column with faults

Hint = Callable[[], str]  # the decimal sign of a table, computed only where it is needed


def no_hint() -> str:
    return ""


def read_amounts(
    x: Raw, y: Raw, name: str, called: tuple[str, str], hints: tuple[Hint, Hint]
) -> tuple[Raw, Raw]:
    """Return both samples of a column as numbers, if text among them is numbers throughout.

    Otherwise they are returned as they are. Raise ValueError if their units differ.
    """
    if "text" not in (x.kind, y.kind):
        _check_units(x, y, name, called)
        return x, y
    parts = [_amounts(raw) for raw in (x, y)]
    for raw, own, sample in zip((x, y), parts, called, strict=True):
        if raw.kind == "text" and own is not None:
            _check_one_unit(own, name, sample)
        elif raw.kind not in ("number", "boolean", "empty"):
            return x, y
    told = [
        raw.decimal if own is None else sign_of(without_blanks(amount.number) for amount in own)
        for raw, own in zip((x, y), parts, strict=True)
    ]
    read = []
    for place, (raw, own) in enumerate(zip((x, y), parts, strict=True)):
        if own is None:
            read.append(raw)
            continue
        signs = (told[place], hints[place](), told[1 - place], hints[1 - place]())
        made = None if told[place] == BOTH else _as_numbers(raw, own, signs)
        if made is None:
            return x, y
        read.append(made)
    _check_units(read[0], read[1], name, called)
    return read[0], read[1]


def decimal_of(columns: Iterable[Raw]) -> str:
    """Return the decimal sign that the text of a table tells; "" if none or both."""
    found = set()
    for raw in columns:
        amounts = _amounts(raw)
        if amounts is not None:
            found.add(sign_of(without_blanks(amount.number) for amount in amounts))
    sure = found & {",", "."}
    return next(iter(sure)) if len(sure) == 1 else ""


def check_numbers(levels: Sequence[str], name: str) -> None:
    """Raise ValueError if text is numbers for the most part, as after a slip of the pen."""
    found, odd = [], []
    for level in levels:
        amount = _amount(level)
        if amount is not None and is_known(amount.unit):
            found.append(amount)
        elif level not in MISSING:
            odd.append(level)
    if len(found) <= max(FEW_NUMBERS, len(odd)):
        return
    if odd:
        raise ValueError(
            f"column {name!r} holds numbers but also {_shown(odd[0])}: mend such cells, leave them "
            "empty if the values are missing, or drop the column"
        )
    if sign_of(without_blanks(amount.number) for amount in found) == BOTH:
        raise ValueError(
            f"column {name!r} has decimal points and decimal commas: write its numbers alike, or "
            "drop it"
        )


def _amounts(raw: Raw) -> list[Amount] | None:
    """Return the amounts that all texts of a column spell, without those that are missing."""
    if raw.kind != "text" or raw.is_category:
        return None
    amounts = []
    for text in raw.texts:
        if text in MISSING:
            continue
        amount = _amount(text)
        if amount is None:
            return None
        amounts.append(amount)
    return amounts or None


def _amount(text: str) -> Amount | None:
    if as_number(text) is not None:
        return Amount("", text)
    amount = amount_of(text)
    if amount is None or all(_number(amount, sign) is None for sign in ".,"):
        return None
    return amount


def _number(amount: Amount, sign: str) -> float | None:
    return as_number(with_point(without_blanks(amount.number), sign))


def _as_numbers(raw: Raw, amounts: Sequence[Amount], signs: Sequence[str]) -> Raw | None:
    """Return text as numbers, by the first sign that is known; None if some are no numbers."""
    sign = next((each for each in signs if each in (",", ".")), ".")
    units = {amount.unit for amount in amounts}
    if len(units) > 1:
        return None
    values: list[float] = []
    whole = True
    rest = iter(amounts)
    for text in raw.texts:
        if text in MISSING:
            values.append(math.nan)
            continue
        spelt = with_point(without_blanks(next(rest).number), sign)
        number = as_number(spelt)
        if number is None:
            return None
        values.append(number)
        whole = whole and INTEGER.fullmatch(spelt) is not None and abs(number) <= LARGEST_INTEGER
    numbers = np.array([*values, np.nan])[np.where(raw.missing, -1, raw.values)]
    return Raw(
        "number", numbers, np.isnan(numbers), whole, unit=next(iter(units)), decimal=signs[0]
    )


def _check_one_unit(amounts: Sequence[Amount], name: str, sample: str) -> None:
    """Raise ValueError if a column mixes common units."""
    units = list(dict.fromkeys(amount.unit for amount in amounts))
    if len(units) > 1 and len(amounts) > FEW_NUMBERS and all(map(is_known, units)):
        raise ValueError(
            f"column {name!r} of {sample} has numbers with {shown_unit(units[0])} and with "
            f"{shown_unit(units[1])}: convert them to one unit, or drop the column"
        )


def _check_units(x: Raw, y: Raw, name: str, called: tuple[str, str]) -> None:
    if x.kind == y.kind == "number" and x.unit != y.unit:
        raise ValueError(
            f"column {name!r} has numbers with {shown_unit(x.unit)} in {called[0]} and with "
            f"{shown_unit(y.unit)} in {called[1]}: convert them to one unit, or drop the column"
        )


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")
