"""A small classifier of images, which also provides features for the Frechet distance.

It is trained once for each data set and kept in the user's cache folder.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import torch
from torch import nn

from crossedge.learning.datasets import Dataset
from crossedge.learning.generators import own_randomness
from crossedge.learning.states import read_state, write_state
from crossedge.runtime.interrupts import checkpoint

CACHE_VARIABLE = "CROSSEDGE_CACHE"  # environment variable with the cache folder
FEATURES = 64  # units of the last hidden layer
BATCH, STEP = 128, 1e-3  # images in a training step, and step size of Adam


def classifier_of(dataset: Dataset) -> nn.Sequential:
    """Return the classifier of a data set from the cache, or train one and put it there."""
    path = _cache() / f"classifier-{_fingerprint(dataset)}.npz"
    with own_randomness(0):
        network = _make(dataset.dimension)
    if path.is_file():
        try:
            network.load_state_dict(read_state(path))
            return network
        except (OSError, RuntimeError, ValueError, TypeError, AttributeError):
            pass  # the file is damaged: train again
    _train(network, dataset)
    _keep(network, path)
    return network


def features(classifier: nn.Module, points: torch.Tensor) -> torch.Tensor:
    """Return the input of the classifier's last layer, (n, FEATURES)."""
    for layer in list(classifier.children())[:-1]:
        points = layer(points)
    return points.double()


def _make(pixels: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(pixels, 256),
        nn.ReLU(),
        nn.Linear(256, FEATURES),
        nn.ReLU(),
        nn.Linear(FEATURES, 10),
    )


def _train(network: nn.Sequential, dataset: Dataset) -> None:
    """Train from a fixed seed, for more epochs if there are few images."""
    assert dataset.train_labels is not None
    epochs = 60 if len(dataset.train) < 5000 else 3
    with own_randomness(0):
        for layer in network:
            if isinstance(layer, nn.Linear):
                layer.reset_parameters()
        optimizer = torch.optim.Adam(network.parameters(), lr=STEP)
        for _ in range(epochs):
            for rows in torch.split(torch.randperm(len(dataset.train)), BATCH):
                checkpoint()
                error = nn.functional.cross_entropy(
                    network(dataset.train[rows]), dataset.train_labels[rows]
                )
                optimizer.zero_grad()
                error.backward()  # type: ignore[no-untyped-call]
                optimizer.step()


def _fingerprint(dataset: Dataset) -> str:
    """Return a hash of the shape, of about 1,000 training images and of all training labels."""
    assert dataset.train_labels is not None
    some = dataset.train[:: max(1, len(dataset.train) // 1000)].contiguous()
    digest = hashlib.sha256(repr((tuple(dataset.train.shape), FEATURES)).encode())
    digest.update(some.numpy().tobytes())
    digest.update(dataset.train_labels.numpy().tobytes())
    return digest.hexdigest()[:16]


def _cache() -> Path:
    given = os.environ.get(CACHE_VARIABLE)
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "crossedge"


def _keep(network: nn.Module, path: Path) -> None:
    """Save the classifier atomically; a cache that cannot be written to is no error."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        own = path.with_name(f"{path.name}-{os.getpid()}")  # others may train the same
        write_state(own, network.state_dict())
        os.replace(own, path)
    except OSError:
        pass
