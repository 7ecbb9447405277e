"""What the library says of arguments, in the words of the command line."""

from __future__ import annotations

import re

CHOICE = re.compile(r"\b(statistic|null|scale)='(\w+)'")
NUMBER = re.compile(r"\b(k|temperature|bandwidth|distance)=(?=[\d.-])")
PHRASES = (
    ("weights=ce.EnergyKernel()", "--weights energy"),
    ("give one family of weights", "give --weights"),
    ("leave null out", "leave --null out"),
    ("blocks names the column", "--strata or --clusters names the column"),
    ("blocks='pairs'", "--pairs"),
    ("name the pairs by ce.Strata(labels)", "name the pairs by --strata COLUMN"),
    ("or use ce.Strata", "or use --strata"),
    ("with blocks", "with --pairs, --strata or --clusters"),
    ("which blocks have", "which --pairs, --strata and --clusters have"),
)


def words_of(error: BaseException) -> str:
    """Return what went wrong in one line, without the numbers of an operating system."""
    name = getattr(error, "filename", None)
    if name is not None and isinstance(error, FileNotFoundError):
        return f"no such file: {name}"
    if name is not None and isinstance(error, PermissionError):
        return f"not allowed to open {name}"
    return str(error) or f"{type(error).__name__}, without a message"


def in_flags(message: str, weights: str | None, given: object) -> str:
    """Return a message about arguments with flags in place of Python's names.

    `weights` is what the command line calls the weights, and `given` is the object that they are.
    """
    text = message
    if given is not None:
        text = text.replace(repr(given), f"--weights {weights}")
    for python, flag in PHRASES:
        text = text.replace(python, flag)
    return NUMBER.sub(r"--\1 ", CHOICE.sub(r"--\1 \2", text))
