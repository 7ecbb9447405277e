"""Large samples: time and peak memory as they grow, and agreement with the exact dense answer.

    python benchmarks/large.py [--largest N] [--plot FILE]

Every test runs in a process of its own, in which the loops have been compiled (on few points)
before the clock starts. Its peak memory is that of the process. Exponents are fitted to the last
three sizes.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np

import crossedge as ce

SIZES = [1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000]
SECONDS = 600  # after which a test of one size is given up


def normal(n: int, d: int):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n // 2, d)), rng.normal(size=(n // 2, d))


def default(n, d):
    return ce.two_sample(*normal(n, d), n_resamples=999, rng=0)


def neighbours(n, d):
    return ce.two_sample(*normal(n, d), ce.NearestNeighbours(5), n_resamples=999, rng=0)


def tree(n, d):
    return ce.two_sample(*normal(n, d), ce.SpanningTree(), n_resamples=999, rng=0)


def typical(d):
    """The distance of near neighbours among a thousand points."""
    x, _ = normal(2_000, d)
    distances = np.sqrt(((x[:200, None] - x[None]) ** 2).sum(2))
    return float(np.median(np.sort(distances, 1)[:, 1]))


def smooth_neighbours(n, d):
    weights = ce.NearestNeighbours(1, typical(d) / 10, neighbours=16)
    return ce.two_sample(*normal(n, d), weights, n_resamples=999, rng=0)


def smooth_tree(n, d):
    weights = ce.SpanningTree(typical(d) / 10, neighbours=10, accuracy=0.1)
    return ce.two_sample(*normal(n, d), weights, n_resamples=999, rng=0)


def loss(n, d):
    import torch

    x, y = (torch.from_numpy(one).float().requires_grad_() for one in normal(n, d))
    weights = ce.NearestNeighbours(1, typical(d) / 10, neighbours=16)
    ce.TwoSampleLoss(weights)(x, y).backward()


TESTS = {
    "default, 5 columns": (default, 5, 400_000),
    "5-NN, 10 columns": (neighbours, 10, 10**6),
    "tree, 3 columns": (tree, 3, 10**6),
    "tree, 10 columns": (tree, 10, 100_000),
    "smoothed 1-NN, K=16, 5 columns": (smooth_neighbours, 5, 300_000),
    "smoothed tree, K=10, 3 columns": (smooth_tree, 3, 100_000),
    "loss of 1-NN, K=16, 5 columns": (loss, 5, 100_000),
}


def measure(name: str, n: int) -> tuple[float, float] | None:
    """Return seconds and GiB of one test of one size, in a process of its own."""
    command = [sys.executable, __file__, "--one", name, str(n)]
    try:
        found = subprocess.run(command, capture_output=True, timeout=SECONDS, text=True)
    except subprocess.TimeoutExpired:
        return None
    if found.returncode:
        print(found.stderr[-500:], file=sys.stderr)
        return None
    seconds, gib = json.loads(found.stdout)
    return seconds, gib


def one(name: str, n: int) -> None:
    test, d, _ = TESTS[name]
    test(4_000, d)  # compiles what it needs
    start = time.perf_counter()
    test(n, d)
    seconds = time.perf_counter() - start
    print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20]))


def agreement() -> None:
    """Compare sparse and streamed weights with the exact ones at 2,000 points."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(1000, 3)), rng.normal(size=(1000, 3)) + 0.15
    t = typical(3) / 4
    print(f"\n2,000 points in 3 columns, temperature {t:.3f}: T, z and the weight left out (bound)")
    cases = {
        "1-NN, all pairs": ce.NearestNeighbours(1, t),
        "1-NN, K=32": ce.NearestNeighbours(1, t, 32),
        "1-NN, K=64": ce.NearestNeighbours(1, t, 64),
        "tree, all pairs": ce.SpanningTree(t),
        "tree, K=32": ce.SpanningTree(t, 32),
        "tree, K=64": ce.SpanningTree(t, 64),
        "tree, K=32, accuracy 0.05": ce.SpanningTree(t, 32, 0.05),
        "tree, K=32, accuracy 0.02": ce.SpanningTree(t, 32, 0.02),
        "tree, K=32, accuracy 0.01": ce.SpanningTree(t, 32, 0.01),
        "tree, all pairs, accuracy 0.05": ce.SpanningTree(t, accuracy=0.05),
    }
    exact = None
    for name, weights in cases.items():
        found = ce.two_sample(x, y, weights, null="normal")
        exact = found if name.endswith("all pairs") else exact
        off = found.statistic / exact.statistic - 1, found.zscore / exact.zscore - 1
        print(
            f"  {name:32} T {found.statistic:8.2f} ({off[0]:+.2%})  z {found.zscore:6.3f}"
            f" ({off[1]:+.2%})  {found.left_out:.1g}",
            flush=True,
        )


def draw(found: dict[str, list[tuple[int, float, float]]], file: str) -> None:
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
    for name, points in found.items():
        if points:
            n, seconds, gib = zip(*points, strict=True)
            left.loglog(n, seconds, "o-", markersize=4, label=name)
            right.loglog(n, gib, "o-", markersize=4)
    left.set(xlabel="points of both samples", ylabel="seconds", title="time, two cores")
    right.set(xlabel="points of both samples", ylabel="GiB", title="peak memory of the process")
    right.axhline(8, color="0.6", linewidth=1)
    right.set_yticks([0.25, 0.5, 1, 2, 4, 8], ["0.25", "0.5", "1", "2", "4", "8"])
    right.minorticks_off()
    figure.legend(loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    for axes in (left, right):
        axes.grid(alpha=0.25)
    figure.savefig(file, dpi=110)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--largest", type=int, default=SIZES[-1])
    arguments.add_argument("--plot", default="large.png")
    arguments.add_argument("--one", nargs=2)
    given = arguments.parse_args()
    if given.one:
        one(given.one[0], int(given.one[1]))
        sys.exit()
    found: dict[str, list[tuple[int, float, float]]] = {}
    for name, (_, _, most) in TESTS.items():
        found[name] = []
        sizes = [n for n in SIZES if n <= min(most, given.largest)]
        if most not in sizes and most <= given.largest:
            sizes.append(most)
        print(f"{name}")
        for n in sizes:
            measured = measure(name, n)
            if measured is None:
                print(f"  {n:>9,}  not in {SECONDS} s")
                break
            found[name].append((n, *measured))
            print(f"  {n:>9,}  {measured[0]:8.2f} s  {measured[1]:6.2f} GiB", flush=True)
        last = found[name][-3:]
        if len(last) == 3:
            logs = np.log(np.array(last))
            slope = [np.polyfit(logs[:, 0], logs[:, place], 1)[0] for place in (1, 2)]
            print(f"  exponents: time {slope[0]:.2f}, memory {slope[1]:.2f}")
    agreement()
    draw(found, given.plot)
