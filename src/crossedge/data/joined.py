"""The two samples of a column together, of the kind that serves both."""

from __future__ import annotations

import numpy as np

from crossedge.data.amounts import Hint, no_hint, read_amounts
from crossedge.data.raw import Raw, of_texts, spelt
from crossedge.data.spelling import as_number, day_order, read_dates
from crossedge.runtime.types import Ints


def join(
    x: Raw,
    y: Raw,
    name: str,
    called: tuple[str, str] = ("x", "y"),
    hints: tuple[Hint, Hint] = (no_hint, no_hint),
) -> Raw:
    """Return the pooled column, of the kind that serves both samples.

    `hints` give the decimal signs of both tables, for text that leaves its own one open.
    """
    x, y = read_amounts(x, y, name, called, hints)
    missing = np.concatenate([x.missing, y.missing])
    kinds = {x.kind, y.kind} - {"empty"}
    if not kinds:
        return Raw("empty", np.zeros(len(missing)), missing)
    if kinds == {"number", "boolean"}:
        kinds = {"number"}
    if kinds == {"date", "text"}:
        x, y = (read_dates(raw) or raw if raw.kind == "text" else raw for raw in (x, y))
        kinds = {x.kind, y.kind}
    if len(kinds) > 1 and "date" in kinds:
        (other,) = kinds - {"date"}
        raise TypeError(
            f"column {name!r} holds dates in one sample and {other} in the other: "
            "give both alike, or drop the column"
        )
    if "text" in kinds:
        made = _join_texts(x, y, mixed=len(kinds) > 1)
        if made.kind == "text":
            _check_order_of_dates(x, y, name, called)
        return made
    (kind,) = kinds
    whole = all(raw.whole or raw.kind in ("empty", "boolean") for raw in (x, y))
    plain = np.bool_ if kind == "boolean" else np.float64
    values = np.concatenate(
        [np.zeros(len(r.missing)) if r.kind == "empty" else r.values for r in (x, y)]
    )
    unit, decimal = x.unit or y.unit, x.decimal or y.decimal
    return Raw(kind, values.astype(plain), missing, whole, unit=unit, decimal=decimal)


def _check_order_of_dates(x: Raw, y: Raw, name: str, called: tuple[str, str]) -> None:
    """Raise ValueError if both samples are dates, with the day first in one of them only."""
    if x.kind == y.kind == "text" and read_dates(x) is not None and read_dates(y) is not None:
        orders = day_order(x), day_order(y)
        if set(orders) == {"day", "month"}:
            raise ValueError(
                f"column {name!r} has dates with the {orders[0]} first in {called[0]} and with the "
                f"{orders[1]} first in {called[1]}: write both alike, as 2024-05-31"
            )


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
            own = [spelt(value) for value in distinct.tolist()]
        elif mixed:
            numbers = [as_number(text) for text in own]
            own = [t if v is None else spelt(v) for t, v in zip(own, numbers, strict=True)]
        # a column without values has numbers instead of places
        codes.append(np.where(raw.missing, 0, places).astype(np.int64) + len(texts))
        texts += own
    missing = np.concatenate([x.missing, y.missing])
    joined = of_texts(np.where(missing, -1, np.concatenate(codes)), missing, texts)
    joined = joined._replace(is_category=x.is_category or y.is_category)
    found = [as_number(text) for text in joined.texts] if mixed else [None]
    known = [number for number in found if number is not None]
    if len(known) == len(found):
        return Raw("number", np.array([*known, np.nan])[joined.values], joined.missing)
    return read_dates(joined) or joined
