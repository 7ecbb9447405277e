"""Coverage of the interval of `effect_size`, and the level of its test at the tolerance.

python benchmarks/effects.py [repetitions]: normal samples whose means are `shift` apart in the
first coordinate, and samples of integers with many ties. "covers D" is for the divergence of the
distributions, "covers E" for the mean of the estimate, which is what neighbours see at this size.
"larger" and "smaller" are how often the two tests reject at 5% with the tolerance at D.
"""

import sys

import numpy as np
from scipy.integrate import quad
from scipy.stats import norm, poisson

import crossedge as ce


def normal_divergence(shift, p):
    def overlap(t):
        f, g = norm.pdf(t), norm.pdf(t - shift)
        return f * g / (p * f + (1 - p) * g)

    return max(1 - quad(overlap, -10, 10 + shift, limit=200)[0], 0.0)


def poisson_divergence(rate, p):
    t = np.arange(200)
    f, g = poisson.pmf(t, 2.0), poisson.pmf(t, rate)
    together = p * f + (1 - p) * g
    return float(1 - (f * g / np.where(together > 0, together, 1)).sum())


def coverage(draw, true, repetitions, rng, weights=None):
    found = [
        ce.effect_size(*draw(rng), weights, tolerance=min(true, 0.999)) for _ in range(repetitions)
    ]
    low, high = np.transpose([each.interval for each in found])
    estimate = np.array([each.divergence for each in found])
    seen = estimate.mean() if true > 0 else 0.0
    larger = np.mean([each.tolerance_pvalue <= 0.05 for each in found])
    smaller = np.mean([each.equivalence_pvalue <= 0.05 for each in found])
    covers = [float(np.mean((low <= at) & (at <= high))) for at in (true, seen)]
    return estimate.mean() - true, *covers, larger, smaller


def normal(n_x, n_y, d, shift):
    def draw(rng):
        y = rng.normal(size=(n_y, d))
        y[:, 0] += shift
        return rng.normal(size=(n_x, d)), y

    return draw


def counts(n_x, n_y, rate):
    return lambda rng: (rng.poisson(2.0, n_x).astype(float), rng.poisson(rate, n_y).astype(float))


def main(repetitions):
    rng = np.random.default_rng(0)
    print("samples                            D    bias  covers D  covers E  larger  smaller")
    for n_x, n_y in ((100, 100), (400, 100), (50, 50)):
        cases = [
            (f"normal, {d} columns, shift {s}", normal(n_x, n_y, d, s), normal_divergence(s, p))
            for p in [n_x / (n_x + n_y)]
            for d in (1, 2, 5, 10)
            for s in (0, 1, 2, 4)
        ] + [
            (f"counts, rate 2 and {r}", counts(n_x, n_y, r), poisson_divergence(r, p))
            for p in [n_x / (n_x + n_y)]
            for r in (2, 3, 6)
        ]
        for name, draw, true in cases:
            bias, *rest = coverage(draw, true, repetitions, rng)
            told = "".join(f"{value:9.3f}" for value in rest)
            label = f"{n_x} + {n_y}, {name}"
            print(f"{label:<39}{true:.3f} {bias:+.3f}{told}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
