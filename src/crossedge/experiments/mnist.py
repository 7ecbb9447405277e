"""The paper's MNIST figure: its four models, a GMMN (Li and co-authors, 2015) and our recipe.

Each model has as few epochs as make at least the given number of steps. All models have equally
many steps if that number is a multiple of 468, the steps of an epoch in batches of 128.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from crossedge.experiments.models import learn_models, write_quality
from crossedge.learning.configuration import with_steps
from crossedge.learning.datasets import load
from crossedge.learning.learn import Run
from crossedge.learning.pictures import save, show_images
from crossedge.learning.recipes import PRESETS, RECIPES

MODELS = {  # name of a preset, or "recipe" -> title of its panel
    "mnist-1": "1-NN, temperature 10, 256 points",
    "mnist-2": "1-NN, temperature 10, 512 points",
    "mnist-3": "tree, temperature 10, 128 points",
    "mnist-4": "tree, temperature 5, 128 points",
    "mnist-gmmn": "MMD of six bandwidths, 256 points",
    "recipe": "the default recipe",
}
STEPS = 4680  # default number of optimiser steps: 10 epochs of 60,000 images in batches of 128


def reproduce_mnist(
    folder: str | Path, data: str | None = None, *, steps: int = STEPS, seed: int = 0
) -> list[dict[str, Any]]:
    """Train the models, or continue, and write mnist.png and quality.csv.

    Parameters
    ----------
    folder : path
        Where the runs and the results are saved.
    data : str, optional
        Folder of the MNIST files, as in `load`.
    steps : int
        Least number of optimiser steps for each model.
    seed : int
        Seed of all models.

    Returns
    -------
    list of dict
        The rows of quality.csv.
    """
    folder, points = Path(folder), len(load("mnist", data).train)
    known = {**PRESETS, "recipe": RECIPES["mnist"]}
    models = {name: with_steps(replace(known[name], seed=seed), steps, points) for name in MODELS}
    runs = learn_models(folder, models, data)
    draw(runs, folder / "mnist.png")
    return write_quality(runs, folder / "quality.csv")


def draw(runs: Mapping[str, Run], path: Path) -> None:
    """Draw a sheet of 100 samples of each model, with its Frechet distance."""
    figure = Figure(figsize=(11, 7.8), layout="constrained")
    FigureCanvasAgg(figure)
    for ax, (name, run) in zip(figure.subplots(2, 3).flat, runs.items(), strict=False):
        show_images(ax, run.sample(100), run.dataset.side)
        frechet = (run.quality() or {}).get("frechet_distance", float("nan"))
        ax.set_title(f"{MODELS[name]}\nFrechet distance {frechet:.1f}", fontsize=10)
    save(figure, path)
