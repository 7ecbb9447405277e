"""How good are generated samples? Measures, and the classifier that some of them need."""

import pytest
import torch

from crossedge.learning.classifier import CACHE_VARIABLE, classifier_of
from crossedge.learning.datasets import load
from crossedge.learning.measures import (
    classifier_accuracy,
    density_and_coverage,
    frechet_distance,
    kernel_distance,
    precision_and_recall,
)


def test_samples_of_the_data_have_density_and_coverage_near_one():
    rng = torch.Generator().manual_seed(0)
    real, fake = (torch.randn(500, 3, generator=rng) for _ in range(2))
    density, coverage = density_and_coverage(real, fake)
    assert density == pytest.approx(1, abs=0.1)
    assert coverage > 0.93
    density, coverage = density_and_coverage(real, torch.zeros(500, 3))
    assert coverage < 0.2


def test_the_classifier_is_trained_once(monkeypatch, tmp_path):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    dataset = load("digits")
    first = classifier_of(dataset)
    with torch.no_grad():
        right = first(dataset.held_out).argmax(1) == dataset.held_out_labels
    assert right.double().mean() > 0.9
    monkeypatch.setattr("crossedge.learning.classifier._train", None)
    second = classifier_of(dataset)
    assert all(
        torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True)
    )


def test_frechet_distance_of_normal_samples():
    """In one dimension (m - n)^2 + (s - t)^2."""
    rng = torch.Generator().manual_seed(0)
    real = torch.randn(200_000, 1, generator=rng, dtype=torch.float64)
    fake = torch.randn(200_000, 1, generator=rng, dtype=torch.float64) * 3 + 1
    assert frechet_distance(real, fake) == pytest.approx(5, abs=0.1)
    two = torch.randn(1000, 4, generator=rng, dtype=torch.float64)
    assert frechet_distance(two, two) == pytest.approx(0, abs=1e-9)


def normal(n, d, seed):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_precision_sees_what_is_false_and_recall_what_is_missing():
    real = normal(600, 2, 0)
    precision, recall = precision_and_recall(real, normal(600, 2, 1))
    assert min(precision, recall) > 0.9
    narrow = 0.1 * normal(600, 2, 2)
    assert precision_and_recall(real, narrow)[0] > 0.95
    assert precision_and_recall(real, narrow)[1] < 0.1
    assert precision_and_recall(narrow, real) == precision_and_recall(real, narrow)[::-1]


def test_the_kernel_distance_has_no_bias_and_sees_third_moments():
    found = [kernel_distance(normal(60, 4, 2 * i), normal(60, 4, 2 * i + 1)) for i in range(200)]
    mean, error = torch.tensor(found).mean(), torch.tensor(found).std() / 200**0.5
    assert abs(mean) < 4 * error
    # E (x y + 1)^3 = 1 + 3 E x E y + 3 E x^2 E y^2 + E x^3 E y^3, where x = 1 and y = N(0, 1)
    ones = torch.ones(1000, 1, dtype=torch.float64)
    assert kernel_distance(ones, normal(4000, 1, 0)) == pytest.approx(8 + 4 - 2 * 4, abs=0.3)


def test_a_linear_classifier_finds_shifts_by_their_size():
    real = normal(1000, 3, 0)
    assert classifier_accuracy(real, normal(1000, 3, 1)) == pytest.approx(0.5, abs=0.04)
    shifted = normal(1000, 3, 2) + torch.tensor([2.0, 0, 0])
    assert classifier_accuracy(real, shifted) == pytest.approx(0.841, abs=0.02)  # Phi(1)
    apart = classifier_accuracy(real, shifted + 100)
    assert apart == 1.0
