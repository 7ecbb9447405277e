"""Smoothed weights, value and gradient, against their parts and plain ways of doing the same."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import torch

import crossedge as ce


def milliseconds(*works: Callable[[], object], repeat: int = 9) -> list[float]:
    """The best of several turns, three times each in turn, so that noise meets all alike.

    Three, because the threads of torch spin on for a while and slow down whatever comes next.
    """
    best = [np.inf] * len(works)
    for turn in range(repeat + 1):
        for place, work in enumerate(works):
            for _ in range(3):
                start = time.perf_counter()
                work()
                if turn:  # the first compiles and warms up
                    best[place] = min(best[place], 1e3 * (time.perf_counter() - start))
    return best


def keep_freed_memory() -> None:
    """Let the C library use freed memory again, as we do; else it fills pages anew for softmax.

    That would make torch look up to four times slower than it can be.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        trim_threshold, mmap_threshold = -1, -3
        mallopt(trim_threshold, 1 << 30)
        mallopt(mmap_threshold, 1 << 30)


def value_and_gradient(function, distances, cotangent):
    def work():
        leaf = distances.detach().requires_grad_()
        function(leaf).backward(cotangent)
        return leaf.grad

    return work


def factorise_and_invert(matrix):
    return lambda: torch.cholesky_inverse(torch.linalg.cholesky(matrix))


def tree_as_in_the_paper(distances):
    """mu = diag(w) A L^-1 A', with the incidence matrix A of the complete graph, by autograd."""
    n = len(distances)
    i, j = torch.triu_indices(n, n, 1)
    weight = torch.exp(-distances[i, j])
    edges = torch.arange(len(i))
    incidence = distances.new_zeros(len(i), n)
    incidence[edges, i], incidence[edges, j] = 1.0, -1.0
    incidence = incidence[:, 1:]
    laplacian = incidence.T @ (weight[:, None] * incidence)
    marginal = weight * (incidence * torch.linalg.solve(laplacian, incidence.T).T).sum(1)
    return torch.zeros_like(distances).index_put((i, j), marginal)


def neighbours_by_autograd(k):
    """The forward and backward sweeps over items, all rows at once, left to autograd."""

    def weights(distances):
        n = len(distances)
        others = 1 - torch.eye(n, dtype=distances.dtype)
        kth = distances.kthvalue(k + 1, 1, keepdim=True).values
        decay = torch.exp(-(distances - kth).abs())
        near = distances <= kth
        leave = torch.where(near, decay, 1.0) * others + torch.eye(n, dtype=distances.dtype)
        take = torch.where(near, 1.0, decay) * others
        none = torch.zeros(n, 1, dtype=distances.dtype)
        start = torch.cat([torch.ones_like(none), none.expand(n, k)], 1)

        def step(sums, i):
            shifted = torch.cat([none, sums[:, :-1]], 1)
            return leave[:, i : i + 1] * sums + take[:, i : i + 1] * shifted

        before, after = [start], [start]
        for i in range(n):
            before.append(step(before[-1], i))
        for i in range(n - 1, 0, -1):
            after.append(step(after[-1], i))
        first, last = torch.stack(before[:-1], 1), torch.stack(after[::-1], 1)
        chosen = take * (first[:, :, :k] * last[:, :, :k].flip(2)).sum(2)
        marginal = chosen / before[-1][:, k:]
        return marginal + marginal.T

    return weights


def report(what: str, ours: float, other: float, note: str) -> None:
    print(f"{what:<44} {ours:9.2f} ms {other:9.2f} ms {ours / other:8.2f}x  {note}", flush=True)


def problem(n):
    points = torch.from_numpy(np.random.default_rng(n).normal(size=(n, 5)))
    cotangent = torch.from_numpy(np.random.default_rng(n + 1).normal(size=(n, n)))
    return torch.cdist(points, points), cotangent


PEAK = """
import torch, crossedge as ce
{work}
lines = open("/proc/self/status").read().splitlines()
print(next(int(line.split()[1]) / 2**10 for line in lines if line.startswith("VmHWM")))
"""

WORK = """
points = torch.randn({n}, 5, dtype=torch.float64)
distances = torch.cdist(points, points).requires_grad_()
({weights})(distances).square().sum().backward()
"""


