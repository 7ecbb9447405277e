"""`crossedge learn`: train a generator until the test is fooled."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from crossedge.cli.arguments import (
    IMAGE,
    NAMES,
    PHASES,
    SEED,
    STATISTICS,
    TEMPERATURE,
    Answer,
    Task,
    WithHelp,
)
from crossedge.learning.configuration import WEIGHTS, Configuration
from crossedge.learning.recipes import PRESETS, RECIPES, own_recipe
from crossedge.runtime.lazy import installed

if TYPE_CHECKING:
    from crossedge.learning.datasets import Dataset
    from crossedge.learning.learn import Run

RECIPE = "  [default: that of the recipe]"


@click.command("learn", cls=WithHelp, context_settings={"show_default": True})
@click.argument("data")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder of the run.  [default: runs/ and the name of the data or preset]",
)
@click.option(
    "--preset",
    type=click.Choice(sorted(PRESETS)),
    help="A model of the paper, or mnist-gmmn.  [default: our own recipe]",
)
@click.option("--resume", is_flag=True, help="Go on with the run in --out.  [default: no]")
@click.option("--columns", type=NAMES, help="Learn these columns only.  [default: all]")
@click.option("--drop", type=NAMES, help="Leave these columns out.  [default: none]")
@click.option(
    "--header/--no-header",
    default=None,
    help="Whether the first line of a text or sheet names the columns.  [default: by its looks]",
)
@click.option(
    "--image",
    type=IMAGE,
    help="HEIGHTxWIDTH[x3] of images in the rows of a table.  "
    "[default: none; known for folders and for .npy with 3 or 4 axes]",
)
@click.option(
    "--condition",
    metavar="COLUMN",
    help="Labels that the generator is told; label for images.  [default: none]",
)
@click.option(
    "--generator",
    help="mlp, conv for images, or package.module:factory, which is imported and run."
    "  [default: mlp]",
)
@click.option(
    "--average",
    type=float,
    help=f"Decay of the average of the generator's parameters, or 0.{RECIPE}",
)
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
@click.option("--noise", type=int, help=f"Dimensions of the normal noise.{RECIPE}")
@click.option("--signs", type=int, help=f"Number of random signs beside it.{RECIPE}")
@click.option("--seed", type=SEED, help=f"Of the run.{RECIPE}")
@click.option("--device", default="cpu", help="As torch names it.")
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Compare held-out and generated rows on a page of HTML.  [default: none]",
)
@click.option(
    "--tensorboard", is_flag=True, help="Write the folder tensorboard, too.  [default: no]"
)
def command(**options: Any) -> Task:
    """Train a generator until the test is fooled.

    DATA is moons, digits or mnist, or a file or folder of your own: a table as `crossedge test`
    reads it, an array in a .npy file, or a folder of images of one size, or of folders of images,
    one for each label.
    """
    given = SimpleNamespace(**options)
    return Task(lambda task: Answer(_learn(given, task)))


SETTINGS = (
    *("weights", "k", "temperature", "bandwidth", "statistic", "batch", "phases", "noise"),
    *("signs", "average", "generator", "condition", "columns", "drop", "header", "image"),
)


def _configuration(options: SimpleNamespace) -> tuple[Configuration, Dataset | None]:
    """Return the configuration of a new run, and its data if they had to be read for it."""
    given, dataset = _given(options), None
    if options.data in RECIPES:
        base = PRESETS[options.preset] if options.preset else RECIPES[options.data]
        if base.data != options.data:
            raise ValueError(
                f"--preset {options.preset} is for {base.data}, not for {options.data}"
            )
        of_files = [name for name in ("columns", "drop", "header", "image") if name in given]
        if of_files:
            raise ValueError(f"--{of_files[0]} is for files, not for {options.data}: leave it out")
    else:
        dataset, given = _own_data(options, given)
        base = own_recipe(options.data, dataset.train, options.batch)
        if options.preset:
            base = replace(PRESETS[options.preset], data=options.data)
    weights = given.get("weights", base.weights)
    useless = sorted({"temperature", "k", "bandwidth"} & set(given) - set(WEIGHTS[weights]))
    if useless:
        raise ValueError(f"--{useless[0]} does not go with weights {weights!r}: leave it out")
    configuration = replace(base, **given)
    if "temperature" in given and all(phase.temperature for phase in configuration.phases):
        raise ValueError("--temperature is for phases that have none, and all have: leave it out")
    return configuration, dataset


def _own_data(options: SimpleNamespace, given: dict[str, Any]) -> tuple[Dataset, dict[str, Any]]:
    """Read a file or folder, and return the settings with the size of its images."""
    path = Path(options.data)
    if not path.exists():
        known = ", ".join(sorted(RECIPES))
        raise FileNotFoundError(f"{path} is no file or folder, nor one of {known}")
    from crossedge.learning.sources import image_shape, load_own

    if "image" not in given:
        shape = image_shape(path)
        given = {**given, **({"image": shape} if shape else {})}
    reading = ("condition", "columns", "drop", "header", "image")
    settings = {name: given[name] for name in reading if name in given}
    return load_own(Configuration(options.data, **settings)), given


def _given(options: SimpleNamespace) -> dict[str, Any]:
    """Collect the settings that stand on the command line."""
    given = {name: getattr(options, name) for name in (*SETTINGS, "seed")}
    if options.standardize:
        plain = {"true": True, "false": False}
        given["standardize"] = plain.get(options.standardize, options.standardize)
    return {name: value for name, value in given.items() if value is not None}


def _learn(options: SimpleNamespace, task: Task) -> str:
    folder = options.out or Path("runs") / (options.preset or Path(options.data).stem)
    configuration, dataset = _checked(options, folder)
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        return _learn_here(options, folder, configuration, dataset, task)
    import torch
    import torch.distributed as dist

    if options.device == "cuda":  # one for each process that torchrun started
        options.device = f"cuda:{os.environ.get('LOCAL_RANK', 0)}"
        torch.cuda.set_device(options.device)
    dist.init_process_group("cpu:gloo,cuda:nccl" if "cuda" in options.device else "gloo")
    try:
        return _learn_here(options, folder, configuration, dataset, task)
    finally:
        dist.destroy_process_group()


def _checked(options: SimpleNamespace, folder: Path) -> tuple[Configuration, Dataset | None]:
    """Check what can be checked without torch, and return the configuration of the run."""
    from crossedge.learning.datasets import mnist_files
    from crossedge.learning.runs import RunFolder

    if options.folder and options.data != "mnist":
        what = "reads no files" if options.data in RECIPES else "is a file or folder itself"
        raise ValueError(f"--data is for mnist, and {options.data} {what}: leave it out")
    if options.report is not None:
        from crossedge.reports.verb import check_target

        check_target(options.report)
    if options.tensorboard and not installed("tensorboard"):
        raise ImportError("--tensorboard needs tensorboard: pip install 'crossedge[tensorboard]'")
    if _is_restarted() and RunFolder(folder).holds_a_run():
        return RunFolder(folder).configuration(), None
    dataset = None
    if options.resume:
        given = [name for name in _given(options) if name != "generator"] + ["preset"] * bool(
            options.preset and options.out
        )
        if given:
            names = ", ".join(f"--{name}" for name in given)
            raise ValueError(f"--resume goes on with the settings of the run: leave out {names}")
        configuration = RunFolder(folder).configuration()
        if configuration.data != options.data:
            raise ValueError(f"{folder} holds a run on {configuration.data}")
    else:
        RunFolder(folder).check_vacant()
        configuration, dataset = _configuration(options)
    if options.data == "mnist":
        mnist_files(options.folder)
    return configuration, dataset


def _is_restarted() -> bool:
    """Return whether torchrun has started this process anew, because another had failed."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0


