"""Designs: how often tests reject at 5%, with rows exchanged freely and by the design.

python benchmarks/designs.py            # 100 repetitions, about a quarter of an hour on one core
python benchmarks/designs.py 1000
"""

import sys
import warnings

import numpy as np

import crossedge as ce

RESAMPLES = 199


def subjects(rng, shift, per_subject=10, within=1.0):
    """Ten subjects in each sample: a subject has an effect of its own on all its rows."""
    subject = np.repeat(np.arange(20), per_subject)
    rows = within * rng.normal(size=(len(subject), 3)) + rng.normal(size=(20, 3))[subject]
    rows[subject >= 10, 0] += shift
    return rows, subject >= 10, ce.Clusters(subject)


def trajectories(rng, shift, length=20, memory=0.9):
    """Eight autocorrelated series in each sample, stationary."""
    series = np.repeat(np.arange(16), length)
    noise = rng.normal(size=(16, length, 2)) * (1 - memory**2) ** 0.5
    states = np.empty_like(noise)
    states[:, 0] = rng.normal(size=(16, 2))
    for step in range(1, length):
        states[:, step] = memory * states[:, step - 1] + noise[:, step]
    rows = states.reshape(-1, 2)
    rows[series >= 8, 0] += shift
    return rows, series >= 8, ce.Clusters(series)


def unequal(rng, shift):
    """Ten and ten subjects with 1 to 30 rows each."""
    subject = np.repeat(np.arange(20), rng.integers(1, 31, 20))
    rows = rng.normal(size=(len(subject), 3)) + rng.normal(size=(20, 3))[subject]
    rows[subject >= 10, 0] += shift
    return rows, subject >= 10, ce.Clusters(subject)


def days(rng, shift):
    """Ten days of ten rows, in different shares of both samples, and each with its own mean."""
    day = np.repeat(np.arange(10), 10)
    share = np.linspace(0.2, 0.8, 10)[day]
    in_y = rng.random(100) < share
    rows = rng.normal(size=(100, 3)) + day[:, None] / 2
    rows[in_y, 0] += shift
    return rows, in_y, ce.Strata(day)


def sites(rng, shift):
    """Ten sites that lie far apart, with as many rows of both samples."""
    site, in_y = np.repeat(np.arange(10), 10), np.tile([False, True], 50)
    rows = rng.normal(size=(100, 3)) + 3 * rng.normal(size=(10, 3))[site]
    rows[in_y, 0] += shift
    return rows, in_y, ce.Strata(site)


def before_and_after(rng, shift):
    """Sixty pairs whose members are alike."""
    common = rng.normal(size=(60, 3))
    rows = np.concatenate([common, common]) + 0.5 * rng.normal(size=(120, 3))
    in_y = np.arange(120) >= 60
    rows[in_y, 0] += shift
    return rows, in_y, "pairs"


CASES = [
    ("10 + 10 subjects, 10 rows each", subjects, 2.0),
    ("10 + 10 subjects, 1 to 30 rows", unequal, 2.0),
    ("8 + 8 trajectories of 20 steps", trajectories, 1.0),
    ("10 days in unequal shares", days, 1.0),
    ("10 sites far apart", sites, 0.8),
    ("60 pairs", before_and_after, 0.4),
]


def centred(points, blocks):
    """Return points less the mean of their stratum or pair."""
    half = np.arange(len(points) // 2)
    label = np.concatenate([half, half]) if blocks == "pairs" else np.asarray(blocks.labels)
    means = np.stack([np.bincount(label, column) for column in points.T], axis=1)
    return points - (means / np.bincount(label)[:, None])[label]


def rejects(rows, in_y, blocks, rng):
    """Whether the plain test, that of the design, and that of centred points reject."""
    order = np.argsort(in_y, kind="stable")
    n_x = int((~in_y).sum())
    if isinstance(blocks, ce.Strata | ce.Clusters):
        blocks = type(blocks)(np.asarray(blocks.labels)[order])
    x, y = rows[order[:n_x]], rows[order[n_x:]]
    given = {"n_resamples": RESAMPLES, "rng": rng}
    found = [ce.two_sample(x, y, **given), ce.two_sample(x, y, blocks=blocks, **given)]
    if not isinstance(blocks, ce.Clusters):
        found.append(
            ce.two_sample(
                x, y, blocks=blocks, transform=lambda points: centred(points, blocks), **given
            )
        )
    return [each.pvalue <= 0.05 for each in found]


def main(repetitions):
    print(f"{repetitions} repetitions, {RESAMPLES} labellings, rejections at 5%")
    print(f"{'':32} {'equal':^23} {'shifted':^23}")
    print(f"{'':32} {'plain   blocks  centred':23} {'plain   blocks  centred':23}")
    for name, make, shift in CASES:
        cells = []
        for size in (0.0, shift):
            outcomes = []
            for seed in range(repetitions):
                rng = np.random.default_rng([seed, int(100 * size)])
                outcomes.append(rejects(*make(rng, size), rng))
            rates = np.mean(outcomes, axis=0)
            cells.append("".join(f"{rate:<8.3f}" for rate in rates))
        print(f"{name:32} {cells[0]:23} {cells[1]:23}", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
