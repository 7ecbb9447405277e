"""Measures of samples that know no graph test: balls of neighbours, kernels and classifiers.

All compare real points with generated ones, both as rows of double precision. For images they are
computed on the features of a classifier.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

NEIGHBOURS = 5  # the ball of a point reaches to its 5th nearest neighbour
FOLDS = 4  # of the cross-validation of a classifier
SHRINKAGE = 1e-3  # of its coefficients on standardised columns


def density_and_coverage(real: torch.Tensor, fake: torch.Tensor) -> tuple[float, float]:
    """Return density and coverage of generated points (Naeem and co-authors, 2020).

    Around each real point lies a ball that reaches to its 5th nearest real neighbour. Density is
    the number of balls that a generated point lies in, averaged over generated points and divided
    by 5; samples of the data have 1 on average. Coverage is the share of balls with at least one
    generated point.
    """
    inside = torch.cdist(real, fake) < _radii(real)[:, None]
    density = float(inside.double().sum(0).mean()) / NEIGHBOURS
    return density, float(inside.any(1).double().mean())


def precision_and_recall(real: torch.Tensor, fake: torch.Tensor) -> tuple[float, float]:
    """Return precision and recall of generated points (Kynkaanniemi and co-authors, 2019).

    Precision is the share of generated points in the balls around real points, and recall that of
    real points in the balls around generated ones.
    """
    between = torch.cdist(real, fake)
    precision = (between < _radii(real)[:, None]).any(0).double().mean()
    recall = (between < _radii(fake)).any(1).double().mean()
    return float(precision), float(recall)


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


def kernel_distance(real: torch.Tensor, fake: torch.Tensor) -> float:
    """Return the squared MMD with the kernel (x.y / d + 1)^3, without bias.

    On the features of a classifier it is the kernel inception distance (Binkowski and co-authors,
    2018), but for the classifier. It may be negative, and is 0 on average for equal distributions.
    """

    def kernel(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return (a @ b.T / a.shape[1] + 1) ** 3

    def mean_off_diagonal(matrix: torch.Tensor) -> torch.Tensor:
        n = len(matrix)
        return (matrix.sum() - matrix.trace()) / (n * (n - 1))

    within = mean_off_diagonal(kernel(real, real)) + mean_off_diagonal(kernel(fake, fake))
    return float(within - 2 * kernel(real, fake).mean())


def classifier_accuracy(real: torch.Tensor, fake: torch.Tensor) -> float:
    """Return the share of points that a linear classifier tells right, by cross-validation.

    It is a logistic regression of real against generated points. 0.5 is chance.
    """
    points = torch.cat([real, fake])
    is_fake = torch.cat([torch.zeros(len(real)), torch.ones(len(fake))]).double()
    generator = torch.Generator().manual_seed(0)
    order = torch.randperm(len(points), generator=generator)
    right = 0
    for held_out in order.chunk(FOLDS):
        seen = torch.ones(len(points), dtype=torch.bool)
        seen[held_out] = False
        mean, scale = points[seen].mean(0), points[seen].std(0).clamp_min(1e-12)
        score = _logistic((points[seen] - mean) / scale, is_fake[seen])
        guess = score((points[held_out] - mean) / scale).squeeze(1) > 0
        right += int((guess == (is_fake[held_out] > 0)).sum())
    return right / len(points)


def _logistic(points: torch.Tensor, labels: torch.Tensor) -> nn.Linear:
    """Fit a logistic regression."""
    model = nn.Linear(points.shape[1], 1, dtype=points.dtype)
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    optimizer = torch.optim.LBFGS(
        model.parameters(), max_iter=100, line_search_fn="strong_wolfe", tolerance_grad=1e-6
    )

    def error() -> torch.Tensor:
        optimizer.zero_grad()
        found = nn.functional.binary_cross_entropy_with_logits(model(points).squeeze(1), labels)
        found = found + SHRINKAGE * model.weight.square().sum()
        found.backward()  # type: ignore[no-untyped-call]
        return found

    optimizer.step(error)  # type: ignore[no-untyped-call]
    return model


def _radii(points: torch.Tensor) -> torch.Tensor:
    """Return the distance of each point to its 5th nearest neighbour."""
    return torch.cdist(points, points).kthvalue(NEIGHBOURS + 1, dim=1).values


def _root(matrix: Any) -> Any:
    """Return the symmetric square root of a positive semidefinite matrix."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
