"""What a run is made of, as plain values that go to a file and come back."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Any, NamedTuple

from crossedge.losses import TwoSampleLoss
from crossedge.weights import (
    EnergyKernel,
    GaussianKernel,
    NearestNeighbours,
    SpanningTree,
    Weights,
)

Scale = float | tuple[float, ...] | str
WEIGHTS = ("neighbours", "tree", "gaussian", "energy")


class Phase(NamedTuple):
    """So many epochs at one step size of Adam."""

    epochs: int
    step: float


@dataclass(frozen=True)
class Configuration:
    """One run of `crossedge learn`."""

    data: str
    weights: str = "neighbours"
    k: int = 1
    temperature: Scale = 1.0
    bandwidth: Scale = "median"
    statistic: str | None = None
    standardize: bool | str = True
    batch: int = 256
    phases: tuple[Phase, ...] = (Phase(100, 1e-3),)
    noise: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        if self.weights not in WEIGHTS:
            known = ", ".join(repr(name) for name in WEIGHTS)
            raise ValueError(f"weights={self.weights!r} is unknown: choose from {known}")
        if self.batch < 2:
            raise ValueError(f"batch={self.batch} is too small: give at least 2")
        if not self.phases or min(phase.epochs for phase in self.phases) < 1:
            raise ValueError("phases is empty, or one has no epoch: give at least one")

    @property
    def epochs(self) -> int:
        return sum(phase.epochs for phase in self.phases)

    def make_weights(self) -> Weights:
        if self.weights == "neighbours":
            return NearestNeighbours(self.k, self.temperature)  # type: ignore[arg-type]
        if self.weights == "tree":
            return SpanningTree(self.temperature)  # type: ignore[arg-type]
        if self.weights == "gaussian":
            return GaussianKernel(self.bandwidth)  # type: ignore[arg-type]
        return EnergyKernel()

    def make_loss(self) -> TwoSampleLoss:
        return TwoSampleLoss(self.make_weights(), self.statistic, self.standardize)  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Configuration:
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise ValueError(f"the configuration has an unknown entry {unknown[0]!r}")
        values = dict(values)
        values["phases"] = tuple(Phase(int(e), float(s)) for e, s in values["phases"])
        for name in ("temperature", "bandwidth"):
            if isinstance(values.get(name), list):
                values[name] = tuple(values[name])
        return cls(**values)


def _moons(temperature: float) -> Configuration:
    return Configuration("moons", temperature=temperature, phases=(Phase(500, 1e-4),))


_BOTH = (Phase(500, 1e-3), Phase(500, 1e-4))
_MNIST = Configuration("mnist", temperature=10.0, phases=_BOTH)

# The seven models of the paper's table of optimisation, in its order
PRESETS = {
    "moons-1": _moons(10.0),
    "moons-2": _moons(1.0),
    "moons-3": _moons(0.05),
    "mnist-1": _MNIST,
    "mnist-2": replace(_MNIST, batch=512),
    "mnist-3": replace(
        _MNIST, weights="tree", batch=128, phases=(Phase(100, 1e-3), Phase(100, 1e-4))
    ),
    "mnist-4": replace(
        _MNIST,
        weights="tree",
        temperature=5.0,
        batch=128,
        phases=(Phase(100, 1e-4), Phase(100, 1e-4)),
    ),
}
