"""Columns that number or name the rows and say nothing else.

Identifiers differ from sample to sample whatever the samples are. Four signs tell them from
measurements, and all of them look at the pooled sample only:

- Row numbers: every whole number of a range, once over both samples or once in each.
- More distinct than chance allows: n independent numbers in a range of R whole ones have at least
  n (n - 1) / 2R repeated pairs on average, and the fewest if they are spread evenly. So if seven
  are expected and none is there, the numbers were given out, one to each row. Both samples may
  have been numbered alike: then no number occurs three times, where seven would by chance.
- Long and even, with a word such as customer or number in the name: all different, of seven digits
  or more, and spread evenly over their range, as account numbers are and incomes are not. In a wide
  range there are no repeats to look for. Without such a word these may be amounts of money: two
  samples that hold 1 to 2 and 2 to 3 millions are even, too, once they are pooled.
- A name such as customer_id above whole numbers, or texts of one form, that hardly ever repeat.
"""

from __future__ import annotations

import math
import re

import numpy as np

from crossedge.data.columns import LEFT_OUT, Column
from crossedge.data.raw import Raw
from crossedge.runtime.types import Floats, Ints

FEW_ROWS = 20  # up to this many rows, distinct values in sequence may be there by chance
EXPECTED_REPEATS = 7.0  # where none is seen: by chance in less than one of a thousand columns
EVEN_ROWS = 300  # fewer rows do not tell an even spread from a normal one
EVEN_DISTANCE = 1.36  # of Kolmogorov and Smirnov times sqrt(n): 95% of even spreads are below
LONG_NUMBER = 1_000_000  # the least number of seven digits
HARDLY_REPEAT = 0.95  # the least share of distinct values among all
NAMES = {"id", "uid", "uuid", "guid", "key", "nr"}  # words in the name of an identifier
NUMBERING = {  # words in the names of numbers that were given out, if they are long and even
    *("account", "card", "case", "client", "code", "contract", "customer", "index", "invoice"),
    *("konto", "kunde", "member", "no", "num", "number", "nummer", "order", "patient", "phone"),
    *("policy", "ref", "reference", "serial", "subject", "ticket", "transaction", "user"),
}
WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
NO_IDENTIFIER = re.compile(r"[^\w.#{}-]")  # blanks are of free text, slashes and colons of dates
ALPHANUMERIC, DIGITS = re.compile(r"[^\W_]"), re.compile(r"[0-9]+")


def identifier_of(raw: Raw, name: str) -> Column | None:
    """Return a pooled column as one that is left out, if it numbers or names the rows."""
    if raw.kind == "number" and raw.whole:
        if _numbers_rows(raw):
            return Column(name, "number", f"{LEFT_OUT}row numbers")
        if _is_number_of_rows(raw.values[~raw.missing].astype(np.int64), name):
            kept = "kept if named by --columns or given as floats"
            return _left_out(raw, name, "number", f"identifiers ({kept})")
    if raw.kind == "text" and len(raw.texts) > FEW_ROWS:
        if len(raw.texts) == int((~raw.missing).sum()):
            return _left_out(raw, name, "category", "a different text in every row")
        if _hardly_repeat(np.bincount(raw.values[~raw.missing])) and _of_one_form(raw.texts):
            return _left_out(raw, name, "category", "identifiers")
    return None


def _left_out(raw: Raw, name: str, kind: str, reason: str) -> Column:
    return Column(name, kind, LEFT_OUT + reason, missing=int(raw.missing.sum()))


def _numbers_rows(raw: Raw) -> bool:
    """Return whether a column counts the rows, once over both samples or once in each."""
    if raw.missing.any() or len(raw.values) <= FEW_ROWS:
        return False
    least, most = raw.values.min(), raw.values.max()
    if most - least >= len(raw.values):
        return False
    counts = np.bincount((raw.values - least).astype(np.int64))
    return bool(counts.min() >= 1 and counts.max() <= 2)


def _is_number_of_rows(values: Ints, name: str) -> bool:
    """Return whether whole numbers were given out to the rows rather than measured."""
    n = len(values)
    if n <= FEW_ROWS:
        return False
    distinct, counts = np.unique(values, return_counts=True)
    span = float(distinct[-1]) - float(distinct[0]) + 1
    pairs, triples = math.comb(n, 2) / span, math.comb(n, 3) / span**2
    most = int(counts.max())
    if (most == 1 and pairs >= EXPECTED_REPEATS) or (most <= 2 and triples >= EXPECTED_REPEATS):
        return True
    if _has_word(name, NAMES) and _hardly_repeat(counts):
        return True
    if not _has_word(name, NUMBERING):
        return False
    is_long = max(abs(float(distinct[0])), abs(float(distinct[-1]))) >= LONG_NUMBER
    return n >= EVEN_ROWS and most == 1 and is_long and _is_even(distinct.astype(np.float64))


def _is_even(ordered: Floats) -> bool:
    """Return whether values are spread evenly between their ends."""
    place = (ordered[1:-1] - ordered[0]) / (ordered[-1] - ordered[0])
    n = len(place)
    gap = np.maximum(np.arange(1, n + 1) / n - place, place - np.arange(n) / n).max()
    return bool(gap * math.sqrt(n) <= EVEN_DISTANCE)


def _hardly_repeat(counts: Ints) -> bool:
    """Return whether nearly all values occur once, or all of them once or twice, in two tables."""
    return bool(counts.max() <= 2 or len(counts) >= HARDLY_REPEAT * counts.sum())


def _has_word(name: str, words: set[str]) -> bool:
    return any(word.lower() in words for word in WORDS.findall(name))


def _of_one_form(texts: tuple[str, ...]) -> bool:
    """Return whether all texts are alike but for letters and digits, or but for numbers.

    The first are as 8f14e45f-ceea, the second as user_17. Some must have a digit.
    """
    if any(map(NO_IDENTIFIER.search, texts)) or not any(map(DIGITS.search, texts)):
        return False
    first = texts[0]
    return any(
        all(pattern.sub("0", text) == pattern.sub("0", first) for text in texts)
        for pattern in (ALPHANUMERIC, DIGITS)
    )