def _check_device(name: str) -> None:
    import torch

    try:
        torch.empty(1, device=name)
    except (RuntimeError, AssertionError):
        raise ValueError(f"--device {name} is not here: leave it out, or give another") from None


def _learn_here(
    options: SimpleNamespace,
    folder: Path,
    configuration: Configuration,
    dataset: Dataset | None,
    task: Task,
) -> str:
    from crossedge.learning.learn import Run
    from crossedge.learning.progress import train_with_bar
    from crossedge.learning.runs import RunFolder

    _check_device(options.device)
    if options.resume or (_is_restarted() and RunFolder(folder).holds_a_run()):
        run = Run.load(folder, options.folder, options.device, options.generator)
    else:
        run = Run.begin(folder, configuration, options.folder, options.device, dataset)
    also = _board(run) if options.tensorboard and run.leads else None
    task.interrupted = lambda: (
        f"interrupted after epoch {run.saved}; go on with --resume --out {shlex.quote(str(folder))}"
    )
    train_with_bar(run, folder.name, also)
    if not run.leads:
        return ""
    text = _quality(run)
    return f"{text}\n{_report(run, options.report)}" if options.report else text


def _board(run: Run) -> Callable[[dict[str, Any]], None]:
    from crossedge.learning.board import writer_of

    return writer_of(run)


def _report(run: Run, target: Path) -> str:
    """Write the page that compares held-out with generated rows."""
    from crossedge.findings import find
    from crossedge.reports.verb import write

    real = run.layout.decode(run.dataset.held_out.double().numpy())
    fake = run.rows(len(real), seed=1)
    found = find(real, fake, rng=0, with_witness=True)
    command = f"crossedge test {run.configuration.data} {run.folder.path} --report {target}"
    write(found, target, ("held-out data", "generated"), reproduce=command, seed=0)
    return f"report: {target}"


def _quality(run: Run) -> str:
    found = run.finish()
    lines = [f"quality on held-out data, in {run.folder.path}/quality.json:"]
    perfect = found.pop("training_data")
    for name, value in found.items():
        text = f"{value:.4g}" if isinstance(value, float) else f"{value}"
        also = f"   (training data: {perfect[name]:.4g})" if name in perfect else ""
        lines.append(f"  {name:<17} {text}{also}")
    return "\n".join(lines)
