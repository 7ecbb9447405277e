"""What texts spell: numbers and dates."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime

import numpy as np

from crossedge.data.raw import Raw, day_of


def as_number(text: str) -> float | None:
    """Return the number that a text spells; None if it is something else."""
    try:
        number = float(text)
    except ValueError:
        return None
    # Python reads 1_000 as a number, other programs do not
    return number if math.isfinite(number) and "_" not in text else None


def read_dates(raw: Raw) -> Raw | None:
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
            return day_of(read(text))
        except ValueError:
            continue
    return None
