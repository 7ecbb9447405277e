"""`crossedge reproduce`: a figure of the paper, from the beginning."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path
from typing import Any

from crossedge.cli.arguments import dimensions, jobs, seed, whole_number
from crossedge.runtime.interrupts import run_interruptibly


def add_to(commands: Any) -> None:
    reproduce = commands.add_parser("reproduce", help="a figure of the paper, from the beginning")
    figures = reproduce.add_subparsers(required=True, metavar="figure")
    power = figures.add_parser("power", help="the power of smoothed, classical and kernel tests")
    power.add_argument("--out", type=Path, default=Path("reproduction/power"), help="folder")
    power.add_argument("--repetitions", type=whole_number(1), default=300)
    power.add_argument("--dimensions", type=dimensions, help="with commas, as 2,8,32")
    power.add_argument("--seed", type=seed, default=0)
    workers = power.add_mutually_exclusive_group()
    workers.add_argument("--jobs", type=jobs, default=-1, help="processes (default: every core)")
    workers.add_argument("--dask", metavar="ADDRESS", help="the scheduler of a Dask cluster")
    power.set_defaults(run=_reproduce_power, in_thread=False)
    moons = figures.add_parser("moons", help="two moons, learnt at three temperatures")
    moons.add_argument("--out", type=Path, default=Path("reproduction/moons"), help="folder")
    moons.add_argument(
        "--epochs", type=whole_number(1), help="of each model (default: the paper's 500)"
    )
    moons.add_argument("--seed", type=seed, default=0)
    moons.set_defaults(run=_reproduce_moons)
    mnist = figures.add_parser("mnist", help="the models of MNIST, a GMMN and our own recipe")
    mnist.add_argument("--out", type=Path, default=Path("reproduction/mnist"), help="folder")
    mnist.add_argument("--data", help="folder of the MNIST files")
    mnist.add_argument("--steps", type=whole_number(1), help="of each model")
    mnist.add_argument("--seed", type=seed, default=0)
    mnist.set_defaults(run=_reproduce_mnist)
    for figure in (power, moons, mnist):
        figure.set_defaults(interrupted=lambda: "interrupted; the same command goes on from here")


def _reproduce_moons(options: argparse.Namespace) -> str:
    from crossedge.experiments.moons import reproduce_moons

    rows = reproduce_moons(options.out, epochs=options.epochs, seed=options.seed)
    return _models(rows, options.out)


def _reproduce_mnist(options: argparse.Namespace) -> str:
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


def _reproduce_power(options: argparse.Namespace) -> str:
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
