"""What texts spell: numbers and dates."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import datetime, timedelta

import numpy as np

from crossedge.data.raw import SECONDS_PER_DAY, Raw, day_of

YEAR, MONTHS, NOON = 4, 12, 12  # digits, months, hours
DATE = re.compile(
    r"(?P<a>\d{1,4})(?P<sign>[./-])(?P<b>\d{1,2})(?P=sign)(?P<c>\d{1,4})"
    r"([ T]+(?P<hour>\d{1,2}):(?P<minute>\d{2})(:(?P<second>\d{2}(\.\d+)?))?( ?(?P<half>[ap])m)?)?",
    re.I,
)


TIME = re.compile(r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(:(?P<second>\d{2}(\.\d+)?))?")


def as_number(text: str) -> float | None:
    """Return the number that a text spells; None if it is something else."""
    try:
        number = float(text)
    except ValueError:
        return None
    # Python reads 1_000 as a number, other programs do not
    return number if math.isfinite(number) and "_" not in text else None


def read_times(raw: Raw) -> Raw | None:
    """Return text as times of the day, in days, if all of it is times such as 8:05 or 0:02:54."""
    days: list[float] = []
    for text in raw.texts:
        match = TIME.fullmatch(text)
        if match is None:
            return None
        parts = int(match["hour"]), int(match["minute"]), float(match["second"] or 0)
        if parts[0] >= 24 or parts[1] >= 60 or parts[2] >= 60:
            return None
        days.append((3600 * parts[0] + 60 * parts[1] + parts[2]) / SECONDS_PER_DAY)
    return Raw("date", np.array([*days, np.nan])[raw.values], raw.missing)


def day_order(raw: Raw) -> str:
    """Return what comes first in dates that end in a year, "day" or "month"; "" if unknown."""
    matches = [DATE.fullmatch(text) for text in raw.texts if _iso_day(text) is None]
    first = _is_day_first([match for match in matches if match is not None])
    return {True: "day", False: "month", None: ""}[first]


def read_dates(raw: Raw) -> Raw | None:
    """Return text as dates or as times of the day if all of it is.

    That is 2024-05-31 and all that ISO 8601 has, and three numbers of which the first or the last
    is a year of four digits, with or without a time: 31.5.2024, 5/31/2024 2:30 pm. Whether the day
    comes first is told by all values together, because one of them is above 12. Where none is, the
    day comes first between points, and between slashes and hyphens it cannot be told: 1/2/2024 may
    be in January or in February.
    """
    if raw.texts and (times := read_times(raw)) is not None:
        return times
    days: list[float] = []
    odd: list[tuple[int, re.Match[str]]] = []  # those that are not of ISO 8601, and their places
    for text in raw.texts:
        day = _iso_day(text)
        if day is None:
            match = DATE.fullmatch(text)
            if match is None:
                return None
            odd.append((len(days), match))
        days.append(math.nan if day is None else day)
    day_first = _is_day_first([match for _, match in odd])
    for place, match in odd:
        try:
            days[place] = _day_of_match(match, day_first)
        except (ValueError, TypeError):
            return None
    return Raw("date", np.array([*days, np.nan])[raw.values], raw.missing)


def _iso_day(text: str) -> float | None:
    if not text[:1].isdigit() or "-" not in text:
        return None
    try:
        return day_of(datetime.fromisoformat(text))
    except ValueError:
        return None


def _is_day_first(dates: Sequence[re.Match[str]]) -> bool | None:
    """Return whether the day comes before the month in dates that end in a year, if known."""
    ends = [match for match in dates if len(match["c"]) == YEAR]
    first = any(int(match["a"]) > MONTHS for match in ends)
    second = any(int(match["b"]) > MONTHS for match in ends)
    if first != second:
        return first
    return True if all(match["sign"] == "." for match in ends) else None


def _day_of_match(match: re.Match[str], day_first: bool | None) -> float:
    """Return days since 1970, or raise ValueError or TypeError."""
    a, b, c = match["a"], match["b"], match["c"]
    if len(a) == YEAR and len(c) < YEAR:
        year, month, day = a, b, c
    elif len(c) == YEAR and len(a) < YEAR and day_first is not None:
        year, (day, month) = c, (a, b) if day_first else (b, a)
    else:
        raise ValueError("it cannot be told which number is the year, the month or the day")
    hour = int(match["hour"] or 0)
    if match["half"]:
        if not 1 <= hour <= NOON:
            raise ValueError("no hour of half a day")
        hour = hour % NOON + NOON * (match["half"].lower() == "p")
    minute, seconds = int(match["minute"] or 0), float(match["second"] or 0)
    if seconds >= 60:
        raise ValueError("no second of a minute")
    found = datetime(int(year), int(month), int(day), hour, minute)
    return day_of(found + timedelta(seconds=seconds))
