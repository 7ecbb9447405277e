"""What a run is made of, as plain values that go to a file and come back."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from crossedge.losses import TwoSampleLoss
    from crossedge.weights import Weights

Scale = float | tuple[float, ...] | str
WEIGHTS = {  # and the settings that they use
    "neighbours": ("k", "temperature"),
    "tree": ("temperature",),
    "gaussian": ("bandwidth",),
    "laplace": ("bandwidth",),
    "multiquadric": ("bandwidth",),
    "energy": (),
}


class Phase(NamedTuple):
    """So many epochs at one step size of Adam, and at a temperature of their own if they have one.

    Phases that get colder anneal the loss.
    """

    epochs: int
    step: float
    temperature: Scale | None = None


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
        for name, least in (("batch", 2), ("noise", 1), ("k", 1)):
            if getattr(self, name) < least:
                value = getattr(self, name)
                raise ValueError(f"{name}={value} is too small: give at least {least}")
        if not self.phases or min(phase.epochs for phase in self.phases) < 1:
            raise ValueError("phases is empty, or one has no epoch: give at least one")
        for phase in self.phases:
            if not 0 < phase.step < math.inf:
                raise ValueError(f"a step size is {phase.step}: give positive numbers")
            if phase.temperature is not None and "temperature" not in WEIGHTS[self.weights]:
                raise ValueError(f"weights {self.weights!r} have no temperature: give phases none")
            _check_scale("temperature", phase.temperature)
        for name in ("temperature", "bandwidth"):
            _check_scale(name, getattr(self, name))

    @property
    def epochs(self) -> int:
        return sum(phase.epochs for phase in self.phases)

    def phase_of(self, epoch: int) -> Phase:
        """That of an epoch, counted from 1."""
        last = 0
        for phase in self.phases:
            last += phase.epochs
            if epoch <= last:
                break
        return phase

    def make_weights(self, phase: Phase) -> Weights:
        from crossedge import weights as families  # here: plain values do not need torch

        temperature = self.temperature if phase.temperature is None else phase.temperature
        if self.weights == "neighbours":
            return families.NearestNeighbours(self.k, temperature)  # type: ignore[arg-type]
        if self.weights == "tree":
            return families.SpanningTree(temperature)  # type: ignore[arg-type]
        kernels: dict[str, Any] = {
            "gaussian": families.GaussianKernel,
            "laplace": families.LaplaceKernel,
            "multiquadric": families.InverseMultiquadricKernel,
        }
        if self.weights in kernels:
            kernel: Weights = kernels[self.weights](self.bandwidth)
            return kernel
        return families.EnergyKernel()

    def make_losses(self) -> list[TwoSampleLoss]:
        """One for each phase."""
        from crossedge.losses import TwoSampleLoss

        return [
            TwoSampleLoss(self.make_weights(phase), self.statistic, self.standardize)  # type: ignore[arg-type]
            for phase in self.phases
        ]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Configuration:
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise ValueError(f"the configuration has an unknown entry {unknown[0]!r}")
        values = dict(values)
        values["phases"] = tuple(
            Phase(int(epochs), float(step), _scale(temperature))
            for epochs, step, temperature in values["phases"]
        )
        for name in ("temperature", "bandwidth"):
            if name in values:
                values[name] = _scale(values[name])
        return cls(**values)


def _check_scale(name: str, scale: Scale | None) -> None:
    """Raise ValueError unless it is "median", or numbers at which a loss has a gradient."""
    if scale is None or scale == "median":
        return
    for value in scale if isinstance(scale, tuple) else (scale,):
        if isinstance(value, str) or not 0 < value < math.inf:
            raise ValueError(f"{name} {value} is not above 0: give a positive number, or 'median'")


def _scale(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def with_epochs(configuration: Configuration, epochs: int) -> Configuration:
    """The same, in so many epochs; all phases keep their shares, and at least one epoch."""
    if epochs < 1:
        raise ValueError(f"{epochs} epochs or steps are too few: give at least 1")
    phases, last, done = configuration.phases, 0, 0
    shares = []
    for phase in phases:
        done += phase.epochs
        upto = max(round(epochs * done / configuration.epochs), last + 1)
        shares.append(phase._replace(epochs=upto - last))
        last = upto
    return replace(configuration, phases=tuple(shares))


def with_steps(configuration: Configuration, steps: int, points: int) -> Configuration:
    """The same, in the epochs that have at least so many steps on so many points."""
    return with_epochs(configuration, -(-steps // max(points // configuration.batch, 1)))


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

# Not the paper's: what it compares with (Li and co-authors, 2015), on the same network
PRESETS["mnist-gmmn"] = replace(
    _MNIST,
    weights="gaussian",
    bandwidth=(2.0, 5.0, 10.0, 20.0, 40.0, 80.0),
    standardize=False,
)

# The defaults of `crossedge learn`: T itself, the mean of a low, a middle and a high temperature,
# and steps that fall (docs/learning.md compares with others)
RECIPES = {
    "moons": Configuration(
        "moons",
        temperature=(0.05, 0.2, 1.0),
        standardize=False,
        phases=(Phase(40, 1e-3), Phase(20, 3e-4), Phase(20, 1e-4), Phase(20, 3e-5)),
    ),
    "digits": Configuration(
        "digits",
        temperature=(0.8, 1.6, 3.2),
        standardize=False,
        phases=(Phase(300, 1e-3), Phase(100, 1e-4)),
    ),
    "mnist": Configuration(
        "mnist",
        temperature=(3.0, 6.0, 12.0),
        standardize=False,
        phases=(Phase(20, 1e-3), Phase(5, 1e-4)),
    ),
}
