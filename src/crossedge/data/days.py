"""Days since 1970 in words: a date, or a time span."""

from __future__ import annotations

from datetime import datetime, timedelta

from crossedge.runtime.types import Floats

LONGEST_SPAN = 500  # days; dates after 1970 are rarely that early


def are_spans(values: Floats) -> bool:
    """Return whether days are durations or times of the day, and not dates."""
    return bool(values.min() >= 0 and values.max() < LONGEST_SPAN)


def days(value: float) -> str:
    """Return days since 1970 as a date, with the time if the day is not whole."""
    try:
        found = datetime(1970, 1, 1) + timedelta(days=value)
    except OverflowError:
        return f"{value:.6g} days"
    return f"{found:%Y-%m-%d}" if value == round(value) else f"{found:%Y-%m-%d %H:%M}"
