"""`crossedge learn`: train a generator until the test is fooled."""

from __future__ import annotations

import argparse
import os
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossedge.cli.arguments import phases, scale, seed
from crossedge.learning.configuration import PRESETS, RECIPES, WEIGHTS, Configuration

if TYPE_CHECKING:
    from crossedge.learning.learn import Run


# the names in crossedge.statistics, which imports numpy and scipy
STATISTICS = ("cross", "energy", "fisher", "generalized", "max", "mmd", "mmd_ratio", "weighted")


def add_to(commands: Any) -> None:
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
    learn.add_argument("--temperature", type=scale, help="number, several with commas, or median")
    learn.add_argument("--bandwidth", type=scale, help="of the Gaussian kernel, likewise")
    learn.add_argument("--statistic", choices=STATISTICS)
    learn.add_argument("--standardize", choices=["true", "false", "normal", "pearson3"])
    learn.add_argument("--batch", type=int)
    learn.add_argument(
        "--phases", type=phases, help="EPOCHSxSTEP[@TEMPERATURE], as 100x1e-3,50x1e-4"
    )
    learn.add_argument("--noise", type=int)
    learn.add_argument("--seed", type=seed)
    learn.add_argument("--device", default="cpu", help="as torch names it (default: cpu)")
    learn.set_defaults(run=_learn)


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
