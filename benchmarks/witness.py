"""Which points `ce.witness` finds: the table of docs/witness.md.

python benchmarks/witness.py [repetitions]. "outside" is the share, of all points found where y is
over-represented, that lie where y is not; "before" is the same without the step that takes out
excess from elsewhere. "found" is the share of the points in the region that are found.
"""

from __future__ import annotations

import sys

import numpy as np

import crossedge as ce


def square(rng, n, moved):
    """Uniform points, and a share of y moved into a square of 1% of the area."""
    x, y = rng.uniform(size=(n, 2)), rng.uniform(size=(n, 2))
    some = rng.random(n) < moved
    y[some] = 0.45 + 0.1 * rng.uniform(size=(some.sum(), 2))
    return x, y, (np.abs(np.concatenate([x, y]) - 0.5) <= 0.05).all(1)


def shift(rng, n, by):
    """Normal points with means `by` apart: y is over-represented in a half-plane."""
    x, y = rng.normal(size=(n, 2)), rng.normal(size=(n, 2)) + by * np.eye(2)[0]
    return x, y, np.concatenate([x, y])[:, 0] > by / 2


CASES = [
    ("20% into a square of 1%", square, 500, 0.2),
    ("10% into a square of 1%", square, 500, 0.1),
    ("5% into a square of 1%", square, 1000, 0.05),
    ("20% into a square of 1%", square, 2000, 0.2),
    ("shift by 0.5", shift, 500, 0.5),
    ("shift by 0.3", shift, 1000, 0.3),
]


def main(repetitions):
    print("| change of y | points | outside, before | outside | found, before | found |")
    print("|---|---|---|---|---|---|")
    for name, draw, n, size in CASES:
        sums = np.zeros((2, 3))
        for seed in range(repetitions):
            x, y, inside = draw(np.random.default_rng(seed), n, size)
            points = ce.witness(x, y, n_resamples=199, rng=seed).points
            for row, some in enumerate((points.adjusted <= 0.05, points.significant)):
                more = some & (points.excess > 0)
                right = (more & inside).sum()
                sums[row] += more.sum() - right, more.sum(), right / inside.sum()
        outside, found = sums[:, 0] / sums[:, 1], sums[:, 2] / repetitions
        print(
            f"| {name} | {n:,} + {n:,} | {outside[0]:.0%} | {outside[1]:.0%} | "
            f"{found[0]:.0%} | {found[1]:.0%} |",
            flush=True,
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
