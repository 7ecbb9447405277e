"""Ready-made configurations: the models of the paper, and our own defaults."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from crossedge.learning.configuration import Configuration, Phase

if TYPE_CHECKING:
    import torch


def _moons(temperature: float) -> Configuration:
    return Configuration("moons", temperature=temperature, phases=(Phase(500, 1e-4),))


_BOTH = (Phase(500, 1e-3), Phase(500, 1e-4))
_MNIST = Configuration("mnist", temperature=10.0, phases=_BOTH)

# The seven models of the paper, in the order of its table of optimisation settings
PRESETS = {
    "moons-1": _moons(10.0),
    "moons-2": _moons(1.0),
    "moons-3": _moons(0.05),
    "mnist-1": _MNIST,
    "mnist-2": replace(_MNIST, batch=512),
    "mnist-3": replace(
        _MNIST, weights="tree", batch=128, phases=(Phase(100, 1e-3), Phase(100, 1e-4))
    ),
    "mnist-4": replace(
        _MNIST,
        weights="tree",
        temperature=5.0,
        batch=128,
        phases=(Phase(100, 1e-4), Phase(100, 1e-4)),
    ),
}

# The generative moment matching network (GMMN) that the paper compares with (Li and co-authors,
# 2015), on the paper's generator
PRESETS["mnist-gmmn"] = replace(
    _MNIST,
    weights="gaussian",
    bandwidth=(2.0, 5.0, 10.0, 20.0, 40.0, 80.0),
    standardize=False,
)

AVERAGE = 0.998  # decay of the average of parameters: about the last 500 steps count

# The defaults of `crossedge learn`, by data set. The loss is -T, not standardised, with weights
# averaged over a low, a middle and a high temperature, and step sizes fall from phase to phase.
# docs/learning.md compares them with other choices.
RECIPES = {
    "moons": Configuration(
        "moons",
        temperature=(0.05, 0.2, 1.0),
        standardize=False,
        batch=512,
        phases=(Phase(80, 1e-3), Phase(30, 3e-4), Phase(20, 1e-4)),
        average=AVERAGE,
        signs=1,
    ),
    "digits": Configuration(
        "digits",
        temperature=(0.8, 1.6, 3.2),
        standardize=False,
        phases=(Phase(300, 1e-3), Phase(100, 1e-4)),
    ),
    "mnist": Configuration(
        "mnist",
        temperature=(3.0, 6.0, 12.0),
        standardize=False,
        phases=(Phase(20, 1e-3), Phase(5, 1e-4)),
    ),
}

# The recipe for data of one's own, and what it is made of
STEPS = (1800, 600, 600)  # of the optimiser in each phase
STEP_SIZES = (1e-3, 3e-4, 1e-4)
MOST_POINTS = 256  # in a batch
# Shares of a batch that count as neighbours of a point at the low, middle and high temperature
NEIGHBOURHOODS = (0.05, 0.25, 0.8)
LEAST_RATIO, MOST_RATIO = 1e-3, 1e2  # of temperatures to the median distance
TRIES = 40  # halvings of the logarithm of a temperature


def own_recipe(data: str, points: torch.Tensor, batch: int | None = None) -> Configuration:
    """Return the recipe for data of one's own.

    Parameters
    ----------
    data : str
        The path of the data.
    points : (n, d) tensor
        Training points.
    batch : int, optional
        Points in a batch; by default 256, or all if there are fewer.
    """
    batch = min(batch or MOST_POINTS, len(points))
    epochs = [max(1, round(steps / max(1, len(points) // batch))) for steps in STEPS]
    return Configuration(
        data,
        temperature=temperatures_of(points, batch),
        standardize=False,
        batch=batch,
        phases=tuple(map(Phase, epochs, STEP_SIZES)),
        average=AVERAGE,
    )


def temperatures_of(
    points: torch.Tensor, batch: int, shares: Sequence[float] = NEIGHBOURHOODS
) -> tuple[float, ...]:
    """Return temperatures at which given shares of a batch are neighbours of a point.

    At a temperature t, point i chooses point j as its nearest neighbour with probability
    proportional to exp(-d_ij / t). The exponential of the entropy of these probabilities, their
    perplexity, is the number of points among which it chooses. Its median over a batch of the data
    is brought to each share of the batch.

    Parameters
    ----------
    points : (n, d) tensor
        Training points, of which a batch is drawn from a fixed seed.
    batch : int
        Number of points in a batch.
    shares : sequence of float
        Shares of the batch, between 0 and 1.

    Examples
    --------
    >>> from crossedge.learning import load
    >>> from crossedge.learning.recipes import temperatures_of
    >>> [round(one, 2) for one in temperatures_of(load("moons").train, 256)]
    [0.05, 0.24, 0.95]
    """
    import torch

    order = torch.randperm(len(points), generator=torch.Generator().manual_seed(0))
    some = points[order[:batch]].double()
    distances = torch.cdist(some, some)
    typical = float(distances.median()) or float(distances.mean())
    if not typical > 0:
        raise ValueError("all points are equal: there is nothing to learn")
    off = distances.fill_diagonal_(float("inf"))
    found = []
    for share in shares:
        low, high = math.log(LEAST_RATIO * typical), math.log(MOST_RATIO * typical)
        for _ in range(TRIES):
            middle = (low + high) / 2
            log_p = (-off / math.exp(middle)).log_softmax(1).fill_diagonal_(0.0)
            p = log_p.exp().fill_diagonal_(0.0)
            perplexity = float((-(p * log_p).sum(1)).exp().median())
            low, high = (middle, high) if perplexity < share * len(some) else (low, middle)
        found.append(float(f"{math.exp(middle):.3g}"))
    return tuple(found)
