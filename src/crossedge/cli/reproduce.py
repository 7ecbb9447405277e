"""`crossedge reproduce`: a figure of the paper, from the beginning."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import click

from crossedge.cli.arguments import (
    COUNT,
    DIMENSIONS,
    JOBS,
    SEED,
    Answer,
    Group,
    Task,
)
from crossedge.runtime.interrupts import run_interruptibly

Function = TypeVar("Function", bound=Callable[..., Any])


def _go_on() -> str:
    return "interrupted; the same command goes on from here"


def _out(figure: str) -> Callable[[Function], Function]:
    folder = Path("reproduction") / figure
    return click.option("--out", type=click.Path(path_type=Path), default=folder, help="Folder.")


def _seed() -> Callable[[Function], Function]:
    return click.option("--seed", type=SEED, default=0, help="Of all that is drawn.")


@click.group("reproduce", cls=Group, no_args_is_help=False, context_settings={"show_default": True})
def command() -> None:
    """Make a figure of the paper, from the beginning."""


@command.command("power")
@_out("power")
@click.option("--repetitions", type=COUNT, default=300, help="Of each test.")
@click.option(
    "--dimensions", type=DIMENSIONS, help="With commas, as 2,8,32.  [default: the paper's]"
)
@_seed()
@click.option("--jobs", type=JOBS, help="Processes.  [default: every core]")
@click.option("--dask", metavar="ADDRESS", help="Scheduler of a Dask cluster.  [default: none]")
def power(**options: Any) -> Task:
    """The power of smoothed, classical and kernel tests."""
    given = SimpleNamespace(**options)
    if given.jobs is not None and given.dask is not None:
        raise click.UsageError("--jobs does not go with --dask: leave one of them out")
    given.jobs = -1 if given.jobs is None else given.jobs
    return Task(lambda _: Answer(_reproduce_power(given)), in_thread=False, interrupted=_go_on)


@command.command("moons")
@_out("moons")
@click.option("--epochs", type=COUNT, help="Of each model.  [default: the paper's 500]")
@_seed()
def moons(**options: Any) -> Task:
    """Two moons, learnt at three temperatures."""
    given = SimpleNamespace(**options)
    return Task(lambda _: Answer(_reproduce_moons(given)), interrupted=_go_on)


@command.command("mnist")
@_out("mnist")
@click.option("--data", help="Folder of the MNIST files.  [default: none]")
@click.option("--steps", type=COUNT, help="Of each model.  [default: the paper's]")
@_seed()
def mnist(**options: Any) -> Task:
    """The models of MNIST, a GMMN and our own recipe."""
    given = SimpleNamespace(**options)
    return Task(lambda _: Answer(_reproduce_mnist(given)), interrupted=_go_on)


def _reproduce_moons(options: SimpleNamespace) -> str:
    from crossedge.experiments.moons import reproduce_moons

    rows = reproduce_moons(options.out, epochs=options.epochs, seed=options.seed)
    return _models(rows, options.out)


def _reproduce_mnist(options: SimpleNamespace) -> str:
    from crossedge.learning.datasets import mnist_files

    mnist_files(options.data)  # before torch is imported
    from crossedge.experiments.mnist import STEPS, reproduce_mnist

    steps = STEPS if options.steps is None else options.steps
    rows = reproduce_mnist(options.out, options.data, steps=steps, seed=options.seed)
    return _models(rows, options.out)


def _models(rows: list[dict[str, Any]], folder: Path) -> str:
    lines = ["  ".join(f"{name:>16}" for name in rows[0])]
    for row in rows:
        cells = (f"{value:.4g}" if isinstance(value, float) else value for value in row.values())
        lines.append("  ".join(f"{cell!s:>16}" for cell in cells))
    return "\n".join([*lines, f"the figure and quality.csv are in {folder}"])


def _reproduce_power(options: SimpleNamespace) -> str:
    """Wait in the main thread: an interrupt there lets the study end its processes."""
    power: Any = run_interruptibly(lambda: import_module("crossedge.experiments.power"))
    study = power.reproduce_power(
        options.out,
        repetitions=options.repetitions,
        dimensions=options.dimensions or power.DIMENSIONS,
        seed=options.seed,
        jobs=1 if options.dask else options.jobs,
        dask=options.dask,
    )
    table = power.claims(study).to_string(index=False, float_format="{:.3f}".format)
    return f"{table}\ntables and figures are in {options.out}"
