"""Two-sample tests on neighbourhood graphs: do two samples come from the same distribution?

Begin with `two_sample`. The weights (`SpanningTree`, `NearestNeighbours`, kernels) choose the test,
and the laws (`Permutation`, `Normal`, `Pearson3`, `Tail`) turn its statistic into a p-value.
`TwoSampleLoss` makes a differentiable loss of a test, and `power_study` estimates power.
`crossedge.plots` and `crossedge.learning` have public names of their own.
"""

from __future__ import annotations

from crossedge.runtime.lazy import installed, lazy_attribute

TYPE_CHECKING = False  # type checkers take it for true; importing it from typing would be slow
if TYPE_CHECKING:
    from typing import Any

    from crossedge.data.designs import Clusters as Clusters
    from crossedge.data.designs import Strata as Strata
    from crossedge.divergences import divergence as divergence
    from crossedge.effects import EffectSize as EffectSize
    from crossedge.effects import effect_size as effect_size
    from crossedge.k_samples import KSampleResult as KSampleResult
    from crossedge.k_samples import k_sample as k_sample
    from crossedge.losses import TwoSampleLoss as TwoSampleLoss
    from crossedge.losses import gather as gather
    from crossedge.maps import LearnedMap as LearnedMap
    from crossedge.maps import learn_map as learn_map
    from crossedge.monitoring import Monitor as Monitor
    from crossedge.monitoring import MonitorState as MonitorState
    from crossedge.null import Normal as Normal
    from crossedge.null import Pearson3 as Pearson3
    from crossedge.null import Permutation as Permutation
    from crossedge.null import Tail as Tail
    from crossedge.null.normality import normality as normality
    from crossedge.planning import Plan as Plan
    from crossedge.planning import plan as plan
    from crossedge.plots import plot_graph as plot_graph
    from crossedge.reports import Report as Report
    from crossedge.reports import report as report
    from crossedge.result import TwoSampleResult as TwoSampleResult
    from crossedge.sparsifiers import Sparsifier as Sparsifier
    from crossedge.sparsifiers import sparsify as sparsify
    from crossedge.studies import PowerStudy as PowerStudy
    from crossedge.studies import power_study as power_study
    from crossedge.verbs import two_sample as two_sample
    from crossedge.weights import EnergyKernel as EnergyKernel
    from crossedge.weights import GaussianKernel as GaussianKernel
    from crossedge.weights import Graph as Graph
    from crossedge.weights import GraphWeights as GraphWeights
    from crossedge.weights import InverseMultiquadricKernel as InverseMultiquadricKernel
    from crossedge.weights import KernelWeights as KernelWeights
    from crossedge.weights import LaplaceKernel as LaplaceKernel
    from crossedge.weights import LinearKernel as LinearKernel
    from crossedge.weights import NearestNeighbours as NearestNeighbours
    from crossedge.weights import QuadraticKernel as QuadraticKernel
    from crossedge.weights import SpanningTree as SpanningTree
    from crossedge.weights import Weights as Weights
    from crossedge.weights import sample_edges as sample_edges
    from crossedge.witnesses import Witness as Witness
    from crossedge.witnesses import witness as witness

__version__ = "0.2.0"

# Every public name and the module that defines it. A module is imported when one of its names is
# first used, so that `crossedge --help` or `crossedge.__version__` need not wait for numpy.
_HOMES = {
    "Clusters": "crossedge.data.designs",
    "EffectSize": "crossedge.effects",
    "EnergyKernel": "crossedge.weights",
    "GaussianKernel": "crossedge.weights",
    "Graph": "crossedge.weights",
    "GraphWeights": "crossedge.weights",
    "InverseMultiquadricKernel": "crossedge.weights",
    "KSampleResult": "crossedge.k_samples",
    "KernelWeights": "crossedge.weights",
    "LaplaceKernel": "crossedge.weights",
    "LinearKernel": "crossedge.weights",
    "LearnedMap": "crossedge.maps",
    "Monitor": "crossedge.monitoring",
    "MonitorState": "crossedge.monitoring",
    "NearestNeighbours": "crossedge.weights",
    "Normal": "crossedge.null",
    "Pearson3": "crossedge.null",
    "Permutation": "crossedge.null",
    "Plan": "crossedge.planning",
    "PowerStudy": "crossedge.studies",
    "QuadraticKernel": "crossedge.weights",
    "Report": "crossedge.reports",
    "SpanningTree": "crossedge.weights",
    "Sparsifier": "crossedge.sparsifiers",
    "Strata": "crossedge.data.designs",
    "Tail": "crossedge.null",
    "TwoSampleLoss": "crossedge.losses",
    "TwoSampleResult": "crossedge.result",
    "Weights": "crossedge.weights",
    "Witness": "crossedge.witnesses",
    "divergence": "crossedge.divergences",
    "effect_size": "crossedge.effects",
    "gather": "crossedge.losses",
    "k_sample": "crossedge.k_samples",
    "learn_map": "crossedge.maps",
    "normality": "crossedge.null.normality",
    "plan": "crossedge.planning",
    "plot_graph": "crossedge.plots",
    "power_study": "crossedge.studies",
    "report": "crossedge.reports",
    "sample_edges": "crossedge.weights",
    "sparsify": "crossedge.sparsifiers",
    "two_sample": "crossedge.verbs",
    "witness": "crossedge.witnesses",
}
_SUBMODULES = {name: f"crossedge.{name}" for name in ("learning", "plots")}
# names that need an extra are listed where it is installed, so that `help` can show them
_WITH_TORCH = {"LearnedMap", "TwoSampleLoss", "gather", "learn_map"}
_WITH_MATPLOTLIB = {"plot_graph"}
_WANTING = (set() if installed("torch") else _WITH_TORCH) | (
    set() if installed("matplotlib") else _WITH_MATPLOTLIB
)
__all__ = [name for name in _HOMES if name not in _WANTING]


def __getattr__(name: str) -> Any:
    value = lazy_attribute(_HOMES | _SUBMODULES, __name__, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__", "learning", *(["plots"] if installed("matplotlib") else [])]
