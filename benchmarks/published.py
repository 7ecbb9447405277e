"""MMD-FUSE and MMDAgg of peers.py beside published powers at level 0.05, as a table in markdown.

Sources: experiment_perturbations.ipynb and experiment_mixture.ipynb of the authors' repository
mmdfuse-paper (200 repetitions, the figures of Biggs, Schrab and Gretton 2023), and a table of
2026 for the spiked covariance, which has MMDAgg alone. Standard errors are sqrt(p (1 - p) / N).
"""

from __future__ import annotations

import argparse
import os
from itertools import product
from multiprocessing import get_context

import numpy as np

from peers import mmdagg, mmdfuse
from power import Sampler, mixture, spiked


def bump(x: np.ndarray) -> np.ndarray:
    """exp(-1 / (1 - (4 x + 3)^2)) on (-1, -1/2), and minus its translate on (-1/2, 0)."""
    inside = 1 - (4 * np.mod(x, 0.5) - 1) ** 2
    height = np.exp(-1 / np.maximum(inside, 1e-12))
    return np.where((x > -1) & (x < 0), np.where(x < -0.5, height, -height), 0.0)


def perturbed(d: int, scale: float, perturbations: int = 2, n: int = 500) -> Sampler:
    """Uniform on the cube, against a density with bumps of random signs (MMDAgg, section 5.4).

    At scale 1 the density touches zero.
    """
    cells = list(product(range(1, perturbations + 1), repeat=d))

    def sample(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        signs = rng.choice([-1, 1], len(cells))
        found = np.empty((0, d))
        while len(found) < n:
            points = rng.random((4 * n, d))
            rise = sum(
                sign * bump(points * perturbations - cell).prod(1)
                for sign, cell in zip(signs, np.array(cells), strict=True)
            )
            keep = rng.random(4 * n) * (1 + scale) < 1 + np.exp(d) * scale * rise
            found = np.concatenate([found, points[keep]])
        return found[:n], rng.random((n, d))

    return sample


# the sampler, and the powers of MMD-FUSE and MMDAgg
PUBLISHED: dict[str, tuple[Sampler, float | None, float]] = {
    **{
        f"uniform, perturbed by {scale}, d = 1": (perturbed(1, scale), fuse, agg)
        for scale, fuse, agg in ((0.2, 0.18, 0.21), (0.3, 0.505, 0.605), (0.4, 0.825, 0.88))
    },
    **{
        f"uniform, perturbed by {scale}, d = 2": (perturbed(2, scale), fuse, agg)
        for scale, fuse, agg in ((0.4, 0.17, 0.145), (0.6, 0.485, 0.395), (0.8, 0.885, 0.83))
    },
    **{
        f"mixture, sigma {sigma}": (mixture(sigma), fuse, agg)
        for sigma, fuse, agg in (
            (0.5, 0.995, 0.995),
            (0.6, 0.945, 0.915),
            (0.7, 0.51, 0.46),
            (0.8, 0.135, 0.12),
            (1.0, 0.035, 0.05),
            (1.3, 0.18, 0.19),
            (1.4, 0.235, 0.25),
            (1.6, 0.635, 0.675),
            (1.8, 0.84, 0.91),
            (2.0, 0.905, 0.945),
        )
    },
    **{
        f"spiked covariance, d = {d}": (spiked(d), None, agg)
        for d, agg in ((50, 0.995), (250, 0.75), (500, 0.45), (1000, 0.26), (1500, 0.165))
    },
}


def rejected(job: tuple[str, int]) -> tuple[bool, bool, bool]:
    """Return what MMD-FUSE, the same with the paper's temperature, and MMDAgg say of one trial."""
    name, trial = job
    x, y = PUBLISHED[name][0](np.random.default_rng([list(PUBLISHED).index(name), trial]))
    rng = np.random.default_rng(trial)
    return mmdfuse(x, y, rng), mmdfuse(x, y, rng, "paper"), mmdagg(x, y, rng)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--families", nargs="*", help="those whose names have one of these words")
    parser.add_argument("--jobs", type=int, default=1, help="processes, of one thread each")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
    print("| alternative | FUSE, published | ours | paper's lambda | MMDAgg, published | ours |")
    print("|---" * 6 + "|", flush=True)
    with get_context("spawn").Pool(options.jobs) as pool:
        for name, (_, fuse, agg) in PUBLISHED.items():
            if options.families and not any(word in name for word in options.families):
                continue
            found = pool.map(rejected, [(name, t) for t in range(options.trials)], chunksize=1)
            ours = [f"{p:.3f} ± {np.sqrt(p * (1 - p) / len(found)):.3f}" for p in np.mean(found, 0)]
            cells = [name, "" if fuse is None else f"{fuse:.3f}", *ours[:2], f"{agg:.3f}", ours[2]]
            print("|", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
