"""Numbers with a unit or a sign of currency in cells of text: $1,005.68, 70.12kg, 106%, € 101."""

from __future__ import annotations

import re
from typing import NamedTuple

_CODES = (
    "AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HKD|HUF|ILS|INR|JPY|KRW|MXN|NOK|NZD|PLN|RMB|SEK|SGD|THB|"
    "TRY|USD|ZAR"
)
_SIGN = "[$¢£¤¥฿₠-⃀﷼]"
_AMOUNT = re.compile(
    r"(?P<minus>[+-]?)\s*"
    rf"(?P<before>[^\W\d_]{{0,3}}{_SIGN}|{_CODES}|S?Fr\.|Rs\.?|kr\.?)?\s*"
    r"(?P<number>[+-]?(?=[.,]?\d)[\d.,'\u2019\u00a0\u202f ]*?(?:[eE][+-]?\d+)?)\s*"
    # a letter or a sign, then no digit, except in m2 and m3, and nothing that joins names
    rf"(?P<after>(?:[%‰°]|{_SIGN}|[^\W\d_])[^\s\d_:;,#@-]{{0,9}}(?:(?<=m)[23])?)?"
)
# units of which two in one column are surely a slip: others may be parts of codes, as in 12A, 12B
KNOWN = {
    *("%", "‰", "°", "°C", "°F", "C", "F", "k", "K", "M", "m", "mm", "cm", "dm", "km", "µm", "nm"),
    *("in", "ft", "yd", "mi", "g", "mg", "µg", "ug", "kg", "t", "lb", "lbs", "oz", "st", "l", "L"),
    *("ml", "mL", "cl", "dl", "gal", "s", "sec", "ms", "us", "µs", "ns", "min", "h", "hr", "hrs"),
    *("d", "days", "W", "kW", "MW", "Wh", "kWh", "MWh", "J", "kJ", "cal", "kcal", "V", "mV", "mA"),
    *("Hz", "kHz", "MHz", "GHz", "B", "kB", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "Pa"),
    *("hPa", "kPa", "bar", "mbar", "psi", "mmHg", "m2", "m²", "km2", "km²", "ha", "m3", "m³"),
    *("km/h", "kmh", "mph", "m/s", "bpm", "rpm", "px", "dB", "ppm", "mmol", "mmol/L", "mg/dL"),
}
_MONEY = re.compile(rf"[^\W\d_]{{0,3}}{_SIGN}|{_CODES}|S?Fr\.|Rs\.?|kr\.?")


class Amount(NamedTuple):
    """The parts of a text such as -$1,005.68 or 70.12 kg."""

    unit: str  # "" if there is none
    number: str  # as it stands, with its sign


def amount_of(text: str) -> Amount | None:
    """Return the unit and the number of a text; None if it is something else."""
    match = _AMOUNT.fullmatch(text)
    if match is None or (match["minus"] and match["number"][0] in "+-"):
        return None
    unit = " ".join(part for part in (match["before"], match["after"]) if part)
    return Amount(unit, match["minus"] + match["number"])


def is_known(unit: str) -> bool:
    """Return whether a unit is a common one, or none."""
    return not unit or unit in KNOWN or all(map(_MONEY.fullmatch, unit.split()))


def shown_unit(unit: str) -> str:
    """Return what a message calls a unit."""
    return repr(unit) if unit else "no unit"
