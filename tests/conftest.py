import os

# several workers share the cores: threads that wait shall sleep, not spin
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read when torch is imported
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when numpy is imported

import matplotlib
import pytest
import torch
from hypothesis import settings

from crossedge.runtime.arrays import is_tensor

matplotlib.use("Agg")
pytest.register_assert_rewrite("contract", "smoothed_cases")
# compiled loops take their time on the first call, so examples have no deadline
settings.register_profile("crossedge", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("crossedge")


def use_twins(monkeypatch):
    """Work as on a device that has no compiled loops."""
    for module in ("numerics.smoothed", "weights.graphs"):
        monkeypatch.setattr(f"crossedge.{module}.has_compiled_loops", lambda a: not is_tensor(a))


@pytest.fixture(params=["numpy", "compiled"])
def graphs(request, monkeypatch):
    """Make classical graphs by numpy or by compiled loops, whatever the number of points."""
    small = 10**9 if request.param == "numpy" else 0
    for module in ("searches", "spanning_tree"):
        monkeypatch.setattr(f"crossedge.weights.{module}.SMALL", small)
    monkeypatch.setattr("crossedge.numerics.trees.tied.SMALL", small)


@pytest.fixture(params=["compiled", "torch"])
def loops(request, monkeypatch):
    if request.param == "torch":
        use_twins(monkeypatch)


# many small tensors are faster without torch's threads; our own loops shall have two
THREADED = (
    "smoothed",
    "weights",
    "twins",
    "star_mesh",
    "permutation",
    "two_sample",
    "samples",
)


@pytest.fixture(autouse=True, scope="module")
def _threads(request):
    name = getattr(request.node, "name", "")
    before = torch.get_num_threads()
    torch.set_num_threads(2 if any(f"test_{one}.py" in name for one in THREADED) else 1)
    yield
    torch.set_num_threads(before)
