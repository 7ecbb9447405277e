"""Settings of a training run, as plain values that can be written to JSON and read back."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from crossedge.losses import TwoSampleLoss
    from crossedge.weights import Weights

Scale = float | tuple[float, ...] | str  # one value, several to average over, or "median"
GENERATORS = ("mlp", "conv")  # others are code: package.module:factory
WEIGHTS = {  # name of a family of weights -> the settings that it uses
    "neighbours": ("k", "temperature"),
    "tree": ("temperature",),
    "gaussian": ("bandwidth",),
    "laplace": ("bandwidth",),
    "multiquadric": ("bandwidth",),
    "energy": (),
}


class Phase(NamedTuple):
    """A number of epochs with one step size of Adam and, optionally, one temperature.

    Phases with falling temperatures anneal the loss.

    Attributes
    ----------
    epochs : int
        Number of passes over the training data.
    step : float
        Step size of Adam.
    temperature : float, tuple of float or "median", optional
        Temperature in this phase; by default that of the configuration.
    """

    epochs: int
    step: float
    temperature: Scale | None = None


@dataclass(frozen=True)
class Configuration:
    """Settings of one run of `crossedge learn`.

    Attributes
    ----------
    data : str
        Name of the data set, as in `load`, or the path of a file or folder.
    weights : str
        Family of weights: "neighbours", "tree", or one of the kernels "gaussian", "laplace",
        "multiquadric" and "energy".
    k : int
        Number of neighbours, for "neighbours".
    temperature : float, tuple of float or "median"
        Temperature of "neighbours" and "tree". A tuple stands for the mean of the weights at its
        temperatures.
    bandwidth : float, tuple of float or "median"
        Bandwidth of the kernels, except for "energy".
    statistic : str, optional
        Statistic of the loss, as in `TwoSampleLoss`.
    standardize : bool or str
        Standardisation of the loss, as in `TwoSampleLoss`.
    batch : int
        Number of data points, and of generated points, in a step.
    phases : tuple of Phase
        Phases of training, in order.
    noise : int
        Dimension of the normal noise that the generator turns into points.
    signs : int
        Number of random signs, -1 or 1, beside the normal noise. They let a generator make
        separate clusters without a bridge between them.
    seed : int
        Seed of the parameters, of the order of the data and of the noise.
    generator : str
        "mlp" (the paper's), "conv" for images, or "package.module:factory", as in
        `make_generator`.
    average : float
        Decay of the average of the generator's parameters over the steps, by which samples are
        drawn; at 0 they are drawn by the last parameters.
    condition : str, optional
        Column of labels that the generator is told; "label" for the classes of images.
    columns, drop : tuple of str
        Columns of a table that are learned, and that are left out; by default all and none.
    header : bool, optional
        Whether the first line of a text names the columns; by default by its looks.
    image : tuple of int, optional
        Height, width and channels of images in the rows of an array.

    Raises
    ------
    ValueError
        If a family of weights is unknown, a number is too small, a scale or step size is not
        positive, there is no phase, or a phase has a temperature that the weights do not use.

    See Also
    --------
    PRESETS : The models of the paper.
    RECIPES : The defaults of `crossedge learn`, by data set.
    Trainer.configured : Make a trainer from a configuration.

    Examples
    --------
    >>> from crossedge.learning import Configuration, Phase
    >>> one = Configuration("moons", temperature=0.5, phases=(Phase(20, 1e-3), Phase(5, 1e-4)))
    >>> one.epochs, one.phase_of(21).step
    (25, 0.0001)
    """

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
    generator: str = "mlp"
    average: float = 0.0
    signs: int = 0
    condition: str | None = None
    columns: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    header: bool | None = None
    image: tuple[int, int, int] | None = None

    def __post_init__(self) -> None:
        if self.weights not in WEIGHTS:
            known = ", ".join(repr(name) for name in WEIGHTS)
            raise ValueError(f"weights={self.weights!r} is unknown: choose from {known}")
        for name, least in (("batch", 2), ("noise", 1), ("k", 1), ("signs", 0)):
            if getattr(self, name) < least:
                value = getattr(self, name)
                raise ValueError(f"{name}={value} is too small: give at least {least}")
        if not 0 <= self.average < 1:
            raise ValueError(f"average={self.average} is no decay: give a number from 0 to below 1")
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
        """Number of epochs in all phases."""
        return sum(phase.epochs for phase in self.phases)

    def phase_of(self, epoch: int) -> Phase:
        """Return the phase of an epoch; epochs count from 1, and later ones have the last."""
        last = 0
        for phase in self.phases:
            last += phase.epochs
            if epoch <= last:
                break
        return phase

    def make_weights(self, phase: Phase) -> Weights:
        """Return the weights of a phase."""
        from crossedge import weights as families  # imported late: plain values need no torch

        temperature = self.temperature if phase.temperature is None else phase.temperature
        if self.weights == "neighbours":
            return families.NearestNeighbours(self.k, temperature)
        if self.weights == "tree":
            return families.SpanningTree(temperature)
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
        """Return one loss for each phase."""
        from crossedge.losses import TwoSampleLoss

        return [
            TwoSampleLoss(self.make_weights(phase), self.statistic, self.standardize)  # type: ignore[arg-type]
            for phase in self.phases
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return all settings as a dictionary that json can write."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Configuration:
        """Return the configuration that `to_dict` wrote, also after a round trip through JSON.

        Parameters
        ----------
        values : dict
            Settings by name; "phases" must be among them.

        Raises
        ------
        ValueError
            If there is an unknown setting, or a value that the configuration refuses.
        """
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise ValueError(f"the configuration has an unknown entry {unknown[0]!r}")
        values = dict(values)
        values["phases"] = tuple(
            Phase(int(epochs), float(step), _scale(temperature))
            for epochs, step, temperature in values["phases"]
        )
        for name in ("temperature", "bandwidth", "columns", "drop", "image"):
            if name in values:
                values[name] = _scale(values[name])
        return cls(**values)


def _check_scale(name: str, scale: Scale | None) -> None:
    """Raise ValueError unless a scale is None, "median", or finite and positive."""
    if scale is None or scale == "median":
        return
    for value in scale if isinstance(scale, tuple) else (scale,):
        if isinstance(value, str) or not 0 < value < math.inf:
            raise ValueError(f"{name} {value} is not above 0: give a positive number, or 'median'")


def _scale(value: Any) -> Any:
    """Return a scale as read from JSON, where tuples have become lists."""
    return tuple(value) if isinstance(value, list) else value


def with_epochs(configuration: Configuration, epochs: int) -> Configuration:
    """Return the same configuration with another number of epochs.

    Phases keep their shares of the epochs, rounded, but each keeps at least one. So there can be
    more epochs than asked for, if there are more phases.
    """
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
    """Return the same configuration with as few epochs as make the number of steps.

    Parameters
    ----------
    configuration : Configuration
        Settings to change.
    steps : int
        Least number of optimiser steps.
    points : int
        Number of training points, which decides how many steps an epoch has.
    """
    return with_epochs(configuration, -(-steps // max(points // configuration.batch, 1)))
