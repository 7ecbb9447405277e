"""`crossedge learn`: train a generator until the test is fooled."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from crossedge.cli.arguments import PHASES, SEED, STATISTICS, TEMPERATURE, Answer, Task, WithHelp
from crossedge.learning.configuration import PRESETS, RECIPES, WEIGHTS, Configuration

if TYPE_CHECKING:
    from crossedge.learning.learn import Run

RECIPE = "  [default: that of the recipe]"


@click.command("learn", cls=WithHelp, context_settings={"show_default": True})
@click.argument("data", type=click.Choice(sorted(RECIPES)))
@click.option(
    "--out", type=click.Path(path_type=Path), help="Folder of the run.  [default: runs/DATA]"
)
@click.option(
    "--preset",
    type=click.Choice(sorted(PRESETS)),
    help="A model of the paper, or mnist-gmmn.  [default: our own recipe]",
)
@click.option("--resume", is_flag=True, help="Go on with the run in --out.")
@click.option("--data", "folder", help="Folder of the MNIST files.  [default: none]")
@click.option("--weights", type=click.Choice(list(WEIGHTS)), help=f"Of the test.{RECIPE}")
@click.option("--k", type=int, help=f"Number of nearest neighbours.{RECIPE}")
@click.option(
    "--temperature", type=TEMPERATURE, help=f"Number, several with commas, or median.{RECIPE}"
)
@click.option("--bandwidth", type=TEMPERATURE, help=f"Of the Gaussian kernel, likewise.{RECIPE}")
@click.option("--statistic", type=click.Choice(STATISTICS), help=f"Of the test.{RECIPE}")
@click.option(
    "--standardize",
    type=click.Choice(["true", "false", "normal", "pearson3"]),
    help=f"What becomes of the statistic.{RECIPE}",
)
@click.option("--batch", type=int, help=f"Points of each sample in a step.{RECIPE}")
@click.option(
    "--phases", type=PHASES, help=f"EPOCHSxSTEP[@TEMPERATURE], as 100x1e-3,50x1e-4.{RECIPE}"
)
@click.option("--noise", type=int, help=f"Dimensions of the noise.{RECIPE}")
@click.option("--seed", type=SEED, help=f"Of the run.{RECIPE}")
@click.option("--device", default="cpu", help="As torch names it.")
def command(**options: Any) -> Task:
    """Train a generator until the test is fooled."""
    given = SimpleNamespace(**options)
    return Task(lambda task: Answer(_learn(given, task)))


SETTINGS = ("weights", "k", "temperature", "bandwidth", "statistic", "batch", "phases", "noise")


def _configuration(options: SimpleNamespace) -> Configuration:
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


def _given(options: SimpleNamespace) -> dict[str, Any]:
    """Collect the settings that stand on the command line."""
    given = {name: getattr(options, name) for name in (*SETTINGS, "seed")}
    if options.standardize:
        plain = {"true": True, "false": False}
        given["standardize"] = plain.get(options.standardize, options.standardize)
    return {name: value for name, value in given.items() if value is not None}


def _learn(options: SimpleNamespace, task: Task) -> str:
    folder = options.out or Path("runs") / (options.preset or options.data)
    configuration = _checked(options, folder)
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        return _learn_here(options, folder, configuration, task)
    import torch
    import torch.distributed as dist

    if options.device == "cuda":  # one for each process that torchrun started
        options.device = f"cuda:{os.environ.get('LOCAL_RANK', 0)}"
        torch.cuda.set_device(options.device)
    dist.init_process_group("cpu:gloo,cuda:nccl" if "cuda" in options.device else "gloo")
    try:
        return _learn_here(options, folder, configuration, task)
    finally:
        dist.destroy_process_group()


def _checked(options: SimpleNamespace, folder: Path) -> Configuration:
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


def _learn_here(
    options: SimpleNamespace, folder: Path, configuration: Configuration, task: Task
) -> str:
    from crossedge.learning.learn import Run
    from crossedge.learning.progress import train_with_bar

    _check_device(options.device)
    if options.resume:
        run = Run.resume(folder, options.folder, options.device)
    else:
        run = Run.begin(folder, configuration, options.folder, options.device)
    task.interrupted = lambda: (
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
