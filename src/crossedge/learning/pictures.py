"""Pictures of a training run: generated samples, and the loss by epoch."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from crossedge.learning.datasets import Dataset

X_COLOUR, Y_COLOUR = "#4477aa", "#ee6677"  # of the data, and of generated points
IMAGES_PER_ROW = 12  # the sheet has as many rows


def draw_samples(dataset: Dataset, generated: torch.Tensor, path: Path, title: str) -> None:
    """Draw generated points over held-out points in the plane, or a sheet of generated images."""
    figure = Figure(figsize=(4.5, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    ax = figure.subplots()
    if dataset.is_images:
        show_images(ax, generated[: IMAGES_PER_ROW * IMAGES_PER_ROW], dataset.side)
    else:
        for points, colour, label in (
            (dataset.held_out, X_COLOUR, "data"),
            (generated, Y_COLOUR, "generated"),
        ):
            across, up = points[:, 0].numpy(), points[:, 1].numpy()
            ax.scatter(across, up, s=4, color=colour, lw=0, label=label)
        low, high = dataset.train.min(0).values, dataset.train.max(0).values
        margin = 0.25 * (high - low)
        ax.set_xlim(float(low[0] - margin[0]), float(high[0] + margin[0]))
        ax.set_ylim(float(low[1] - margin[1]), float(high[1] + margin[1]))
        ax.legend(frameon=False, markerscale=3, loc="upper right")
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_title(title, fontsize=10)
    save(figure, path)


def show_images(ax: Any, images: torch.Tensor, side: int) -> None:
    """Draw images as a square sheet; those beyond the largest square are left out."""
    across = math.isqrt(len(images))
    sheet = images[: across * across].reshape(across, across, side, side).permute(0, 2, 1, 3)
    ax.imshow(
        sheet.reshape(across * side, -1).numpy(),
        cmap="gray_r",
        vmin=-1,
        vmax=1,
        interpolation="nearest",
    )
    ax.set_xticks([])
    ax.set_yticks([])


def draw_metrics(metrics: list[dict[str, Any]], path: Path) -> None:
    """Plot the loss and the logarithm of the p-value by epoch, cut off at 10^-50."""
    figure = Figure(figsize=(6, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    top, bottom = figure.subplots(2, sharex=True)
    epochs = [line["epoch"] for line in metrics]
    top.plot(epochs, [line["loss"] for line in metrics], color=X_COLOUR, lw=1)
    top.set_ylabel("loss")
    log_p = np.maximum([line["log_pvalue"] / np.log(10) for line in metrics], -50)
    bottom.plot(epochs, log_p, color=Y_COLOUR, lw=1)
    bottom.axhline(np.log10(0.05), color="black", lw=0.6, ls=":")
    bottom.set_ylabel("log10 p of a batch")
    bottom.set_xlabel("epoch")
    save(figure, path)


def save(figure: Figure, path: Path, dpi: int = 110) -> None:
    """Write a figure beside its place and move it there, so that no reader sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.stem + ".new.png")
    figure.savefig(temporary, dpi=dpi)
    os.replace(temporary, path)
