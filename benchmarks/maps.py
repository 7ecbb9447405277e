"""Where a learned map beats the default test, and where it does not: 200 + 200 points, 50 columns.

Three columns matter. Powers at level 0.05 with their standard errors; the first row is the level.
"""

from __future__ import annotations

import sys

import numpy as np
import torch

import crossedge as ce

N, D = 200, 50


def same(y, _):
    return y


def together(y, rng):
    """Three columns are correlated with each other by 0.7."""
    y[:, :3] = np.sqrt(0.3) * y[:, :3] + np.sqrt(0.7) * rng.normal(size=(N, 1))
    return y


def wider(y, _):
    y[:, :3] *= 1.5
    return y


def shifted(y, _):
    y[:, :3] += 0.35
    return y


def rejections(change, seed: int) -> tuple[bool, ...]:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(N, D)), rng.normal(size=(N, D))
    y = change(y, rng)
    found = (
        ce.learn_map(x, y, n_resamples=499, rng=seed),
        ce.learn_map(x, y, folds=1, n_resamples=499, rng=seed),
        ce.two_sample(x, y, n_resamples=499, rng=seed),
    )
    return tuple(one.pvalue <= 0.05 for one in found)


if __name__ == "__main__":
    torch.set_num_threads(1)
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    print(f"{trials} trials; {N} + {N} points, {D} columns, three of which differ")
    print(f"{'change':12}{'two folds':>16}{'one fold':>16}{'default test':>16}")
    for change in (same, together, wider, shifted):
        rates = np.mean([rejections(change, seed) for seed in range(trials)], axis=0)
        cells = [f"{rate:.2f} ± {np.sqrt(rate * (1 - rate) / trials):.2f}" for rate in rates]
        print(f"{change.__name__:12}" + "".join(f"{cell:>16}" for cell in cells), flush=True)
