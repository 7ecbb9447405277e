"""Quality of generated points, measured against held-out data."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from crossedge.learning.classifier import classifier_of, features
from crossedge.learning.datasets import Dataset
from crossedge.learning.measures import (
    classifier_accuracy,
    density_and_coverage,
    frechet_distance,
    kernel_distance,
    precision_and_recall,
)
from crossedge.verbs import two_sample
from crossedge.weights import EnergyKernel

MAX_POINTS = 1000  # real points, and generated ones, that are compared: all costs are quadratic


def measure_quality(dataset: Dataset, generated: torch.Tensor) -> dict[str, Any]:
    """Return measures of generated points against held-out points.

    These are the adaptive test, the energy distance, density and coverage. For images there are the
    numbers of points in each class, and, in the features of a classifier, the Frechet distance, a
    kernel distance, precision and recall, and how often a linear classifier tells real from
    generated points. "training_data" holds the measures for
    as many training points in place of generated ones, which a perfect generator would attain.
    """
    real, fake = _some(dataset.held_out), generated[:MAX_POINTS].double()
    test = two_sample(real, fake, n_resamples=999, rng=0)
    lead = test.strongest
    pixels = dataset.layout.dimension  # without labels that the generator is told
    classifier = _classifier(dataset, pixels) if dataset.is_images else None
    found: dict[str, Any] = {
        "pvalue": test.pvalue,
        "carried_by": f"{lead.weights.name}, {lead.statistic}" if lead else None,
        "evidence": test.statistic,
        **_measures(real, fake, classifier),
    }
    if classifier is not None:
        for name, part in (("classes", fake), ("classes_of_data", real)):
            with torch.no_grad():
                classes = classifier(part.float()).argmax(1)
            found[name] = torch.bincount(classes, minlength=10).tolist()
    same = _measures(real, _some(dataset.train), classifier)
    return {**found, "training_data": same}


def _classifier(dataset: Dataset, pixels: int) -> nn.Sequential:
    """Return the classifier of images, which looks at nothing but their pixels."""
    bare = replace(dataset, train=dataset.train[:, :pixels], known_layout=None)
    layers = list(classifier_of(bare).children())
    return nn.Sequential(_Pixels(pixels), *layers)


class _Pixels(nn.Module):
    """The first columns of points."""

    def __init__(self, pixels: int) -> None:
        super().__init__()
        self.pixels = pixels

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        return points[:, : self.pixels]


def _some(points: torch.Tensor) -> torch.Tensor:
    """Draw points without replacement from a fixed seed.

    The first points would not do: the first images of MNIST are by other writers than the last.
    """
    order = torch.randperm(len(points), generator=torch.Generator().manual_seed(0))
    return points[order[:MAX_POINTS]].double()


def _measures(
    real: torch.Tensor, fake: torch.Tensor, classifier: nn.Module | None
) -> dict[str, float]:
    """Return energy distance, density and coverage; with a classifier, measures in its features."""
    energy = two_sample(real, fake, EnergyKernel(), n_resamples=1, rng=0).statistic
    density, coverage = density_and_coverage(real, fake)
    found = {
        "energy_distance": math.sqrt(max(energy, 0.0)),
        "density": density,
        "coverage": coverage,
    }
    if classifier is not None:
        with torch.no_grad():
            inside = [features(classifier, part.float()) for part in (real, fake)]
        found["frechet_distance"] = frechet_distance(*inside)
        found["kernel_distance"] = kernel_distance(*inside)
        found["precision"], found["recall"] = precision_and_recall(*inside)
        found["classifier_accuracy"] = classifier_accuracy(*inside)
    return found
