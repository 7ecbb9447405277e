"""The power of the default test as the samples grow: it should never fall.

Points have ten columns. Powers at level 0.05 with their standard errors, and seconds for a test.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import crossedge as ce

D = 10


def same(y, _):
    return y


def shifted(y, _):
    y[:, 0] += 0.12
    return y


def wider(y, _):
    y[:, 0] *= 1.25
    return y


def local(y, rng):
    """One in twenty-five points is near one place, where there were few."""
    few = len(y) // 25
    y[:few] = 0.5 * rng.normal(size=(few, D)) + 0.8
    return y


CHANGES = (same, shifted, wider, local)


def rejected(change, n: int, seed: int) -> bool:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(n // 2, D)), rng.normal(size=(n // 2, D))
    return ce.two_sample(x, change(y, rng), n_resamples=199, rng=seed).pvalue <= 0.05


if __name__ == "__main__":
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    sizes = [int(size) for size in sys.argv[2:]] or [1000, 2900, 3100, 10_000, 40_000]
    print(f"{'n of both':>10}" + "".join(f"{one.__name__:>16}" for one in CHANGES) + "   seconds")
    for n in sizes:
        count, cells, start = (trials if n <= 10_000 else max(trials // 5, 1)), [], time.time()
        for change in CHANGES:
            power = np.mean([rejected(change, n, seed) for seed in range(count)])
            cells.append(f"{power:.2f} ± {np.sqrt(power * (1 - power) / count):.2f}")
        each = (time.time() - start) / count / len(CHANGES)
        print(f"{n:>10,}" + "".join(f"{cell:>16}" for cell in cells) + f"{each:>10.2f}", flush=True)
