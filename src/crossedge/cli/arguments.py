"""What all commands share: types of arguments, the work that a command returns, and help."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import click

from crossedge.learning.configuration import Phase

# the names in crossedge.statistics and crossedge.null, which import numpy and scipy
STATISTICS = ("cross", "energy", "fisher", "generalized", "max", "mmd", "mmd_ratio", "weighted")
NULLS = ("permutation", "normal", "pearson3", "tail")


class Answer(NamedTuple):
    """What a command has to say."""

    text: str
    cautions: tuple[str, ...] = ()  # lines for the standard error
    code: int = 0  # the exit code


@dataclass
class Task:
    """The work of a command, once its arguments have been read."""

    work: Callable[[Task], Answer]
    arguments: tuple[str, ...] = ()  # as given
    in_thread: bool = True  # whether the main thread waits for interrupts meanwhile
    interrupted: Callable[[], str] = lambda: "interrupted"  # what to say then


class SaidError(Exception):
    """Ends the reading of arguments with a text that answers them, such as help."""


class Parsed(click.ParamType):  # type: ignore[type-arg]
    """An argument that is read by a function, which raises ValueError for what it cannot read."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name, self.read = name, read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value of the text."""
        if not isinstance(value, str):
            return value
        try:
            return self.read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class WithHelp(click.Command):
    """A command whose help is printed by the main thread, like all other output."""

    def get_help_option(self, ctx: click.Context) -> click.Option:  # noqa: ARG002
        """Return the option --help."""
        return _help_option()


class Group(WithHelp, click.Group):
    """A group of such commands."""

    command_class = WithHelp


def _help_option() -> click.Option:
    """Return an option that ends the reading of arguments with the help of the command."""

    def say(context: click.Context, _: click.Parameter, wanted: bool) -> None:
        if wanted and not context.resilient_parsing:
            _say(context.get_help())

    return click.Option(
        ["-h", "--help"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        show_default=False,
        callback=say,
        help="Show this message.",
    )


def _say(text: str) -> NoReturn:
    raise SaidError(text)


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """Return a function that reads whole numbers from the least to the most."""

    def read(text: str) -> int:
        number = _whole(text)
        if not least <= number <= most:
            raise ValueError(f"{number} is out of range: give {least} to {most}")
        return number

    return read


def _jobs(text: str) -> int:
    jobs = _whole(text)
    if jobs < 1 and jobs != -1:
        raise ValueError(f"{jobs} is no number of processes: give 1 or more, or -1")
    return jobs


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is no whole number") from None


def _dimensions(text: str) -> tuple[int, ...]:
    return tuple(whole_number(1, 10**9)(part) for part in text.split(","))


def _temperature(text: str) -> float | tuple[float, ...] | str:
    if text == "median":
        return text
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(
            f"{text!r} is no number: give one, several with commas, or median"
        ) from None
    return values[0] if len(values) == 1 else values


def _phases(text: str) -> tuple[Phase, ...]:
    phases = []
    for part in text.split(","):
        epochs, _, rest = part.partition("x")
        step, _, temperature = rest.partition("@")
        try:
            own = None if not temperature else _temperature(temperature)
            phases.append(Phase(int(epochs), float(step), own))
        except ValueError:
            raise ValueError(
                f"{part!r} is no phase: give EPOCHSxSTEP or EPOCHSxSTEP@TEMPERATURE, as 100x1e-3"
            ) from None
    return tuple(phases)


def _names(text: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(","))
    if not all(names):
        raise ValueError(f"{text!r} has an empty name: give names with commas between them")
    return names


def _image(text: str) -> tuple[int, int, int]:
    try:
        sizes = [whole_number(1, 10**5)(part) for part in text.split("x")]
    except ValueError:
        sizes = []
    if len(sizes) not in (2, 3):
        raise ValueError(f"{text!r} is no size: give HEIGHTxWIDTH or HEIGHTxWIDTHx3, as 28x28")
    return (sizes[0], sizes[1], sizes[2] if len(sizes) == 3 else 1)


NAMES = Parsed("names", _names)
IMAGE = Parsed("size", _image)
COUNT = Parsed("integer", whole_number(1, 10**9))
SEED = Parsed("integer", whole_number(0, 2**63 - 1))
JOBS = Parsed("integer", _jobs)
DIMENSIONS = Parsed("integers", _dimensions)
TEMPERATURE = Parsed("numbers", _temperature)
PHASES = Parsed("phases", _phases)
