"""The command line: `crossedge test`, `crossedge learn` and `crossedge reproduce`.

Only light modules are imported at the top, so that help and complaints come at once: whatever needs
torch is imported by the command that needs it, after its arguments and files have been checked.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossedge import __version__
from crossedge.interrupts import run_interruptibly
from crossedge.learning.configuration import PRESETS, RECIPES, WEIGHTS, Configuration, Phase

if TYPE_CHECKING:
    from crossedge.learning.learn import Run

# the names in crossedge.statistics, which needs torch
STATISTICS = ("cross", "energy", "fisher", "generalized", "max", "mmd", "mmd_ratio", "weighted")
FAULTS = (ValueError, TypeError, OSError, ImportError, MemoryError, FloatingPointError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    That is 0; or 1 after a line on stderr that says what is wrong; or 130 after an interrupt, which
    ends a command at once and leaves a line too.
    """
    options = argparse.Namespace(interrupted=lambda: "interrupted", in_thread=True)
    try:
        run_interruptibly(lambda: _parser().parse_args(arguments, options))
        return run_interruptibly(lambda: _run(options)) if options.in_thread else _run(options)
    except KeyboardInterrupt as stopped:
        if os.environ.get("RANK", "0") == "0":  # one of the processes of torchrun speaks for all
            _complain(str(stopped) or options.interrupted())
        return 130


def _run(options: argparse.Namespace) -> int:
    try:
        answer: str = options.run(options)
    except FAULTS as error:
        _complain(str(error) or f"{type(error).__name__}, without a word")
        return 1
    answer = answer.replace("±", "±" if _can_say("±") else "+-")
    print(answer, end="\n" if answer else "")  # pipes that are closed: see __main__.py
    return 0


