"""Whole numbers that callers give."""

from __future__ import annotations

from numbers import Integral
from typing import SupportsIndex

MOST = 10**9  # more labellings or points than any machine works through


def count_of(value: SupportsIndex, name: str, least: int = 1) -> int:
    """Return a whole number as an integer, or raise unless it lies in a sensible range."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name}={value!r} is not an integer: give a whole number")
    if value < least:
        raise ValueError(f"{name}={value} is too small: give at least {least}")
    if int(value) > MOST:
        raise ValueError(f"{name}={value} is too large: give at most a billion")
    return int(value)
