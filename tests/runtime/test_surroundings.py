"""What the caller has set elsewhere does not change an answer, and memory is looked at first."""

import resource
import subprocess
import sys

import numpy as np
import pytest
import torch

import crossedge as ce
from crossedge.runtime import headroom
from crossedge.weights import EdgeList

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(30, 3)), RNG.normal(size=(30, 3)) + 0.3


@pytest.mark.parametrize("weights", [None, ce.SpanningTree(1.0), ce.GaussianKernel()])
@pytest.mark.parametrize("in_main_thread", [True, False])
def test_the_default_device_is_for_others(weights, in_main_thread):
    expected = ce.two_sample(X, Y, weights, n_resamples=99, rng=0).pvalue
    found = []

    def call():
        torch.set_default_device("meta")
        try:
            found.append(ce.two_sample(X, Y, weights, n_resamples=99, rng=0).pvalue)
        finally:
            torch.set_default_device(None)

    if in_main_thread:
        call()
    else:
        import threading

        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
    assert found == [expected]


@pytest.mark.parametrize("null", ["permutation", "tail"])
@pytest.mark.parametrize(
    "weights", [ce.SpanningTree(1.0), ce.SpanningTree(0.01), ce.LaplaceKernel()]
)
def test_numpy_may_be_told_to_raise(weights, null):
    expected = ce.two_sample(X, Y, weights, null=null, n_resamples=99, rng=0).pvalue
    before = np.seterr(all="raise")
    try:
        assert ce.two_sample(X, Y, weights, null=null, n_resamples=99, rng=0).pvalue == expected
        points = torch.from_numpy(np.vstack([X, Y]))
        distances = torch.cdist(points, points).requires_grad_()
        weights(distances)[:30, :30].sum().backward()
        cold = distances.detach().requires_grad_()
        ce.SpanningTree(1e-6)(cold)[:30, :30].sum().backward()
    finally:
        np.seterr(**before)


class TestMemory:
    def test_one_line_says_what_to_do(self, monkeypatch):
        monkeypatch.setattr(headroom, "free_memory", lambda: 2.0**30)
        x = np.random.default_rng(0).normal(size=(5000, 2))
        with pytest.raises(MemoryError) as error:
            ce.two_sample(x, x, ce.NearestNeighbours(3, 1.0))
        text = str(error.value)
        assert "10,000 points need about 4.5 GiB" in text
        assert "1.0 GiB are free" in text
        assert "at most 4,700 points" in text
        assert "\n" not in text
        points = torch.from_numpy(x)
        with pytest.raises(MemoryError, match="x and y that together have at most"):
            ce.TwoSampleLoss(ce.GaussianKernel())(points, points)

    def test_classical_graphs_need_no_matrix(self, monkeypatch):
        monkeypatch.setattr(headroom, "free_memory", lambda: 0.0)
        monkeypatch.setattr(EdgeList, "dense", lambda self: pytest.fail("a matrix"))
        x = np.random.default_rng(0).normal(size=(3000, 2))
        assert ce.two_sample(x, x + 1, ce.NearestNeighbours(3), n_resamples=9).pvalue == 0.1

    def test_what_is_free_is_known_here(self):
        assert 2**20 < headroom.free_memory() < 2**50

    def test_the_limit_of_the_process_counts(self):
        code = """
import resource
from crossedge.runtime.headroom import free_memory
resource.setrlimit(resource.RLIMIT_AS, (3 * 2**30, 3 * 2**30))
assert 2**29 < free_memory() < 3 * 2**30, free_memory()
"""
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
        assert resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY
