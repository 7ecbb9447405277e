import matplotlib
import pytest
from hypothesis import settings

matplotlib.use("Agg")
# compiled loops take their time on the first call, so examples have no deadline
settings.register_profile("crossedge", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("crossedge")


def use_twins(monkeypatch):
    """Work as on a device that has no compiled loops."""
    for module in ("smoothed", "graphs"):
        monkeypatch.setattr(f"crossedge.weights.{module}.has_compiled_loops", lambda _: False)


@pytest.fixture(params=["compiled", "torch"])
def loops(request, monkeypatch):
    if request.param == "torch":
        use_twins(monkeypatch)
