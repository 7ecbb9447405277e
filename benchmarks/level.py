"""The level of the default test: p-values of equal distributions, over 2,000 seeds at every size.

A permutation p-value is discrete, so ties with the labellings are split at random, which makes it
exactly uniform if the test is valid. A Kolmogorov-Smirnov test compares it with the uniform law,
and the level column counts the p-values as they are.
"""

from __future__ import annotations

import argparse
import os
from multiprocessing import get_context

import numpy as np
from scipy import stats

RESAMPLES, LEVEL = 99, 0.05
# name, points of x and of y, columns
SIZES = {
    "3 + 4, normal, d = 2": (3, 4, 2),
    "20 + 20, normal, d = 1": (20, 20, 1),
    "20 + 20, counts, d = 3": (20, 20, 3),
    "15 + 60, heavy tails, d = 5": (15, 60, 5),
    "100 + 100, normal, d = 10": (100, 100, 10),
    "50 + 50, normal, d = 200": (50, 50, 200),
    "300 + 300, normal, d = 2": (300, 300, 2),
    "1,600 + 1,600, normal, d = 2": (1600, 1600, 2),
}


def sample(name: str, n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    if "counts" in name:
        return rng.poisson(1.5, (n, d)).astype(float)
    if "heavy" in name:
        return rng.standard_t(1.5, (n, d))
    return rng.normal(size=(n, d))


def pvalues(job: tuple[str, int]) -> tuple[float, float]:
    """Return the p-value of one seed, and the same with its ties split at random."""
    import crossedge as ce

    name, seed = job
    n_x, n_y, d = SIZES[name]
    rng = np.random.default_rng([list(SIZES).index(name), seed])
    x, y = sample(name, n_x, d, rng), sample(name, n_y, d, rng)
    found = ce.two_sample(x, y, n_resamples=RESAMPLES, rng=seed)
    tolerance = 1e-9 * (1 + abs(found.statistic))
    above = int((found.null_distribution > found.statistic + tolerance).sum())
    equal = int((abs(found.null_distribution - found.statistic) <= tolerance).sum())
    equal += not found.exact  # the samples as given are one of all labellings, if these are listed
    total = len(found.null_distribution) + (not found.exact)
    return found.pvalue, (above + rng.random() * equal) / total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="", help="the rows whose name has this text")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = os.environ["NUMBA_NUM_THREADS"] = "1"
    print("| equal distributions | p <= 0.05 | Kolmogorov-Smirnov p |\n|---|---|---|")
    with get_context("spawn").Pool(options.jobs) as pool:
        for name in (each for each in SIZES if options.only in each):
            jobs = [(name, seed) for seed in range(options.seeds)]
            p, split = np.array(pool.map(pvalues, jobs, chunksize=4)).T
            share = (p <= LEVEL).mean()
            error = np.sqrt(share * (1 - share) / options.seeds)
            uniform = stats.kstest(split, "uniform").pvalue
            print(f"| {name} | {share:.3f} ± {error:.3f} | {uniform:.2f} |", flush=True)


if __name__ == "__main__":
    main()