def _can_say(text: str) -> bool:
    """Return whether the output can encode the text."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _complain(text: str) -> None:
    print("crossedge:", " ".join(text.split()), file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="crossedge", description="Do two samples come from the same distribution?"
    )
    parser.add_argument("--version", action="version", version=f"crossedge {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    test = commands.add_parser("test", help="compare two files of points (.csv or .npy)")
    test.add_argument("x", type=Path, help="a point in each row; the first may name the columns")
    test.add_argument("y", type=Path, help="likewise; columns are matched by name, if any")
    test.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="whether the first line of each .csv names the columns (default: by its looks)",
    )
    test.add_argument(
        "--resamples", type=_count(1), default=9999, help="random labellings (%(default)s)"
    )
    test.add_argument("--seed", type=_seed, default=0, help="of the labellings (%(default)s)")
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
    learn.add_argument("--statistic", choices=STATISTICS)
    learn.add_argument("--standardize", choices=["true", "false", "normal", "pearson3"])
    learn.add_argument("--batch", type=int)
    learn.add_argument(
        "--phases", type=_phases, help="EPOCHSxSTEP[@TEMPERATURE], as 100x1e-3,50x1e-4"
    )
    learn.add_argument("--noise", type=int)
    learn.add_argument("--seed", type=_seed)
    learn.add_argument("--device", default="cpu", help="as torch names it (default: cpu)")
    learn.set_defaults(run=_learn)
    reproduce = commands.add_parser("reproduce", help="a figure of the paper, from the beginning")
    figures = reproduce.add_subparsers(required=True, metavar="figure")
    power = figures.add_parser("power", help="the power of smoothed, classical and kernel tests")
    power.add_argument("--out", type=Path, default=Path("reproduction/power"), help="folder")
    power.add_argument("--repetitions", type=_count(1), default=300)
    power.add_argument("--dimensions", type=_dimensions, help="with commas, as 2,8,32")
    power.add_argument("--seed", type=_seed, default=0)
    workers = power.add_mutually_exclusive_group()
    workers.add_argument("--jobs", type=_jobs, default=-1, help="processes (default: every core)")
    workers.add_argument("--dask", metavar="ADDRESS", help="the scheduler of a Dask cluster")
    power.set_defaults(run=_reproduce_power, in_thread=False)
    moons = figures.add_parser("moons", help="two moons, learnt at three temperatures")
    moons.add_argument("--out", type=Path, default=Path("reproduction/moons"), help="folder")
    moons.add_argument("--epochs", type=_count(1), help="of each model (default: the paper's 500)")
    moons.add_argument("--seed", type=_seed, default=0)
    moons.set_defaults(run=_reproduce_moons)
    mnist = figures.add_parser("mnist", help="the models of MNIST, a GMMN and our own recipe")
    mnist.add_argument("--out", type=Path, default=Path("reproduction/mnist"), help="folder")
    mnist.add_argument("--data", help="folder of the MNIST files")
    mnist.add_argument("--steps", type=_count(1), help="of each model")
    mnist.add_argument("--seed", type=_seed, default=0)
    mnist.set_defaults(run=_reproduce_mnist)
    for figure in (power, moons, mnist):
        figure.set_defaults(interrupted=lambda: "interrupted; the same command goes on from here")
    return parser


def _count(least: int, most: int = 10**9) -> Callable[[str], int]:
    """Make a type of argument: whole numbers from the least to the most."""

    def count(text: str) -> int:
        number = _whole(text)
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f"{number} is out of range: give {least} to {most}")
        return number

    return count


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from None


_seed = _count(0, 2**63 - 1)


def _jobs(text: str) -> int:
    jobs = _whole(text)
    if jobs < 1 and jobs != -1:
        raise argparse.ArgumentTypeError(f"{jobs} is no number of processes: give 1 or more, or -1")
    return jobs


def _dimensions(text: str) -> tuple[int, ...]:
    return tuple(_count(1)(part) for part in text.split(","))


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


def _test(options: argparse.Namespace) -> str:
    from crossedge.tables import read_two

    x, y = read_two(options.x, options.y, options.header)
    from crossedge.verbs import two_sample  # after the files: it imports torch

    return str(two_sample(x, y, n_resamples=options.resamples, rng=options.seed))


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
    configuration = replace(base, **given)
    if "temperature" in given and all(phase.temperature for phase in configuration.phases):
        raise ValueError("--temperature is for phases that have none, and all have: leave it out")
    return configuration


def _given(options: argparse.Namespace) -> dict[str, Any]:
    """Collect the settings that stand on the command line."""
    given = {name: getattr(options, name) for name in (*SETTINGS, "seed")}
    if options.standardize:
        plain = {"true": True, "false": False}
        given["standardize"] = plain.get(options.standardize, options.standardize)
    return {name: value for name, value in given.items() if value is not None}


def _learn(options: argparse.Namespace) -> str:
    folder = options.out or Path("runs") / (options.preset or options.data)
    configuration = _checked(options, folder)
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        return _learn_here(options, folder, configuration)
    import torch
    import torch.distributed as dist

    if options.device == "cuda":  # one for each process that torchrun started
        options.device = f"cuda:{os.environ.get('LOCAL_RANK', 0)}"
        torch.cuda.set_device(options.device)
    dist.init_process_group("cpu:gloo,cuda:nccl" if "cuda" in options.device else "gloo")
    try:
        return _learn_here(options, folder, configuration)
    finally:
        dist.destroy_process_group()


def _checked(options: argparse.Namespace, folder: Path) -> Configuration:
    """Check what can be checked without torch, and return the configuration of the run."""
    from crossedge.learning.datasets import mnist_files
    from crossedge.learning.runs import RunFolder

    if options.folder and options.data != "mnist":
        raise ValueError(f"--data is for mnist, and {options.data} reads no files: leave it out")
    if options.resume:
        given = list(_given(options)) + ["preset"] * bool(options.preset and options.out)
        if given:
            names = ", ".join(f"--{name}" for name in given)
            raise ValueError(f"--resume goes on with the settings of the run: leave out {names}")
        configuration = RunFolder(folder).configuration()
        if configuration.data != options.data:
            raise ValueError(f"{folder} holds a run on {configuration.data}")
    else:
        configuration = _configuration(options)
        RunFolder(folder).check_vacant()
    if options.data == "mnist":
        mnist_files(options.folder)
    return configuration


def _check_device(name: str) -> None:
    import torch

    try:
        torch.empty(1, device=name)
    except (RuntimeError, AssertionError):
        raise ValueError(f"--device {name} is not here: leave it out, or give another") from None


def _learn_here(options: argparse.Namespace, folder: Path, configuration: Configuration) -> str:
    from crossedge.learning.learn import Run
    from crossedge.learning.progress import train_with_bar

    _check_device(options.device)
    if options.resume:
        run = Run.resume(folder, options.folder, options.device)
    else:
        run = Run.begin(folder, configuration, options.folder, options.device)
    options.interrupted = lambda: (
        f"interrupted after epoch {run.saved}; go on with --resume --out {shlex.quote(str(folder))}"
    )
    train_with_bar(run, folder.name)
    return _quality(run) if run.leads else ""


def _quality(run: Run) -> str:
    found = run.finish()
    lines = [f"quality on held-out data, in {run.folder.path}/quality.json:"]
    perfect = found.pop("training_data")
    for name, value in found.items():
        text = f"{value:.4g}" if isinstance(value, float) else f"{value}"
        also = f"   (training data: {perfect[name]:.4g})" if name in perfect else ""
        lines.append(f"  {name:<17} {text}{also}")
    return "\n".join(lines)


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
