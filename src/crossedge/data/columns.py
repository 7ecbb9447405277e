"""What was done to the columns of a table, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

SCALES = ("none", "std", "robust", "rank")
SHOWN_NAMES = 3  # in a message
LONGEST_NAME = 41  # characters of a name in a summary
LEFT_OUT = "left out: "
SAYS_NOTHING = ("constant", "no values")  # why a column is left out that could not tell anything


@dataclass(frozen=True)
class Column:
    """What was done to one column of a table.

    Attributes
    ----------
    name : str
        The name of the column.
    kind : {"number", "date", "boolean", "category", "empty"}
        What the column holds.
    treatment : str
        What was done to it, in words.
    outputs : tuple of str
        The names of the coordinates of the points that it became; empty if it was left out.
    missing : int
        The number of missing values, over both samples.
    """

    name: str
    kind: str
    treatment: str
    outputs: tuple[str, ...] = ()
    missing: int = 0


def check_scale(scale: object) -> None:
    """Raise ValueError unless the scale is None or the name of one."""
    if scale is not None and scale not in SCALES:
        names = ", ".join(map(repr, SCALES))
        raise ValueError(f"scale={scale!r} is unknown: give one of {names}, or None")


def check_sample_names(names: Any) -> tuple[str, str]:
    """Return what two samples are called, or raise TypeError."""
    if isinstance(names, str) or len(names) != 2 or not all(isinstance(n, str) for n in names):
        raise TypeError(f"names={names!r} are no two texts: give a pair such as ('old', 'new')")
    return names[0], names[1]


def show_columns(columns: Iterable[Column]) -> str:
    """Return a table of what was done to each column, one line each."""
    rows = [(short_name(column.name), column.kind, column.treatment) for column in columns]
    width = max((len(name) for name, _, _ in rows), default=0)
    return "\n".join(f"  {name:<{width}}  {kind:<8}  {done}" for name, kind, done in rows)


def short_name(name: str) -> str:
    """Return a name on one line, without its middle if it is long: ends tell names apart."""
    text = printable(name)
    if len(text) <= LONGEST_NAME:
        return text
    half = (LONGEST_NAME - 3) // 2
    return f"{text[:half]}...{text[-half:]}"


def printable(text: str) -> str:
    """Return text on one line, without characters that would move a cursor."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))


def nearly(name: Any, others: Iterable[Any]) -> str:
    """Return a hint at a name that differs from another one in case or blanks only; "" if none."""
    wanted = "".join(str(name).split()).casefold()
    for other in others:
        if other != name and "".join(str(other).split()).casefold() == wanted:
            return f" (it has {str(other)!r}: case and blanks count)"
    return ""


def left_out_lines(columns: Sequence[Column]) -> Iterable[str]:
    """Yield one line for each reason for which columns were left out."""
    reasons: dict[str, list[str]] = {}
    for column in columns:
        if not column.outputs:
            reason = column.treatment.removeprefix(LEFT_OUT).partition(",")[0]
            reasons.setdefault(reason, []).append(column.name)
    for reason, names in reasons.items():
        more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
        shown = ", ".join(map(repr, names[:SHOWN_NAMES])) + more
        one = len(names) == 1
        yield f"column{'' if one else 's'} {shown} {'is' if one else 'are'} left out: {reason}"


def share_compared(columns: Sequence[Column]) -> str:
    """Return how many columns are compared, in words; "" if all are that might tell something."""
    telling = [
        column
        for column in columns
        if column.outputs or not column.treatment.removeprefix(LEFT_OUT).startswith(SAYS_NOTHING)
    ]
    compared = sum(bool(column.outputs) for column in telling)
    return "" if compared == len(telling) else f"{compared} of {len(telling)} columns compared"


def shown(text: str) -> str:
    """Return a text in quotes, shortened to 40 characters."""
    return repr(text if len(text) <= 40 else text[:37] + "...")


def brief(text: str) -> str:
    return printable(text if len(text) <= 20 else text[:17] + "...")
