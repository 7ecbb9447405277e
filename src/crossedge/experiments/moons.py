"""The paper's figure on two moons: what each temperature learns, and how normal its null is.

The upper row shows the data and samples of the three models. The lower row shows p-values of a
batch of generated points against a batch of held-out data, at every epoch. Those by the normal law
(the paper's) and by the gamma law with the exact skewness ("pearson3") are plotted against those of
1,000 random labellings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from crossedge.experiments.models import learn_models, write_quality
from crossedge.learning.configuration import with_epochs
from crossedge.learning.learn import Run
from crossedge.learning.pictures import X_COLOUR, Y_COLOUR, save
from crossedge.learning.recipes import PRESETS

MODELS = ("moons-1", "moons-2", "moons-3")
LOWEST_PVALUE = 1e-5  # smaller p-values are drawn here


def reproduce_moons(
    folder: str | Path, *, epochs: int | None = None, seed: int = 0
) -> list[dict[str, Any]]:
    """Train the models, or continue, and write moons.png and quality.csv.

    Parameters
    ----------
    folder : path
        Where the runs and the results are saved.
    epochs : int, optional
        Number of epochs; by default the paper's 500.
    seed : int
        Seed of all models.

    Returns
    -------
    list of dict
        The rows of quality.csv.
    """
    folder = Path(folder)
    presets = {name: replace(PRESETS[name], seed=seed) for name in MODELS}
    if epochs is not None:
        presets = {name: with_epochs(preset, epochs) for name, preset in presets.items()}
    runs = learn_models(folder, presets)
    draw(runs, folder / "moons.png")
    return write_quality(runs, folder / "quality.csv")


def draw(runs: Mapping[str, Run], path: Path) -> None:
    """Draw samples in the upper row and p-values in the lower."""
    figure = Figure(figsize=(11, 5.8), layout="constrained")
    FigureCanvasAgg(figure)
    above, below = figure.subplots(2, 1 + len(runs))
    data = next(iter(runs.values())).dataset
    _points(above[0], data.held_out.numpy(), X_COLOUR, "data")
    below[0].axis("off")
    for run, top, bottom in zip(runs.values(), above[1:], below[1:], strict=True):
        title = f"1-NN, temperature {run.configuration.temperature:g}"
        _points(top, run.sample(1000).numpy(), Y_COLOUR, title)
        _pvalues(bottom, run.folder.metrics())
    for ax in above:
        ax.set_xlim(above[0].get_xlim())
        ax.set_ylim(above[0].get_ylim())
    below[1].set_ylabel("p-value by a law")
    handles, labels = below[1].get_legend_handles_labels()
    below[0].legend(handles, labels, loc="center", frameon=False, title="p-values of a batch")
    save(figure, path, dpi=120)


def _points(ax: Any, points: Any, colour: str, title: str) -> None:
    """Scatter points in the plane."""
    ax.scatter(points[:, 0], points[:, 1], s=4, lw=0, color=colour)
    ax.set_title(title, fontsize=10)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.margins(0.15)


def _pvalues(ax: Any, metrics: list[dict[str, Any]]) -> None:
    """Plot p-values by two laws against those of random labellings, one point for each epoch."""
    exact = np.exp([line["log_pvalue_permutation"] for line in metrics])
    for key, colour, marker, label in (
        ("log_pvalue_normal", Y_COLOUR, "x", "normal"),
        ("log_pvalue", X_COLOUR, "o", "exact skewness"),
    ):
        found = np.exp(np.maximum([line[key] for line in metrics], np.log(LOWEST_PVALUE)))
        ax.plot(exact, found, marker, color=colour, ms=3, mew=0.8, alpha=0.6, label=label)
    ax.plot([LOWEST_PVALUE, 1], [LOWEST_PVALUE, 1], color="black", lw=0.6, ls=":", label="equal")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(7e-4, 1.3)
    ax.set_ylim(LOWEST_PVALUE / 1.5, 1.5)
    ax.set_xlabel("p-value by 1,000 labellings")
