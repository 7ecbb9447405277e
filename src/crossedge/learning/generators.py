"""Noise -> points, and the randomness of layers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

WIDTHS = (64, 256, 256, 1024)
CPU = torch.device("cpu")


def paper_generator(noise: int, ambient: int, *, bounded: bool = False) -> nn.Sequential:
    """Build the network of the paper's appendix; with `bounded`, values end in (-1, 1)."""
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise((noise, *WIDTHS)):
        layers += [nn.Linear(before, after), nn.ReLU()]
    layers.append(nn.Linear(WIDTHS[-1], ambient))
    if bounded:
        layers.append(nn.Tanh())
    return nn.Sequential(*layers)


def initialise(generator: nn.Module, seed: int) -> None:
    """Draw the parameters of linear layers as torch does, but from a seed."""
    with own_randomness(seed):
        for module in generator.modules():
            if isinstance(module, nn.Linear):
                module.reset_parameters()


@contextmanager
def own_randomness(seed: int, device: torch.device = CPU) -> Iterator[None]:
    """Seed the global generators of the CPU and of the device; afterwards, put them back.

    Layers draw from them, for their parameters and as dropout does, and cannot be given others.
    """
    others = [] if device.type == "cpu" else [device]
    with torch.random.fork_rng(others, device_type=device.type):
        torch.default_generator.manual_seed(seed)
        for one in others:
            state = torch.Generator(one).manual_seed(seed).get_state()
            getattr(torch, one.type).set_rng_state(state, one)
        yield
