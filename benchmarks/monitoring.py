"""The delay of `Monitor` beside that of an online MMD, at the same rate of false alarms.

The online MMD compares a sliding window of the last WINDOW points with the reference, by the
squared MMD with a Gaussian kernel at the median distance, after each point. Published versions
find its threshold by simulation from the reference, for an expected run length. Here it is found
from fresh streams without a change, such that exactly RATE of them raise an alarm: better than
any user could do, who has no such streams. `Monitor` gets the same points in batches, and the
run length that promises at most RATE.

    python benchmarks/monitoring.py [--streams 10]
"""

from __future__ import annotations

import argparse

import numpy as np

import crossedge as ce

D, REFERENCE, WINDOW, BATCH, QUIET, AFTER = 10, 1000, 100, 50, 500, 1500
RATE = 0.1  # of streams without a change that may raise an alarm
NULL_STREAMS = 100  # for the threshold of the MMD


def changes():
    def mean(points, _):
        points[:, 0] += 0.6

    def weak(points, _):
        points += 0.15

    def variance(points, _):
        points *= 1.2

    def local(points, rng):
        some = rng.random(len(points)) < 0.12
        points[some] = 0.2 * points[some] + 1.0

    def covariance(points, rng):
        points[:, :5] = np.sqrt(0.5) * points[:, :5] + np.sqrt(0.5) * rng.normal(
            size=(len(points), 1)
        )

    return {
        "mean of one column + 0.6": mean,
        "mean of all columns + 0.15": weak,
        "spread x 1.2": variance,
        "12% of the points in a cluster": local,
        "five columns correlated, 0.5": covariance,
        "nothing": None,
    }


def squared(a, b):
    return np.maximum((a**2).sum(1)[:, None] + (b**2).sum(1) - 2 * a @ b.T, 0)


def window_values(reference, stream):
    """Return the squared MMD of every window of a stream with the reference."""
    distances, n = squared(reference, reference), len(reference)
    scale = np.median(distances)
    within = (np.exp(-distances / scale).sum() - n) / (n * (n - 1))
    across = np.exp(-squared(stream, reference) / scale).mean(1)
    return _windows(np.exp(-squared(stream, stream) / scale), across, within)


def calibrated(streams):
    """Return the threshold that RATE of fresh streams without a change exceed."""
    tops = []
    for seed in range(streams):
        rng = np.random.default_rng([seed, 99])
        reference, stream = rng.normal(size=(REFERENCE, D)), rng.normal(size=(QUIET + AFTER, D))
        tops.append(window_values(reference, stream).max())
    return np.quantile(tops, 1 - RATE)


def window_delay(reference, stream, threshold):
    over = np.flatnonzero(window_values(reference, stream) > threshold)
    return over[0] + WINDOW if len(over) else np.inf


def _windows(own, across, within):
    """Return the squared MMD of every window of a stream with its reference."""
    total = np.zeros((len(own) + 1, len(own) + 1))
    total[1:, 1:] = own.cumsum(0).cumsum(1)
    ends = np.arange(WINDOW, len(own) + 1)
    starts = ends - WINDOW
    block = total[ends, ends] - total[starts, ends] - total[ends, starts] + total[starts, starts]
    sums = np.append(0, across.cumsum())
    return (
        (block - WINDOW) / (WINDOW * (WINDOW - 1))
        + within
        - 2 * (sums[ends] - sums[starts]) / WINDOW
    )


def monitor_delay(reference, stream, seed):
    monitor = ce.Monitor(reference, run_length=(QUIET + AFTER) / BATCH / RATE, rng=seed)
    for end in range(BATCH, len(stream) + 1, BATCH):
        if monitor.update(stream[end - BATCH : end]).alarm:
            return end
    return np.inf


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=10)
    streams = parser.parse_args().streams
    threshold = calibrated(NULL_STREAMS)
    print(f"{streams} streams each, {D} columns, a change after {QUIET} of {QUIET + AFTER} points")
    print("| change | Monitor: delay, found | online MMD: delay, found | alarms before |")
    print("|---|---|---|---|")
    for name, change in changes().items():
        found = {"monitor": [], "mmd": []}
        for seed in range(streams):
            rng = np.random.default_rng([seed, 7])
            reference = rng.normal(size=(REFERENCE, D))
            before, after = rng.normal(size=(QUIET, D)), rng.normal(size=(AFTER, D))
            if change is not None:
                change(after, rng)
            stream = np.concatenate([before, after])
            found["monitor"].append(monitor_delay(reference, stream, seed))
            found["mmd"].append(window_delay(reference, stream, threshold))
        cells, early = [], []
        for each in found.values():
            ends = np.array(each)
            early.append(str(int((ends <= QUIET).sum())))
            late = ends[ends > QUIET] - QUIET
            hit = np.isfinite(late)
            median = np.median(late)
            cells.append(
                f"{median:.0f}, {hit.mean():.0%}" if np.isfinite(median) else f"-, {hit.mean():.0%}"
            )
        print(f"| {name} | {cells[0]} | {cells[1]} | {', '.join(early)} |", flush=True)


if __name__ == "__main__":
    main()
