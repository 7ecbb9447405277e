"""Points from a generator: its noise, and how it is run once it has been trained."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn

from crossedge.learning.generators import own_randomness

MOST_AT_ONCE = 4096  # points


class Noise(NamedTuple):
    """What a generator takes: normal numbers, random signs, and what it is told."""

    normals: int
    signs: int = 0
    given: int = 0

    def draw(self, count: int, source: torch.Generator) -> torch.Tensor:
        """Draw normal numbers and signs, (count, normals + signs)."""
        normals = torch.randn(count, self.normals, generator=source)
        if not self.signs:
            return normals
        signs = torch.randint(2, (count, self.signs), generator=source) * 2.0 - 1
        return torch.cat([normals, signs], 1)


def generate(
    generator: nn.Module, noise: Noise, count: int, seed: int, given: torch.Tensor | None = None
) -> torch.Tensor:
    """Generate points in evaluation mode, with what the generator is told in the last columns."""
    device = next(generator.parameters()).device
    source = torch.Generator().manual_seed(seed)
    inputs = noise.draw(count, source).to(device)
    if given is not None:
        given = given.to(inputs)
        inputs = torch.cat([inputs, given], 1)
    training = generator.training
    generator.eval()
    try:
        with torch.no_grad(), own_randomness(seed_from(source), device):
            points = torch.cat([generator(part) for part in torch.split(inputs, MOST_AT_ONCE)])
    finally:
        generator.train(training)
    return points if given is None else torch.cat([points, given.to(points)], 1)


def seed_from(source: torch.Generator) -> int:
    """Draw a seed."""
    return int(torch.randint(2**62, (), generator=source))
