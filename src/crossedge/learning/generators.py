"""Noise -> points."""

from __future__ import annotations

import itertools

import torch
from torch import nn

WIDTHS = (64, 256, 256, 1024)


def paper_generator(noise: int, ambient: int, *, bounded: bool = False) -> nn.Sequential:
    """The paper's network (its appendix); with `bounded`, values end in (-1, 1)."""
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise((noise, *WIDTHS)):
        layers += [nn.Linear(before, after), nn.ReLU()]
    layers.append(nn.Linear(WIDTHS[-1], ambient))
    if bounded:
        layers.append(nn.Tanh())
    return nn.Sequential(*layers)


def initialise(generator: nn.Module, seed: int) -> None:
    """As torch does it, but by a seed of its own: the global state is left alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for module in generator.modules():
            if isinstance(module, nn.Linear):
                module.reset_parameters()
