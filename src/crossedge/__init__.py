"""Two-sample tests on neighbourhood graphs: do these samples come from the same distribution?"""

from __future__ import annotations

TYPE_CHECKING = False  # as type checkers know it; typing itself takes a while to import
if TYPE_CHECKING:
    from typing import Any

    from crossedge.divergences import divergence as divergence
    from crossedge.losses import TwoSampleLoss as TwoSampleLoss
    from crossedge.null.normality import normality as normality
    from crossedge.result import TwoSampleResult as TwoSampleResult
    from crossedge.studies import PowerStudy as PowerStudy
    from crossedge.studies import power_study as power_study
    from crossedge.verbs import two_sample as two_sample
    from crossedge.weights import EnergyKernel as EnergyKernel
    from crossedge.weights import GaussianKernel as GaussianKernel
    from crossedge.weights import GraphWeights as GraphWeights
    from crossedge.weights import InverseMultiquadricKernel as InverseMultiquadricKernel
    from crossedge.weights import KernelWeights as KernelWeights
    from crossedge.weights import LaplaceKernel as LaplaceKernel
    from crossedge.weights import NearestNeighbours as NearestNeighbours
    from crossedge.weights import SpanningTree as SpanningTree
    from crossedge.weights import Weights as Weights
    from crossedge.weights import sample_edges as sample_edges

__version__ = "0.1.0"

# Every public name and its home, which is imported when the name is first used: whoever asks for
# the version or the help of the command does not wait for torch.
_HOMES = {
    "EnergyKernel": "crossedge.weights",
    "GaussianKernel": "crossedge.weights",
    "GraphWeights": "crossedge.weights",
    "InverseMultiquadricKernel": "crossedge.weights",
    "KernelWeights": "crossedge.weights",
    "LaplaceKernel": "crossedge.weights",
    "NearestNeighbours": "crossedge.weights",
    "PowerStudy": "crossedge.studies",
    "SpanningTree": "crossedge.weights",
    "TwoSampleLoss": "crossedge.losses",
    "TwoSampleResult": "crossedge.result",
    "Weights": "crossedge.weights",
    "divergence": "crossedge.divergences",
    "normality": "crossedge.null.normality",
    "power_study": "crossedge.studies",
    "sample_edges": "crossedge.weights",
    "two_sample": "crossedge.verbs",
}
__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name in ("learning", "plots"):  # rooms with public names of their own
        from importlib import import_module

        return import_module(f"crossedge.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__", "learning", "plots"]
