"""The power of the default test as the samples grow: it should never fall.

Points have ten columns, but for slanted clusters in the plane. Powers at level 0.05 with their
standard errors. Each change has a faint form, which is found in some samples only where the plain
one is found in all.
"""

from __future__ import annotations

import argparse
import os
from multiprocessing import get_context

import numpy as np

D = 10
SIZES = (1000, 3000, 10_000, 40_000)  # of both samples together
SWITCH = 3000  # up to here the default computes matrices of all pairs, and this benchmark both ways
MOST_LARGE = 40  # trials of 40,000 points


def slanted(n: int, correlation: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return points in nine clusters; in y the two columns are correlated inside each."""
    centres = 10.0 * rng.integers(0, 3, (n, 2))
    noise = rng.normal(size=(n, 2))
    of_y = noise[n // 2 :].copy()
    of_y[:, 1] = correlation * of_y[:, 0] + np.sqrt(1 - correlation**2) * of_y[:, 1]
    return centres[: n // 2] + noise[: n // 2], centres[n // 2 :] + of_y


def change(name: str, size: float, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if name == "shifted":
        y[:, 0] += size
    elif name == "wider":
        y[:, 0] *= size
    elif name == "local":  # a share of the points is near one place, where there were few
        few = int(len(y) * size)
        y[:few] = 0.5 * rng.normal(size=(few, D)) + 0.8
    return y


# name, size of the change, and the sizes of samples where its power is neither level nor 1
CHANGES: tuple[tuple[str, float, tuple[int, ...]], ...] = (
    ("same", 0.0, SIZES),
    ("shifted", 0.12, SIZES[:2]),
    ("wider", 1.15, SIZES[:2]),
    ("local", 0.025, SIZES[:2]),
    ("slanted", 0.25, (SWITCH,)),
    ("shifted", 0.05, SIZES[2:]),
    ("wider", 1.06, SIZES[2:]),
    ("local", 0.01, SIZES[2:]),
)


def rejects(job: tuple[str, float, int, bool, int]) -> bool:
    import crossedge as ce
    from crossedge import adaptive

    name, size, n, dense, seed = job
    adaptive.MOST_DENSE_POINTS = SWITCH if dense else SWITCH - 1
    rng = np.random.default_rng(seed)
    if name == "slanted":
        x, y = slanted(n, size, rng)
    else:
        x, y = rng.normal(size=(n // 2, D)), rng.normal(size=(n // 2, D))
        y = change(name, size, y, rng)
    found = ce.two_sample(x, y, n_resamples=199, rng=seed)
    return found.pvalue <= 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="", help="changes whose name has this text")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = os.environ["NUMBA_NUM_THREADS"] = "1"
    print(
        "| n of both samples | " + " | ".join(f"{name} {size:g}" for name, size, _ in CHANGES), "|"
    )
    print("|---" * (len(CHANGES) + 1) + "|")
    with get_context("spawn").Pool(options.jobs) as pool:
        for n in options.sizes:
            for dense in (True, False) if n == SWITCH else (True,):
                trials = options.trials if n < SIZES[-1] else min(options.trials, MOST_LARGE)
                cells = []
                for name, size, sizes in CHANGES:
                    if n not in sizes or options.only not in name:
                        cells.append("")
                        continue
                    jobs = [(name, size, n, dense, seed) for seed in range(trials)]
                    power = np.mean(pool.map(rejects, jobs, chunksize=1))
                    cells.append(f"{power:.2f} ± {np.sqrt(power * (1 - power) / trials):.2f}")
                label = f"{n:,}" + ("" if dense else ", as larger samples are")
                print("|", label, "|", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
