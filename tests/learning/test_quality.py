"""How good are generated samples? Measures, and the classifier that some of them need."""

import pytest
import torch

from crossedge.learning.classifier import CACHE_VARIABLE, classifier_of
from crossedge.learning.datasets import load
from crossedge.learning.quality import density_and_coverage, frechet_distance


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
