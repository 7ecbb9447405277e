"""The loss from points to gradients, beside plain torch and the formulas of the paper's authors."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

import crossedge as ce
from smoothed import keep_freed_memory, milliseconds

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
TEMPERATURE = 1.0


def plain_torch(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """-T of the smoothed nearest neighbour, in the lines that come to mind first."""
    pooled = torch.cat([x, y])
    distances = torch.cdist(pooled, pooled)
    distances = distances.masked_fill(torch.eye(len(pooled), dtype=torch.bool), math.inf)
    chosen = torch.softmax(-distances / TEMPERATURE, 1)
    return -(chosen[: len(x), len(x) :].sum() + chosen[len(x) :, : len(x)].sum())


def as_the_authors(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """-t of the smoothed nearest neighbour, by the formulas of the authors' code of 2017.

    Distances are roots of 1e-5 + | |a|^2 + |b|^2 - 2 a'b |; the diagonal is cut out of the matrix
    before the softmax and put back after it; the variance is theorem 3 of the paper plus 1e-5.
    """
    n_x, n_y = len(x), len(y)
    n = n_x + n_y
    pooled = torch.cat([x, y])
    norms = (pooled**2).sum(1, keepdim=True)
    squared = norms.expand(n, n) + norms.T.expand(n, n) - 2 * pooled.mm(pooled.T)
    distances = torch.sqrt(1e-5 + squared.abs())
    others = ~torch.eye(n, dtype=torch.bool)
    chosen = torch.softmax(-distances.masked_select(others).view(n, n - 1) / TEMPERATURE, 1)
    P = torch.zeros(n, n).masked_scatter(others, chosen.view(-1))
    crossing = P[:n_x, n_x:].sum() + P[n_x:, :n_x].sum()
    m, degrees = P.sum(), P.sum(0) + P.sum(1)
    chi_1 = n_x * n_y / (n * (n - 1))
    chi_2 = 4 * (n_x - 1) * (n_y - 1) / ((n - 2) * (n - 3))
    variance = (
        chi_1 * (1 - chi_2) * (degrees**2).sum()
        + chi_1 * chi_2 * ((P**2).sum() + (P * P.T).sum())
        + chi_1 * (chi_2 - 4 * chi_1) * m**2
    )
    return -(crossing - 2 * m * chi_1) / torch.sqrt(1e-5 + variance)


def step(loss: Loss, n: int, d: int, both: bool = True) -> Callable[[], object]:
    """Return a call from points to gradients, in both samples or in the second alone."""
    random = torch.Generator().manual_seed(0)
    x, y = torch.randn(n // 2, d, generator=random), torch.randn(n // 2, d, generator=random) + 0.3
    x.requires_grad_(both), y.requires_grad_()

    def work() -> object:
        x.grad = y.grad = None
        loss(x, y).backward()
        return y.grad

    return work


def row(name: str, *cells: str) -> None:
    print(f"{name:28}", *(f"{cell:>12}" for cell in cells))


def neighbours() -> None:
    """1-NN against plain torch and the authors' formulas."""
    t = ce.TwoSampleLoss(ce.NearestNeighbours(1, TEMPERATURE))
    T = ce.TwoSampleLoss(ce.NearestNeighbours(1, TEMPERATURE), standardize=False)
    row("n, d (ms)", "authors", "plain torch", "t", "T", "t/plain", "T/plain", "asked", "authors/t")
    for n, d, asked in [
        (256, 10, 1.0),
        (512, 10, 0.7),
        (1024, 10, 0.7),
        (512, 784, 0.85),
        (1024, 784, 0.85),
    ]:
        found = milliseconds(*(step(loss, n, d) for loss in (as_the_authors, plain_torch, t, T)))
        authors, plain, of_t, of_T = found
        ratios = (
            f"{of_t / plain:.2f}x",
            f"{of_T / plain:.2f}x",
            f"{asked}x",
            f"{authors / of_t:.1f}x",
        )
        row(f"{n}, {d}", *(f"{each:.2f}" for each in found), *ratios)


if __name__ == "__main__":
    keep_freed_memory()
    print(f"{torch.get_num_threads()} threads; float32; forward and backward to all points")
    neighbours()