def megabytes(work: str) -> float:
    command = [sys.executable, "-c", PEAK.format(work=work)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


FIRST_CALL = """
import time, torch, crossedge as ce
points = torch.randn(100, 5, dtype=torch.float64)
distances = torch.cdist(points, points).requires_grad_()
start = time.perf_counter()
for weights in (ce.SpanningTree(1.0), ce.NearestNeighbours(1, 1.0), ce.NearestNeighbours(3, 1.0)):
    weights(distances).sum().backward()
print(time.perf_counter() - start)
"""


def main() -> None:
    torch.set_default_dtype(torch.float64)
    keep_freed_memory()
    print(f"{'value and gradient':<44} {'crossedge':>12} {'other':>12}    ratio")
    for n in (256, 512, 1024, 2048):
        distances, cotangent = problem(n)
        ours, other = milliseconds(
            value_and_gradient(ce.SpanningTree(1.0), distances, cotangent),
            factorise_and_invert(distances + n * torch.eye(n)),
            repeat=max(9, 10_000 // n),  # short ones need more turns to meet a quiet one
        )
        report(f"tree, n = {n:,}", ours, other, "Cholesky factor and inverse; at most 2")
    for k, most in ((3, 8), (1, 1.5)):
        for n in (512, 1024):
            distances, cotangent = problem(n)
            ours, other = milliseconds(
                value_and_gradient(ce.NearestNeighbours(k, 1.0), distances, cotangent),
                value_and_gradient(lambda d: torch.softmax(d, 1), distances, cotangent),
                repeat=30,
            )
            report(f"{k}-NN, n = {n:,}", ours, other, f"softmax of rows; at most {most}")

    distances, cotangent = problem(256)
    ours, other = milliseconds(
        value_and_gradient(ce.SpanningTree(1.0), distances, cotangent),
        value_and_gradient(tree_as_in_the_paper, distances, cotangent),
        repeat=2,
    )
    report("tree, n = 256", ours, other, "the paper's formulas, by autograd; at most 0.01")
    distances, cotangent = problem(512)
    ours, other = milliseconds(
        value_and_gradient(ce.NearestNeighbours(3, 1.0), distances, cotangent),
        value_and_gradient(neighbours_by_autograd(3), distances, cotangent),
        repeat=2,
    )
    report("3-NN, n = 512", ours, other, "the same sweeps, by autograd; at most 0.02")

    for weights in (
        ce.SpanningTree(1.0),
        ce.NearestNeighbours(1, 1.0),
        ce.NearestNeighbours(3, 1.0),
    ):
        for batch, n in ((32, 64), (16, 256), (4, 512)):
            stack = torch.stack([problem(n)[0] for _ in range(batch)])
            cotangents = torch.stack([problem(n)[1] for _ in range(batch)])

            def loop(stack=stack, weights=weights, cotangents=cotangents):
                pairs = zip(stack, cotangents, strict=True)
                return [value_and_gradient(weights, *pair)() for pair in pairs]

            ours, other = milliseconds(value_and_gradient(weights, stack, cotangents), loop)
            report(f"{weights.name}, {batch} x {n}", ours, other, "one by one; below 1")

    print("\ngrowth from n = 512 to 1,024 (n^3: 8, n^2: 4), from k = 3 to 12 (k: 4 and less)")
    for name, weights in {
        "tree": ce.SpanningTree(1.0),
        "3-NN": ce.NearestNeighbours(3, 1.0),
    }.items():
        (small,) = milliseconds(value_and_gradient(weights, *problem(512)))
        (large,) = milliseconds(value_and_gradient(weights, *problem(1024)))
        print(f"  {name}: {large / small:.1f}")
    few, many = milliseconds(
        value_and_gradient(ce.NearestNeighbours(3, 1.0), *problem(512)),
        value_and_gradient(ce.NearestNeighbours(12, 1.0), *problem(512)),
    )
    print(f"  k: {many / few:.1f}")

    print("\npeak memory at n = 2,048, in matrices of 2,048 x 2,048 doubles (32 MiB)")
    empty = megabytes(WORK.format(n=64, weights="ce.SpanningTree(1.0)"))
    for weights in ("ce.SpanningTree(1.0)", "ce.NearestNeighbours(3, 1.0)"):
        used = megabytes(WORK.format(n=2048, weights=weights)) - empty
        print(f"  {weights}: {used:.0f} MiB, {used / 32:.1f} matrices")

    first = subprocess.run(
        [sys.executable, "-c", FIRST_CALL], check=True, capture_output=True, text=True
    ).stdout
    print(f"\nfirst call in a new process, compiled code on disk: {float(first):.2f} s; below 1")


if __name__ == "__main__":
    main()
