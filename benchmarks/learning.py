"""A step of training on images of MNIST's size: the loss against the generator's own passes."""

from __future__ import annotations

import torch

import crossedge as ce
from crossedge.learning import paper_generator
from smoothed import milliseconds

PIXELS, NOISE, IMAGES = 784, 10, 60_000


def compare(batch: int, weights: ce.Weights, asked: str) -> None:
    random = torch.Generator().manual_seed(0)
    data = torch.rand(IMAGES, PIXELS, generator=random) * 2 - 1
    generator = paper_generator(NOISE, PIXELS, bounded=True)
    loss = ce.TwoSampleLoss(weights)
    rows = torch.randperm(IMAGES, generator=random)[:batch]
    real, noise = data[rows], torch.randn(batch, NOISE, generator=random)
    fake = generator(noise).detach().requires_grad_()
    push = torch.ones(batch, PIXELS)

    passes, test, load = milliseconds(
        lambda: generator(noise).backward(push),
        lambda: loss(real, fake).backward(),
        lambda: (data[rows], torch.randn(batch, NOISE, generator=random)),
        repeat=12,
    )
    print(
        f"batch {batch}, {weights}: generator {passes:.1f} ms, loss {test:.1f} ms, "
        f"{test / passes:.2f}x ({asked}); loading {load:.2f} ms"
    )


if __name__ == "__main__":
    print(f"{torch.get_num_threads()} threads; forward and backward of each")
    compare(256, ce.NearestNeighbours(1, 10.0), "wanted: at most a third")
    compare(512, ce.NearestNeighbours(1, 10.0), "no target")
    compare(128, ce.SpanningTree(10.0), "wanted: at most 1.5")
    compare(256, ce.GaussianKernel([2.0, 5.0, 10.0, 20.0, 40.0, 80.0]), "the GMMN, no target")
