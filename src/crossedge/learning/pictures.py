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
LEGEND = ("data", "generated")
MAX_POINTS = 5000  # from which principal components are computed
IMAGES_PER_ROW = 12  # the sheet has as many rows


def draw_samples(dataset: Dataset, generated: torch.Tensor, path: Path, title: str) -> None:
    """Draw generated points over held-out points, or a sheet of generated images."""
    figure = Figure(figsize=(4.5, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    ax = figure.subplots()
    image = dataset.layout.image
    if image is not None:
        low = -1 if dataset.layout.range == "symmetric" else 0
        values = (generated[: IMAGES_PER_ROW * IMAGES_PER_ROW] - low) / (1 - low)
        show_sheet(ax, values[:, : dataset.layout.dimension], image)
    elif dataset.dimension == 1:
        shown = (dataset.held_out[:, 0].numpy(), generated[:, 0].numpy())
        ax.hist(shown, bins=40, density=True, color=(X_COLOUR, Y_COLOUR), label=LEGEND)
        ax.legend(frameon=False)
    else:
        _scatter(ax, *_in_the_plane(dataset.train, dataset.held_out, generated))
        if dataset.dimension > 2:
            ax.set_xlabel("two principal components of the data", fontsize=8)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_title(title, fontsize=10)
    save(figure, path)


def _in_the_plane(train: torch.Tensor, *others: torch.Tensor) -> list[torch.Tensor]:
    """Return samples in the plane of the two principal components of the first."""
    if train.shape[1] == 2:
        return [train, *others]
    some = train[:MAX_POINTS].double()
    axes = torch.linalg.svd(some - some.mean(0), full_matrices=False)[2][:2]
    axes = axes * axes.sum(1, keepdim=True).sign()  # one of the two signs, on every machine
    return [(sample.double() - some.mean(0)) @ axes.T for sample in (train, *others)]


def _scatter(ax: Any, train: torch.Tensor, held_out: torch.Tensor, generated: torch.Tensor) -> None:
    for points, colour, label in zip(
        (held_out, generated), (X_COLOUR, Y_COLOUR), LEGEND, strict=True
    ):
        across, up = points[:, 0].numpy(), points[:, 1].numpy()
        ax.scatter(across, up, s=4, color=colour, lw=0, label=label)
    low, high = train.min(0).values, train.max(0).values
    margin = 0.25 * (high - low)
    ax.set_xlim(float(low[0] - margin[0]), float(high[0] + margin[0]))
    ax.set_ylim(float(low[1] - margin[1]), float(high[1] + margin[1]))
    ax.legend(frameon=False, markerscale=3, loc="upper right")


def show_images(ax: Any, images: torch.Tensor, side: int) -> None:
    """Draw images with values in [-1, 1] as a square sheet."""
    show_sheet(ax, (images + 1) / 2, (side, side, 1))


def show_sheet(ax: Any, images: torch.Tensor, shape: tuple[int, int, int]) -> None:
    """Draw images with values in [0, 1] as a square sheet.

    Those beyond the largest square are left out.
    """
    height, width, channels = shape
    across = math.isqrt(len(images))
    sheet = images[: across * across].reshape(across, across, height, width, channels)
    sheet = sheet.permute(0, 2, 1, 3, 4).reshape(across * height, across * width, channels)
    drawn = sheet.clamp(0, 1).float().numpy()
    if channels != 3:
        drawn = drawn.mean(2)
    ax.imshow(drawn, cmap="gray_r", vmin=0, vmax=1, interpolation="nearest")
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
