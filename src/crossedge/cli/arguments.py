"""Types of arguments: text in, a checked value out."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from crossedge.learning.configuration import Phase


def whole_number(least: int, most: int = 10**9) -> Callable[[str], int]:
    """Make a type of argument: whole numbers from the least to the most."""

    def count(text: str) -> int:
        number = whole(text)
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f"{number} is out of range: give {least} to {most}")
        return number

    return count


def whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from None


seed = whole_number(0, 2**63 - 1)


def jobs(text: str) -> int:
    jobs = whole(text)
    if jobs < 1 and jobs != -1:
        raise argparse.ArgumentTypeError(f"{jobs} is no number of processes: give 1 or more, or -1")
    return jobs


def dimensions(text: str) -> tuple[int, ...]:
    return tuple(whole_number(1)(part) for part in text.split(","))


def scale(text: str) -> float | tuple[float, ...] | str:
    if text == "median":
        return text
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number: give one, several with commas, or median"
        ) from None
    return values[0] if len(values) == 1 else values


def phases(text: str) -> tuple[Phase, ...]:
    phases = []
    for part in text.split(","):
        epochs, _, rest = part.partition("x")
        step, _, temperature = rest.partition("@")
        try:
            own = None if not temperature else scale(temperature)
            phases.append(Phase(int(epochs), float(step), own))
        except (ValueError, argparse.ArgumentTypeError):
            raise argparse.ArgumentTypeError(
                f"{part!r} is no phase: give EPOCHSxSTEP or EPOCHSxSTEP@TEMPERATURE, as 100x1e-3"
            ) from None
    return tuple(phases)
