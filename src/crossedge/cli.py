"""The command line: `crossedge test`, `crossedge learn` and `crossedge reproduce`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from crossedge.learning.configuration import PRESETS, RECIPES, WEIGHTS, Configuration, Phase
from crossedge.learning.trainer import NotFiniteError
from crossedge.statistics import STATISTICS
from crossedge.tables import read_two
from crossedge.verbs import two_sample


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0, or 1 after one clear line about what is wrong."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
    except (ValueError, TypeError, OSError, ImportError, NotFiniteError) as error:
        print(f"crossedge: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as stopped:
        print(f"crossedge: {str(stopped) or 'interrupted'}", file=sys.stderr)
        return 130
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="crossedge", description="Do two samples come from the same distribution?"
    )
    commands = parser.add_subparsers(required=True, metavar="command")
    test = commands.add_parser("test", help="compare two files of points (.csv or .npy)")
    test.add_argument("x", type=Path, help="a point in each row; the first may name the columns")
    test.add_argument("y", type=Path, help="likewise; columns are matched by name, if any")
    test.add_argument("--resamples", type=int, default=9999, help="random labellings (%(default)s)")
    test.add_argument("--seed", type=int, default=0, help="of the labellings (%(default)s)")
    test.set_defaults(run=_test)
    learn = commands.add_parser("learn", help="train a generator until the test is fooled")
    learn.add_argument("data", choices=sorted(RECIPES))
    learn.add_argument("--out", type=Path, help="folder of the run (default: runs/DATA)")
    learn.add_argument(
        "--preset", choices=sorted(PRESETS), help="a model of the paper, or mnist-gmmn"
    )
    learn.add_argument("--resume", action="store_true", help="go on with the run in --out")
    learn.add_argument("--data", dest="folder", help="folder of the MNIST files")
    learn.add_argument("--weights", choices=list(WEIGHTS))
    learn.add_argument("--k", type=int)
    learn.add_argument("--temperature", type=_scale, help="number, several with commas, or median")
    learn.add_argument("--bandwidth", type=_scale, help="of the Gaussian kernel, likewise")
    learn.add_argument("--statistic", choices=sorted(STATISTICS))
    learn.add_argument("--standardize", choices=["true", "false", "normal", "pearson3"])
    learn.add_argument("--batch", type=int)
    learn.add_argument(
        "--phases", type=_phases, help="EPOCHSxSTEP[@TEMPERATURE], as 100x1e-3,50x1e-4"
    )
    learn.add_argument("--noise", type=int)
    learn.add_argument("--seed", type=int)
    learn.add_argument("--device", default="cpu", help="as torch names it (default: cpu)")
    learn.set_defaults(run=_learn)
    reproduce = commands.add_parser("reproduce", help="a figure of the paper, from the beginning")
    figures = reproduce.add_subparsers(required=True, metavar="figure")
    power = figures.add_parser("power", help="the power of smoothed, classical and kernel tests")
    power.add_argument("--out", type=Path, default=Path("reproduction/power"), help="folder")
    power.add_argument("--repetitions", type=int, default=300)
    power.add_argument("--dimensions", type=_whole_numbers, help="with commas, as 2,8,32")
    power.add_argument("--seed", type=int, default=0)
    workers = power.add_mutually_exclusive_group()
    workers.add_argument("--jobs", type=int, default=-1, help="processes (default: every core)")
    workers.add_argument("--dask", metavar="ADDRESS", help="the scheduler of a Dask cluster")
    power.set_defaults(run=_reproduce_power)
    moons = figures.add_parser("moons", help="two moons, learnt at three temperatures")
    moons.add_argument("--out", type=Path, default=Path("reproduction/moons"), help="folder")
    moons.add_argument("--epochs", type=int, help="of each model (default: the paper's 500)")
    moons.add_argument("--seed", type=int, default=0)
    moons.set_defaults(run=_reproduce_moons)
    mnist = figures.add_parser("mnist", help="the models of MNIST, a GMMN and our own recipe")
    mnist.add_argument("--out", type=Path, default=Path("reproduction/mnist"), help="folder")
    mnist.add_argument("--data", help="folder of the MNIST files")
    mnist.add_argument("--steps", type=int, help="of each model")
    mnist.add_argument("--seed", type=int, default=0)
    mnist.set_defaults(run=_reproduce_mnist)
    return parser


def _scale(text: str) -> float | tuple[float, ...] | str:
    if text == "median":
        return text
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number: give one, several with commas, or median"
        ) from None
    return values[0] if len(values) == 1 else values


def _phases(text: str) -> tuple[Phase, ...]:
    phases = []
    for part in text.split(","):
        epochs, _, rest = part.partition("x")
        step, _, temperature = rest.partition("@")
        try:
            own = None if not temperature else _scale(temperature)
            phases.append(Phase(int(epochs), float(step), own))
        except (ValueError, argparse.ArgumentTypeError):
            raise argparse.ArgumentTypeError(
                f"{part!r} is no phase: give EPOCHSxSTEP or EPOCHSxSTEP@TEMPERATURE, as 100x1e-3"
            ) from None
    return tuple(phases)


def _whole_numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} are no whole numbers: give 2,8,32") from None


def _test(options: argparse.Namespace) -> int:
    x, y = read_two(options.x, options.y)
    print(two_sample(x, y, n_resamples=options.resamples, rng=options.seed))
    return 0


SETTINGS = ("weights", "k", "temperature", "bandwidth", "statistic", "batch", "phases", "noise")


def _configuration(options: argparse.Namespace) -> Configuration:
    base = PRESETS[options.preset] if options.preset else RECIPES[options.data]
    if base.data != options.data:
        raise ValueError(f"--preset {options.preset} is for {base.data}, not for {options.data}")
    given = _given(options)
    weights = given.get("weights", base.weights)
    useless = sorted({"temperature", "k", "bandwidth"} & set(given) - set(WEIGHTS[weights]))
    if useless:
        raise ValueError(f"--{useless[0]} does not go with weights {weights!r}: leave it out")
    return replace(base, **given)


def _given(options: argparse.Namespace) -> dict[str, Any]:
    """The settings that stand on the command line."""
    given = {name: getattr(options, name) for name in (*SETTINGS, "seed")}
    if options.standardize:
        plain = {"true": True, "false": False}
        given["standardize"] = plain.get(options.standardize, options.standardize)
    return {name: value for name, value in given.items() if value is not None}


def _learn(options: argparse.Namespace) -> int:
    folder = options.out or Path("runs") / (options.preset or options.data)
    given = list(_given(options)) + ["preset"] * bool(options.preset and options.out)
    if options.resume and given:
        names = ", ".join(f"--{name}" for name in given)
        raise ValueError(f"--resume goes on with the settings of the run: leave out {names}")
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        return _learn_here(options, folder)
    import torch
    import torch.distributed as dist

    if options.device == "cuda":  # one for each process that torchrun started
        options.device = f"cuda:{os.environ.get('LOCAL_RANK', 0)}"
        torch.cuda.set_device(options.device)
    dist.init_process_group("cpu:gloo,cuda:nccl" if "cuda" in options.device else "gloo")
    try:
        return _learn_here(options, folder)
    finally:
        dist.destroy_process_group()


def _check_device(name: str) -> None:
    import torch

    try:
        torch.empty(1, device=name)
    except (RuntimeError, AssertionError):
        raise ValueError(f"--device {name} is not here: leave it out, or give another") from None


def _learn_here(options: argparse.Namespace, folder: Path) -> int:
    from crossedge.learning.learn import Run
    from crossedge.learning.progress import train_with_bar

    _check_device(options.device)
    if options.resume:
        run = Run.resume(folder, options.folder, options.device)
        if run.configuration.data != options.data:
            raise ValueError(f"{folder} holds a run on {run.configuration.data}")
    else:
        run = Run.begin(folder, _configuration(options), options.folder, options.device)
    complete = train_with_bar(run, folder.name)
    if not run.leads:
        return 0
    if not complete:
        print(f"stopped after epoch {run.trainer.epoch}; go on with --resume --out {folder}")
        return 130
    found = run.finish()
    print(f"quality on held-out data, in {folder}/quality.json:")
    perfect = found.pop("training_data")
    for name, value in found.items():
        text = f"{value:.4g}" if isinstance(value, float) else f"{value}"
        also = f"   (training data: {perfect[name]:.4g})" if name in perfect else ""
        print(f"  {name:<17} {text}{also}")
    return 0


def _reproduce_moons(options: argparse.Namespace) -> int:
    from crossedge.experiments.moons import reproduce_moons

    rows = reproduce_moons(options.out, epochs=options.epochs, seed=options.seed)
    return _show_models(rows, options.out)


def _reproduce_mnist(options: argparse.Namespace) -> int:
    from crossedge.experiments.mnist import STEPS, reproduce_mnist

    steps = STEPS if options.steps is None else options.steps
    rows = reproduce_mnist(options.out, options.data, steps=steps, seed=options.seed)
    return _show_models(rows, options.out)


def _show_models(rows: list[dict[str, Any]] | None, folder: Path) -> int:
    if rows is None:
        print("stopped; the same command goes on from here")
        return 130
    print("  ".join(f"{name:>16}" for name in rows[0]))
    for row in rows:
        cells = (f"{value:.4g}" if isinstance(value, float) else value for value in row.values())
        print("  ".join(f"{cell!s:>16}" for cell in cells))
    print(f"the figure and quality.csv are in {folder}")
    return 0


def _reproduce_power(options: argparse.Namespace) -> int:
    from crossedge.experiments.power import DIMENSIONS, claims, reproduce_power

    study = reproduce_power(
        options.out,
        repetitions=options.repetitions,
        dimensions=options.dimensions or DIMENSIONS,
        seed=options.seed,
        jobs=1 if options.dask else options.jobs,
        dask=options.dask,
    )
    print(claims(study).to_string(index=False, float_format="{:.3f}".format))
    print(f"tables and figures are in {options.out}")
    return 0
