"""The paper's figure on MNIST: its four models, a GMMN, and our own recipe.

Each has the epochs that make at least so many steps: the same number for all, if it is a multiple
of 468, an epoch of 60,000 images in batches of 128.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from crossedge.experiments.models import learn_models, write_quality
from crossedge.learning.configuration import PRESETS, RECIPES, with_steps
from crossedge.learning.datasets import load
from crossedge.learning.learn import Run
from crossedge.learning.pictures import save, show_images

MODELS = {
    "mnist-1": "1-NN, temperature 10, 256 points",
    "mnist-2": "1-NN, temperature 10, 512 points",
    "mnist-3": "tree, temperature 10, 128 points",
    "mnist-4": "tree, temperature 5, 128 points",
    "mnist-gmmn": "MMD of six bandwidths, 256 points",
    "recipe": "the default recipe",
}
STEPS = 4680


def reproduce_mnist(
    folder: str | Path, data: str | None = None, *, steps: int = STEPS, seed: int = 0
) -> list[dict[str, Any]]:
    """Learn the models in the folder, or go on there; leaves mnist.png and quality.csv."""
    folder, points = Path(folder), len(load("mnist", data).train)
    known = {**PRESETS, "recipe": RECIPES["mnist"]}
    models = {name: with_steps(replace(known[name], seed=seed), steps, points) for name in MODELS}
    runs = learn_models(folder, models, data)
    draw(runs, folder / "mnist.png")
    return write_quality(runs, folder / "quality.csv")


def draw(runs: Mapping[str, Run], path: Path) -> None:
    figure = Figure(figsize=(11, 7.8), layout="constrained")
    FigureCanvasAgg(figure)
    for ax, (name, run) in zip(figure.subplots(2, 3).flat, runs.items(), strict=False):
        show_images(ax, run.sample(100), run.dataset.side)
        frechet = (run.quality() or {}).get("frechet_distance", float("nan"))
        ax.set_title(f"{MODELS[name]}\nFrechet distance {frechet:.1f}", fontsize=10)
    save(figure, path)
