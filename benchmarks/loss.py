"""The loss from points to gradients, beside plain torch and the formulas of the paper's authors."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch.utils._python_dispatch import TorchDispatchMode

import crossedge as ce
from crossedge.losses.in_torch import loss_in_torch
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


def others() -> None:
    """Every other loss against t of one neighbour."""
    one = ce.NearestNeighbours(1, TEMPERATURE)
    losses = {
        "t": (ce.TwoSampleLoss(one), ""),
        "3-NN": (ce.TwoSampleLoss(ce.NearestNeighbours(3, TEMPERATURE)), "2.5x"),
        "pearson3": (ce.TwoSampleLoss(one, standardize="pearson3"), "3x"),
        "weighted": (ce.TwoSampleLoss(one, statistic="weighted"), "1x"),
        "generalized": (ce.TwoSampleLoss(one, statistic="generalized"), "1x"),
        "mmd": (ce.TwoSampleLoss(ce.GaussianKernel(1.0), statistic="mmd"), "1x"),
        "energy": (ce.TwoSampleLoss(ce.EnergyKernel(), statistic="energy"), "1x"),
    }
    row("n, d (against t)", *losses)
    row("asked, at most", *(asked for _, asked in losses.values()))
    for n, d in [(256, 10), (512, 10), (1024, 10), (512, 784)]:
        first, *rest = milliseconds(*(step(loss, n, d) for loss, _ in losses.values()))
        row(f"{n}, {d}", f"{first:.2f} ms", *(f"{each / first:.2f}x" for each in rest))


def trees() -> None:
    """Trees, from points to gradients, against their weights alone, from distances and back."""
    weights = ce.SpanningTree(TEMPERATURE)
    row("n, d (ms)", "weights", "t", "ratio", "asked")
    for n, d in [(128, 10), (256, 10), (512, 10), (256, 784)]:
        points = torch.randn(n, d, generator=torch.Generator().manual_seed(0))
        distances = torch.cdist(points, points).double().requires_grad_()
        push = torch.ones(n, n, dtype=torch.float64)

        def alone(distances: torch.Tensor = distances, push: torch.Tensor = push) -> object:
            distances.grad = None
            weights(distances).backward(push)
            return distances.grad

        plain, whole = milliseconds(alone, step(ce.TwoSampleLoss(weights), n, d))
        row(f"{n}, {d}", f"{plain:.2f}", f"{whole:.2f}", f"{whole / plain:.2f}x", "1.3x")


class Count(TorchDispatchMode):
    """Counts operations of torch that start a kernel, and those that wait for a value."""

    VIEWS = frozenset(
        ("view", "slice", "select", "expand", "transpose", "unsqueeze", "squeeze", "detach", "t")
    )
    WAITS = "_local_scalar_dense", "nonzero", "is_nonzero", "masked_select"

    def __init__(self) -> None:
        super().__init__()
        self.kernels = self.waits = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        self.kernels += name.strip("_") not in self.VIEWS
        self.waits += name in self.WAITS
        return func(*args, **(kwargs or {}))


def kernels() -> None:
    """What a step would ask of another device, by the code that runs there."""
    row("on other devices, n = 512", "kernels", "transfers", "dtype")
    for name, weights in {
        "1-NN": ce.NearestNeighbours(1, TEMPERATURE),
        "3-NN": ce.NearestNeighbours(3, TEMPERATURE),
        "Gaussian kernel": ce.GaussianKernel(1.0),
        "Gaussian kernel, median": ce.GaussianKernel("median"),
        "plain torch": None,
    }.items():
        x, y = torch.randn(256, 10), torch.randn(256, 10).requires_grad_()
        with Count() as count:
            if weights is None:
                loss = plain_torch(x, y)
            else:
                settings = ce.TwoSampleLoss(weights).settings
                scale = torch.tensor(settings.scales) if settings.scales else None
                loss = loss_in_torch(settings, x, y, scale)
            loss.backward()
        row(name, str(count.kernels), str(count.waits), str(y.grad.dtype).removeprefix("torch."))


def memory() -> None:
    """The most that ten steps add to the memory of a process, each in one of its own."""
    row("memory of a step (MiB)", "t", "3-NN", "tree", "plain torch")
    for n in (512, 2048):
        cells = [
            subprocess.run(
                [sys.executable, __file__, name, str(n)], capture_output=True, text=True, check=True
            ).stdout.strip()
            for name in MEASURED
        ]
        row(f"{n}, 10; a matrix: {n * n * 8 / 2**20:.0f}", *cells)


MEASURED: dict[str, Loss] = {
    "t": ce.TwoSampleLoss(ce.NearestNeighbours(1, TEMPERATURE)),
    "3-NN": ce.TwoSampleLoss(ce.NearestNeighbours(3, TEMPERATURE)),
    "tree": ce.TwoSampleLoss(ce.SpanningTree(TEMPERATURE)),
    "plain": plain_torch,
}


def print_memory(name: str, n: int) -> None:
    """Print the memory that ten steps add to that of a process which has compiled its loops."""
    step(MEASURED[name], 300, 10)()
    work = step(MEASURED[name], n, 10)
    Path("/proc/self/clear_refs").write_text("5")  # the highest mark of Linux starts anew
    before = memory_of_process("VmRSS")
    for _ in range(10):
        work()
    print(f"{memory_of_process('VmHWM') - before:.0f}")


def memory_of_process(name: str) -> float:
    """Return the memory of this process in MiB: VmRSS is that of now, VmHWM the highest mark."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (found,) = [line.split()[1] for line in lines if line.startswith(f"{name}:")]
    return int(found) / 1024


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print_memory(sys.argv[1], int(sys.argv[2]))
        sys.exit()
    keep_freed_memory()
    print(f"{torch.get_num_threads()} threads; float32; forward and backward to all points")
    for table in (neighbours, others, trees, kernels, memory):
        table()
        print(flush=True)
