"""Which sign is the decimal one in cells of text: that of 1.103,68 or that of 1,103.68.

Most cells tell: 3,5 and 0,950 have decimals, and so has what follows both signs; 1,103,250 has
groups. Only one sign before three digits, as in 1,103, leaves it open.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

OPEN, BOTH = "?", "both"
_NUMBERS = {
    sign: re.compile(rf"[+-]?(\d+|[1-9]\d{{0,2}}(\{group}\d{{3}})+)(\{sign}\d*)?(e[+-]?\d+)?", re.I)
    for sign, group in ((",", "."), (".", ","))
}
# 1'103.68 and 1 103,68, also with blanks that break no line
_SPACED = re.compile("[+-]?[1-9]\\d{0,2}(['\u2019\u00a0\u202f ]\\d{3})+([.,]\\d*)?")
_SPACES = re.compile("['\u2019\u00a0\u202f ]")


def sign_of(cells: Iterable[str]) -> str:
    """Return the decimal sign of cells, OPEN or BOTH; nothing if no number has a sign."""
    found = set()
    for cell in cells:
        if "," in cell or "." in cell:
            fits = [sign for sign, number in _NUMBERS.items() if number.fullmatch(cell)]
            if fits:
                found.add(fits[0] if len(fits) == 1 else OPEN)
    sure = found - {OPEN}
    if len(sure) == 2:
        return BOTH
    return next(iter(sure or found), "")


def with_point(cell: str, sign: str) -> str:
    """Return a number without groups and with a decimal point; other text as it is."""
    if not _NUMBERS[sign].fullmatch(cell):
        return cell
    return cell.replace(".", "").replace(",", ".") if sign == "," else cell.replace(",", "")


def without_blanks(cell: str) -> str:
    """Return a number whose groups are set apart by blanks or apostrophes without these."""
    return _SPACES.sub("", cell) if _SPACED.fullmatch(cell) else cell
