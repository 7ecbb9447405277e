"""The paper's generator of points from noise, and reproducible randomness for layers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

WIDTHS = (64, 256, 256, 1024)  # of the hidden layers, from the paper's appendix
CPU = torch.device("cpu")


def paper_generator(noise: int, ambient: int, *, bounded: bool = False) -> nn.Sequential:
    """Build the fully connected network of the paper's appendix.

    It has hidden layers of 64, 256, 256 and 1024 units with rectifiers.

    Parameters
    ----------
    noise : int
        Dimension of the noise, which is the input.
    ambient : int
        Dimension of the points, which are the output.
    bounded : bool
        Whether to end in a hyperbolic tangent, so that outputs lie in (-1, 1), as pixels do.

    Returns
    -------
    torch.nn.Sequential
        Its parameters are drawn from torch's global generator; see `initialise`.

    References
    ----------
    Djolonga and Krause, "Learning Implicit Generative Models Using Differentiable Graph Tests",
    2017.

    Examples
    --------
    >>> import torch
    >>> from crossedge.learning import initialise, paper_generator
    >>> generator = paper_generator(10, 2)
    >>> initialise(generator, seed=0)
    >>> generator(torch.zeros(5, 10)).shape
    torch.Size([5, 2])
    """
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise((noise, *WIDTHS)):
        layers += [nn.Linear(before, after), nn.ReLU()]
    layers.append(nn.Linear(WIDTHS[-1], ambient))
    if bounded:
        layers.append(nn.Tanh())
    return nn.Sequential(*layers)


def initialise(generator: nn.Module, seed: int) -> None:
    """Draw the parameters of all linear layers anew, as torch does but from a seed.

    Parameters
    ----------
    generator : torch.nn.Module
        Network to change in place. Layers that are not `torch.nn.Linear` stay as they are.
    seed : int
        Source of the parameters. Torch's global generator is left unchanged.
    """
    with own_randomness(seed):
        for module in generator.modules():
            if isinstance(module, nn.Linear):
                module.reset_parameters()


@contextmanager
def own_randomness(seed: int, device: torch.device = CPU) -> Iterator[None]:
    """Seed torch's global generators of the CPU and the device, and restore them on exit.

    Layers draw their parameters and their dropout from the global generators, and cannot be given
    others.
    """
    others = [] if device.type == "cpu" else [device]
    with torch.random.fork_rng(others, device_type=device.type):
        torch.default_generator.manual_seed(seed)
        for one in others:
            state = torch.Generator(one).manual_seed(seed).get_state()
            getattr(torch, one.type).set_rng_state(state, one)
        yield
