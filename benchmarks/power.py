"""The power of tests at level 0.05 on many families of alternatives, as a table in markdown.

All tests see the same samples and the same labellings. Standard errors are sqrt(p (1 - p) / N).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from multiprocessing import get_context

import numpy as np

LEVEL, RESAMPLES = 0.05, 399
MIXTURES, COMPARED = 500, 100  # repetitions on mixtures: of the adaptive test, and of all
Sampler = Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]


def mixture(sigma: float, n: int = 500) -> Sampler:
    """Four Gaussians at (+-20, +-20), one of them of another width (the aggregated MMD's own)."""
    centres = np.array([[20, 20], [20, -20], [-20, 20], [-20, -20]], float)

    def sample(rng: np.random.Generator, width: float) -> np.ndarray:
        which = rng.integers(0, 4, n)
        noise = rng.normal(size=(n, 2)) * np.where(which == 3, width, 1.0)[:, None]
        return centres[which] + noise

    return lambda rng: (sample(rng, 1.0), sample(rng, sigma))


def gaussian(
    d: int, shift: float = 0.0, scale: float = 1.0, n_x: int = 128, n_y: int = 128, first: int = 1
) -> Sampler:
    """The `first` coordinates of y are shifted and scaled."""

    def sample(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        x, y = rng.normal(size=(n_x, d)), rng.normal(size=(n_y, d))
        y[:, :first] = y[:, :first] * scale + shift
        return x, y

    return sample


def wave(d: int, frequency: int, height: float, n: int = 250) -> Sampler:
    """Uniform on the cube against 1 + height prod sin(2 pi frequency x)."""

    def sample(rng: np.random.Generator, height: float) -> np.ndarray:
        found = np.empty((0, d))
        while len(found) < n:
            points = rng.random((4 * n, d))
            density = 1 + height * np.sin(2 * np.pi * frequency * points).prod(1)
            keep = rng.random(4 * n) * (1 + abs(height)) < density
            found = np.concatenate([found, points[keep]])
        return found[:n]

    return lambda rng: (sample(rng, 0.0), sample(rng, height))


def correlated(d: int, rho: float, n: int = 200) -> Sampler:
    root = np.linalg.cholesky(np.eye(d) * (1 - rho) + rho)
    return lambda rng: (rng.normal(size=(n, d)), rng.normal(size=(n, d)) @ root.T)


def student(d: int, degrees: float, n: int = 200) -> Sampler:
    """Against a Gaussian of the same variance."""
    unit = np.sqrt(degrees / (degrees - 2))
    return lambda rng: (rng.normal(size=(n, d)), rng.standard_t(degrees, (n, d)) / unit)


def cauchy(d: int, shift: float, n: int = 150) -> Sampler:
    return lambda rng: (rng.standard_cauchy((n, d)), rng.standard_cauchy((n, d)) + shift)


def laplace(d: int, n: int = 200) -> Sampler:
    return lambda rng: (rng.normal(size=(n, d)), rng.laplace(size=(n, d)) / np.sqrt(2))


def poisson(d: int, one: float, other: float, n: int = 150) -> Sampler:
    return lambda rng: (
        rng.poisson(one, (n, d)).astype(float),
        rng.poisson(other, (n, d)).astype(float),
    )


def bits(d: int, copied: float, n: int = 200) -> Sampler:
    """Fair coins, against coins some of which repeat the one before."""

    def sample(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        x, y = (rng.integers(0, 2, (n, d)).astype(float) for _ in range(2))
        y[:, 1:] = np.where(rng.random((n, d - 1)) < copied, y[:, :-1], y[:, 1:])
        return x, y

    return sample


def blobs(ratio: float, n: int = 250) -> Sampler:
    """A grid of round blobs against one of slanted ones."""
    turn = np.array([[1, -1], [1, 1]]) / np.sqrt(2)
    width = np.sqrt(np.array([2 * ratio, 2]) / (1 + ratio)) / 2

    def sample(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        centres = 5.0 * rng.integers(0, 3, (2, n, 2))
        noise = rng.normal(size=(2, n, 2))
        return centres[0] + noise[0] / 2, centres[1] + (noise[1] * width) @ turn.T

    return sample


def ring(share: float, n: int = 300) -> Sampler:
    """Eight clusters, one of which has only a share of its points in y."""

    def sample(rng: np.random.Generator, p: np.ndarray) -> np.ndarray:
        angle = 2 * np.pi * rng.choice(8, n, p=p / p.sum()) / 8
        return np.stack([4 * np.cos(angle), 4 * np.sin(angle)], 1) + 0.3 * rng.normal(size=(n, 2))

    whole = np.ones(8)
    return lambda rng: (sample(rng, whole), sample(rng, np.where(np.arange(8) == 0, share, 1.0)))


def contaminated(d: int, share: float, n: int = 250) -> Sampler:
    """Some of the points of y form a small cluster."""

    def sample(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        x, y = rng.normal(size=(n, d)), rng.normal(size=(n, d))
        moved = rng.random(n) < share
        y[moved] = 0.2 * y[moved] + 2
        return x, y

    return sample


def spiked(d: int, n: int = 100) -> Sampler:
    """Five columns of y are one, times the root of 3: one direction has variance 15."""

    def sample(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        x, y = rng.normal(size=(n, d)), rng.normal(size=(n, d))
        y[:, -5:] = np.sqrt(3) * rng.normal(size=(n, 1))
        return x, y

    return sample


def neighbouring(d: int, rho: float, n: int = 100) -> Sampler:
    """Each column of y is correlated with the one before."""

    def sample(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        x, y = rng.normal(size=(n, d)), rng.normal(size=(n, d))
        y[:, 1:] = rho * y[:, :-1] + np.sqrt(1 - rho**2) * y[:, 1:]
        return x, y

    return sample


def across(d: int, shift: float, n: int = 100) -> Sampler:
    """A shift across the direction that all columns share."""

    def sample(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        x, y = (rng.normal(size=(n, d)) + 2 * rng.normal(size=(n, 1)) for _ in range(2))
        y[:, 0], y[:, 1] = y[:, 0] + shift, y[:, 1] - shift
        return x, y

    return sample


def units(d: int, shift: float, n: int = 100) -> Sampler:
    """Columns in units from 0.01 to 100, of which the finest is shifted."""
    unit = 10.0 ** np.linspace(-2, 2, d)

    def sample(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        x, y = rng.normal(size=(n, d)), rng.normal(size=(n, d))
        y[:, 0] += shift
        return x * unit, y * unit

    return sample


FAMILIES: dict[str, Sampler] = {
    **{f"mixture, sigma {s}": mixture(s) for s in (0.7, 1.4, 0.8, 1.0, 1.6, 0.6, 1.8, 2.0, 0.5)},
    "equal, 60 + 240, d = 5": gaussian(5, n_x=60, n_y=240),
    "shift 0.5 of one, d = 10": gaussian(10, shift=0.5),
    "shift 1 of one, d = 100": gaussian(100, shift=1.0),
    "shift 0.12 of all, d = 50": gaussian(50, shift=0.12, first=50),
    "shift 0.35, 100 + 300, d = 2": gaussian(2, shift=0.35, n_x=100, n_y=300),
    "scale 1.8 of one, d = 10": gaussian(10, scale=1.8),
    "scale 3 of one, d = 100": gaussian(100, scale=3.0),
    "scale 1.05 of all, d = 50": gaussian(50, scale=1.05, first=50),
    "scale 0.5 of one, 100 + 300, d = 10": gaussian(10, scale=0.5, n_x=100, n_y=300),
    "wave of 1, d = 1": wave(1, 1, 0.35),
    "wave of 4, d = 1": wave(1, 4, 0.5),
    "wave of 1, d = 2": wave(2, 1, 0.6),
    "wave of 2, d = 2": wave(2, 2, 0.9, 400),
    "correlation 0.4, d = 2": correlated(2, 0.4),
    "correlation 0.15, d = 10": correlated(10, 0.15),
    "Student, 3 degrees, d = 2": student(2, 3.0),
    "Student, 4 degrees, d = 20": student(20, 4.0),
    "Cauchy, shift 0.5, d = 5": cauchy(5, 0.5),
    "Laplace, d = 1": laplace(1),
    "Laplace, d = 5": laplace(5),
    "Poisson 2 and 2.3, d = 3": poisson(3, 2.0, 2.3),
    "bits, a quarter copied, d = 10": bits(10, 0.25),
    "slanted blobs, d = 2": blobs(3.0),
    "ring of eight, one thinned, d = 2": ring(0.4),
    "6% in a cluster, d = 5": contaminated(5, 0.06),
    **{f"mixture, sigma 1.3, n = {n}": mixture(1.3, n) for n in (500, 1000)},
    **{f"spiked covariance, d = {d}": spiked(d) for d in (50, 250, 500, 1000, 1500)},
    **{
        f"two columns shifted by 1, d = {d}": gaussian(d, shift=1.0, n_x=100, n_y=100, first=2)
        for d in (50, 250, 500, 1000)
    },
    "neighbours correlated 0.5, d = 500": neighbouring(500, 0.5),
    "neighbours correlated 0.3, d = 100": neighbouring(100, 0.3),
    "five columns twice as wide, d = 1000": gaussian(1000, scale=2.0, n_x=100, n_y=100, first=5),
    "shift across what is shared, d = 20": across(20, 0.4),
    "columns in unlike units, d = 6": units(6, 0.6),
}
COLUMNS = (
    "adaptive",
    "4",
    "16",
    "64",
    "all",
    "n/8-NN",
    "tree",
    "5-NN",
    "MMD, median",
    "MMD, 7 widths",
    "energy",
)


def pvalues(job: tuple[str, int]) -> tuple[str, dict[str, float]]:
    import torch

    import crossedge as ce
    from crossedge.weights.family import median_distances

    torch.set_num_threads(1)
    name, repetition = job
    rng = np.random.default_rng([list(FAMILIES).index(name), repetition])
    x, y = FAMILIES[name](rng)
    options = {"n_resamples": RESAMPLES, "rng": repetition}
    found = {}
    adaptive = ce.two_sample(x, y, **options)
    found["adaptive"] = adaptive.pvalue
    own = [one for one in adaptive.members if not one.view and one.weights != ce.QuadraticKernel()]
    fisher = [member for member in own if member.statistic == "fisher"]
    smooth = [member.pvalue for member in fisher if member.weights.is_smooth]
    for column, pvalue in zip(("4", "16", "64"), smooth, strict=False):
        found[column] = pvalue
    found["n/8-NN"], found["all"] = fisher[-1].pvalue, own[-1].pvalue
    if repetition >= COMPARED and "mixture" in name:
        return name, found
    graphs = ce.two_sample(
        x, y, [ce.SpanningTree(), ce.NearestNeighbours(5)], statistic="cross", **options
    )
    found["tree"], found["5-NN"] = (member.pvalue for member in graphs.members)
    pooled = torch.from_numpy(np.concatenate([x, y]))
    (median,) = median_distances(torch.cdist(pooled, pooled))
    widths = [median * 2.0**power for power in range(-5, 2)]
    kernels = ce.two_sample(
        x, y, [ce.GaussianKernel(width) for width in widths], statistic="mmd", **options
    )
    found["MMD, 7 widths"] = kernels.pvalue
    found["MMD, median"] = kernels.members[5].pvalue
    (energy,) = ce.two_sample(x, y, [ce.EnergyKernel()], statistic="energy", **options).members
    found["energy"] = energy.pvalue
    return name, found


def jobs(repetitions: int) -> Iterator[tuple[str, int]]:
    for name in FAMILIES:
        for repetition in range(MIXTURES if "mixture" in name else repetitions):
            yield name, repetition


def default_pvalue(job: tuple[str, int]) -> float:
    import crossedge as ce

    name, repetition = job
    rng = np.random.default_rng([list(FAMILIES).index(name), repetition])
    x, y = FAMILIES[name](rng)
    return ce.two_sample(x, y, n_resamples=RESAMPLES, rng=repetition).pvalue


def by_default(words: list[str], repetitions: int, processes: int) -> None:
    """Print the power of the default test on families whose names have one of these words."""
    os.environ["OMP_NUM_THREADS"] = "1"
    with get_context("spawn").Pool(processes) as pool:
        for name in FAMILIES:
            if not words or any(word in name for word in words):
                jobs_of_name = [(name, repetition) for repetition in range(repetitions)]
                found = np.array(pool.map(default_pvalue, jobs_of_name, chunksize=4))
                p = (found <= LEVEL).mean()
                error = np.sqrt(p * (1 - p) / repetitions)
                print(f"| {name} | {p:.3f} ± {error:.3f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=150, help="not of mixtures")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--default", nargs="*", help="the default test alone, on these families")
    options = parser.parse_args()
    if options.default is not None:
        by_default(options.default, options.repetitions, options.jobs)
        return
    os.environ["OMP_NUM_THREADS"] = "1"
    print("| alternative |", " | ".join(COLUMNS), "|")
    print("|---" * (1 + len(COLUMNS)) + "|")
    found: dict[str, list[dict[str, float]]] = {}
    done: list[str] = []
    with get_context("spawn").Pool(options.jobs) as pool:
        for name, row in pool.imap(pvalues, jobs(options.repetitions), chunksize=4):
            found.setdefault(name, []).append(row)
            for finished in [one for one in found if one != name and one not in done]:
                show(finished, found[finished])
                done.append(finished)
    show(name, found[name])


def show(name: str, rows: list[dict[str, float]]) -> None:
    cells = []
    for column in COLUMNS:
        rejected = [row[column] <= LEVEL for row in rows if column in row]
        p = np.mean(rejected) if rejected else np.nan
        error = np.sqrt(p * (1 - p) / max(len(rejected), 1))
        cells.append(f"{p:.3f} ± {error:.3f}" if rejected else "")
    print("|", " | ".join([name, *cells]), "|", flush=True)


if __name__ == "__main__":
    main()
