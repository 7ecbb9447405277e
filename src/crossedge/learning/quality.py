"""Quality of generated points, measured against held-out data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import nn

from crossedge.learning.classifier import classifier_of, features
from crossedge.learning.datasets import Dataset
from crossedge.verbs import two_sample
from crossedge.weights import EnergyKernel

MAX_POINTS = 1000  # real points, and generated ones, that are compared: all costs are quadratic
NEIGHBOURS = 5  # k of density and coverage


def measure_quality(dataset: Dataset, generated: torch.Tensor) -> dict[str, Any]:
    """Return measures of generated points against held-out points.

    These are the adaptive test, the energy distance, density and coverage, and for images the
    Frechet distance and the numbers of points in each class. "training_data" holds the measures for
    as many training points in place of generated ones, which a perfect generator would attain.
    """
    real, fake = _some(dataset.held_out), generated[:MAX_POINTS].double()
    test = two_sample(real, fake, n_resamples=999, rng=0)
    lead = test.strongest
    classifier = classifier_of(dataset) if dataset.is_images else None
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


def _some(points: torch.Tensor) -> torch.Tensor:
    """Draw points without replacement from a fixed seed.

    The first points would not do: the first images of MNIST are by other writers than the last.
    """
    order = torch.randperm(len(points), generator=torch.Generator().manual_seed(0))
    return points[order[:MAX_POINTS]].double()


def _measures(
    real: torch.Tensor, fake: torch.Tensor, classifier: nn.Module | None
) -> dict[str, float]:
    """Return energy distance, density and coverage; with a classifier, the Frechet distance too."""
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
    return found


def density_and_coverage(real: torch.Tensor, fake: torch.Tensor) -> tuple[float, float]:
    """Return density and coverage of generated points (Naeem and co-authors, 2020).

    Around each real point lies a ball that reaches to its 5th nearest real neighbour. Density is
    the number of balls that a generated point lies in, averaged over generated points and divided
    by 5; samples of the data have 1 on average. Coverage is the share of balls with at least one
    generated point.
    """
    radius = torch.cdist(real, real).kthvalue(NEIGHBOURS + 1, dim=1).values
    inside = torch.cdist(real, fake) < radius[:, None]
    density = float(inside.double().sum(0).mean()) / NEIGHBOURS
    return density, float(inside.any(1).double().mean())


def frechet_distance(real: torch.Tensor, fake: torch.Tensor) -> float:
    """Return the squared Frechet distance of two samples.

    It is the distance of the normal laws with their means m, n and covariances A, B,
    |m - n|^2 + tr(A + B - 2 (A B)^(1/2)). The trace of (A B)^(1/2) is the sum of the singular
    values of A^(1/2) B^(1/2).
    """
    means = real.mean(0) - fake.mean(0)
    roots = [_root(np.atleast_2d(np.cov(part.numpy().T))) for part in (real, fake)]
    a, b = roots
    common = np.linalg.svd(a @ b, compute_uv=False).sum()
    return float(means @ means) + float(np.trace(a @ a) + np.trace(b @ b) - 2 * common)


def _root(matrix: Any) -> Any:
    """Return the symmetric square root of a positive semidefinite matrix."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
