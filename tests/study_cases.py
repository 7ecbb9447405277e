"""Small power studies to run in tests, and what it takes to interrupt them."""

import os
import time

import numpy as np

import crossedge as ce

CALLS = []  # one entry for each call of `shifted`; globals are no part of a study's fingerprint
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}  # environment of processes started by tests


def shifted(rng, shift=0.0, n=6):
    CALLS.append(shift)
    return rng.normal(size=(n, 2)), rng.normal(size=(n, 2)) + shift


def normals(shift):
    """Return a sampler that is pickled by value, so that a worker need not import this module."""
    return lambda rng, n: (rng.normal(size=(n, 2)), rng.normal(size=(n, 2)) + shift)


def tiny(samplers=shifted, tests=None, **options):
    """Run a study of two tests at two points, unless the options say otherwise."""
    tests = tests or {"tree": ce.SpanningTree(), "energy": ce.EnergyKernel()}
    options = {"grid": {"shift": [0.0, 2.0]}, "repetitions": 40, "n_resamples": 19, **options}
    return ce.power_study(samplers, tests, **options)


def equal(one, other):
    """Return whether two studies have the same p-values."""
    return one.pvalues.keys() == other.pvalues.keys() and all(
        np.array_equal(one.pvalues[name], other.pvalues[name]) for name in one.pvalues
    )


class StopsAt(list):
    """A list that raises KeyboardInterrupt, as Ctrl-C does, when it has so many entries."""

    def __init__(self, count):
        self.count = count

    def append(self, value):
        super().append(value)
        if len(self) == self.count:
            raise KeyboardInterrupt


def wait_for(condition, *processes):
    """Wait up to two minutes for a condition, while all processes are alive."""
    for _ in range(6000):
        if condition():
            return
        assert all(process.poll() is None for process in processes), "a process has ended"
        time.sleep(0.02)
    raise AssertionError("nothing happened for two minutes")
