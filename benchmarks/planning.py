"""Plans from pilots, compared with the truth: the table of docs/planning.md.

For each family the true number of rows for 80% power is found by simulation, and pilots of several
sizes are planned by. The factor of the interval was chosen on two of the families; "shift by 0.8, 2
columns" is not among them.

python benchmarks/planning.py [sizes of the pilots, as multiples of what is needed]
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import linregress

import crossedge as ce

PILOTS, SUBSAMPLES, SIMULATED = 16, 100, 1000
WEIGHTS = ce.EnergyKernel()  # a fast test with much power
POWER, LEVEL = 0.8, 0.05
FAMILIES = {
    "shift by 0.5, 2 columns": lambda rng, n: shifted(rng, n, 2, 0.5),
    "shift by 0.8, 2 columns": lambda rng, n: shifted(rng, n, 2, 0.8),
    "shift by 0.8, 10 columns": lambda rng, n: shifted(rng, n, 10, 0.8),
    "scale by 1.4, 3 columns": lambda rng, n: scaled(rng, n, 3, 1.4),
}


def shifted(rng, n, columns, by):
    return rng.normal(size=(n, columns)), rng.normal(size=(n, columns)) + by * np.eye(columns)[0]


def scaled(rng, n, columns, by):
    return rng.normal(size=(n, columns)), rng.normal(size=(n, columns)) * by


def power_at(draw, n, rng, count=SIMULATED):
    found = [
        ce.two_sample(*draw(rng, n), WEIGHTS, n_resamples=199, rng=rng).pvalue for _ in range(count)
    ]
    return float(np.mean(np.array(found) <= LEVEL))


def truth(draw, rng):
    """Return the size of each sample that has the power, by a line through probits."""
    size = 20.0
    while power_at(draw, round(size), rng, 50) < POWER:
        size *= 2
    for width, count in ((2.0, 100), (1.3, SIMULATED)):  # roughly, then near to it
        sizes = np.rint(np.geomspace(1 / width, width, 5) * size).astype(int)
        powers = np.clip([power_at(draw, int(each), rng, count) for each in sizes], 0.01, 0.99)
        line = linregress(np.sqrt(sizes), ndtri(powers))
        size = float(((ndtri(POWER) - line.intercept) / line.slope) ** 2)
    return size, line


def main():
    rng = np.random.default_rng(0)
    shares = [float(text) for text in sys.argv[1:]] or [0.5, 1.0, 4.0, 30.0, 150.0]
    print("| difference | needed | pilot | planned, quartiles | power there | covers | no plan |")
    print("|---|---|---|---|---|---|---|")
    for name, draw in FAMILIES.items():
        right, line = truth(draw, rng)
        for share in shares:
            n = round(share * right)
            plans = [
                ce.plan(*draw(rng, n), WEIGHTS, power=POWER, n_subsamples=SUBSAMPLES, rng=rng)
                for _ in range(PILOTS)
            ]
            made = np.array([each.n_x for each in plans if each.n_x is not None] or [np.nan])
            low, middle, high = np.quantile(made, [0.25, 0.5, 0.75])
            covered = [
                (each.interval[0] or 0) <= 2 * right <= (each.interval[1] or np.inf)
                for each in plans
            ]
            ends = [
                float(ndtr(line.intercept + line.slope * each**0.5)) for each in (low, middle, high)
            ]
            print(
                f"| {name} | {right:.0f} | {n} | {low:.0f}, {middle:.0f}, {high:.0f} | "
                f"{', '.join(f'{each:.2f}' for each in ends)} | {np.mean(covered):.0%} | "
                f"{sum(each.n_x is None for each in plans)} of {PILOTS} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
