"""Generators of points from noise: the paper's, one for images, and anybody's own."""

from __future__ import annotations

import importlib
import itertools
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from crossedge.learning.heads import TableHead
from crossedge.learning.layout import Layout
from crossedge.learning.table_code import TableCode

WIDTHS = (64, 256, 256, 1024)  # of the hidden layers, from the paper's appendix
CHANNELS, GROUPS = 64, 8  # of the last hidden layer of images, and of their normalisation
DOUBLINGS = 2  # of the size of images on their way through the generator
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


class ImageGenerator(nn.Module):
    """A small convolutional generator of images.

    A linear layer makes a coarse image of a quarter of the size. Twice it is doubled, and each time
    a convolution goes over it. Images of any size are cut out of the middle of the next multiple.

    Parameters
    ----------
    inputs : int
        Dimension of the noise.
    shape : (height, width, channels)
        Size of the images.

    Examples
    --------
    >>> import torch
    >>> from crossedge.learning.generators import ImageGenerator
    >>> ImageGenerator(10, (9, 7, 3))(torch.zeros(5, 10)).shape
    torch.Size([5, 9, 7, 3])
    """

    def __init__(self, inputs: int, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.height, self.width, colours = shape
        across = 2**DOUBLINGS
        self.coarse = (-(-self.height // across), -(-self.width // across))
        channels = CHANNELS * across
        self.start = nn.Linear(inputs, channels * math.prod(self.coarse))
        layers: list[nn.Module] = [nn.ReLU()]
        for _ in range(DOUBLINGS):
            layers += [
                nn.Upsample(scale_factor=2),
                nn.Conv2d(channels, channels // 2, 3, padding=1),
                nn.GroupNorm(GROUPS, channels // 2),
                nn.ReLU(),
            ]
            channels //= 2
        self.layers = nn.Sequential(*layers, nn.Conv2d(channels, colours, 3, padding=1))

    def forward(self, noise: torch.Tensor) -> torch.Tensor:
        """Return images, (n, height, width, channels), of any values."""
        images = self.layers(self.start(noise).unflatten(1, (-1, *self.coarse)))
        top, left = (images.shape[2] - self.height) // 2, (images.shape[3] - self.width) // 2
        cut = images[:, :, top : top + self.height, left : left + self.width]
        return cut.permute(0, 2, 3, 1)  # type: ignore[no-any-return]


def make_generator(name: str, inputs: int, layout: Layout) -> nn.Module:
    """Make a generator of points with a layout.

    Parameters
    ----------
    name : str
        "mlp", the network of the paper; "conv", for images; or "package.module:factory", which
        imports the module, and so runs its code. The factory is called with the number of inputs
        and the shape of the output, (d,) or (height, width, channels). It returns a module that
        turns (n, inputs) noise into (n, *shape) numbers of any size. What brings them into the
        range of the data is added.
    inputs : int
        Number of inputs: noise, and labels that the generator is told.
    layout : Layout
        What the points mean.
    """
    if name == "mlp" and layout.range in ("free", "symmetric"):
        return paper_generator(inputs, layout.dimension, bounded=layout.range == "symmetric")
    if name == "mlp":
        body: nn.Module = paper_generator(inputs, layout.dimension)
    elif name == "conv":
        if layout.image is None:
            raise ValueError("--generator conv is for images: give mlp, or --image HEIGHTxWIDTH")
        body = ImageGenerator(inputs, layout.image)
    else:
        body = _imported(name)(inputs, layout.shape)
        if not isinstance(body, nn.Module):
            raise TypeError(f"{name} returned {type(body).__name__}: return a torch.nn.Module")
        _check_output(body, inputs, layout, name)
    return nn.Sequential(body, nn.Flatten(1), _head(layout))


def _head(layout: Layout) -> nn.Module:
    if layout.range == "table":
        assert isinstance(layout.code, TableCode)
        return TableHead(layout.code)
    return {"free": nn.Identity(), "symmetric": nn.Tanh(), "unit": nn.Sigmoid()}[layout.range]


def _imported(name: str) -> Any:
    """Return a factory by the name of its module and its own."""
    module, colon, attribute = name.partition(":")
    if not colon or not module or not attribute:
        raise ValueError(
            f"--generator {name} is unknown: give mlp, conv, or package.module:factory"
        )
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ModuleNotFoundError, AttributeError) as error:
        raise ValueError(f"--generator {name} cannot be imported: {error}") from None


def _check_output(body: nn.Module, inputs: int, layout: Layout, name: str) -> None:
    training = body.training
    with torch.no_grad():
        made = body.eval()(torch.zeros(2, inputs))
    body.train(training)
    if (
        not isinstance(made, torch.Tensor)
        or made.shape[:1] != (2,)
        or (made[0].numel() != layout.dimension)
    ):
        found = tuple(made.shape) if isinstance(made, torch.Tensor) else type(made).__name__
        wanted = (2, *layout.shape)
        raise ValueError(f"{name} makes {found} of (2, {inputs}) noise: make {wanted}")


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
