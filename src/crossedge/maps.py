"""Learn on one half of the data how to tell two samples apart, and test on the other half."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np
import torch

from crossedge.data.samples import pool
from crossedge.losses import TwoSampleLoss
from crossedge.losses.settings import check_settings, scale_name
from crossedge.result import TwoSampleResult
from crossedge.runtime.counts import count_of
from crossedge.runtime.interrupts import checkpoint, run_interruptibly
from crossedge.runtime.randomness import Rng, random_key
from crossedge.runtime.types import Bools, Floats
from crossedge.verbs import two_sample
from crossedge.weights import GraphWeights, NearestNeighbours, Weights
from crossedge.weights.scales import median_distances, scale_values, show_scale

# The default temperature, over the median distance of the training points: neighbours matter, and
# the gradient still sees many of them.
NEAR = 0.15
POINTS_PER_ENTRY = 1.0  # a full matrix is learned if there are so many training points per entry
LARGEST_LOG_SCALE = 50.0  # of a temperature or bandwidth of standardised columns
FEWEST = 8  # points in a sample: two folds of four


class Fold(NamedTuple):
    """What was learned on one part of the data, and its test on the other.

    Attributes
    ----------
    module : torch.nn.Module
        The map, in evaluation mode; the identity if only the temperature or bandwidth was learned.
    weights : Weights or None
        The weights with the learned temperature or bandwidth; None if a map was learned.
    result : TwoSampleResult
        The test on points that the map has not seen.
    """

    module: torch.nn.Module
    weights: Weights | None
    result: TwoSampleResult


@dataclass(frozen=True, eq=False, repr=False)
class LearnedMap:
    """The answer of `learn_map`, which prints as a summary.

    Attributes
    ----------
    pvalue : float
        A valid p-value: that of the held-out half; with two folds, twice the smaller one, at most
        1.
    folds : tuple of Fold
        What was learned on each half, and its test on the other.
    module : torch.nn.Module
        The map of the fold with the smaller p-value.
    importance : array
        (d,) share of each column in that map: the squared size of its effect, summing to 1. For a
        module without columns, the mean squared gradient of its output.
    projection : array
        (n, 2) principal coordinates of all points under that map, x first, for a plot. The half on
        which the map was learned looks more separate than it is: see `held_out`.
    in_x, held_out : array
        (n,) booleans: which points are from x, and which that map has not seen.
    columns : tuple of str or None
        The names of the columns, in the order of `importance`, if x or y is a frame.

    See Also
    --------
    learn_map : The function that returns it.
    """

    pvalue: float
    folds: tuple[Fold, ...]
    module: torch.nn.Module
    importance: Floats
    projection: Floats
    in_x: Bools
    held_out: Bools
    columns: tuple[str, ...] | None

    def __repr__(self) -> str:
        tests = ", ".join(f"{fold.result.pvalue:.4g}" for fold in self.folds)
        return "\n".join(
            [
                f"learned map: {len(self.folds)} fold{'s' if len(self.folds) > 1 else ''}",
                f"  samples    {self.in_x.sum():,} and {(~self.in_x).sum():,} points",
                f"  p-value    {self.pvalue:.4g}  (on held-out points: {tests})",
                self._learned(),
            ]
        )

    def _learned(self) -> str:
        """Return the line of the learned scale, or of the columns that matter most."""
        (weights,) = (fold.weights for fold in self.folds if fold.module is self.module)
        if weights is not None:
            name = scale_name(weights)
            return f"  learned    {show_scale(getattr(weights, name), name, f'{name}s')}"
        names = self.columns or range(len(self.importance))
        best = np.argsort(-self.importance)[:5]
        shares = ", ".join(f"{names[place]} ({self.importance[place]:.0%})" for place in best)
        return f"  columns    {shares}"


class ColumnWeights(torch.nn.Module):
    """A diagonal linear map: each column times a positive number."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.log_weight = torch.nn.Parameter(torch.zeros(d))

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        """Return the columns times their weights."""
        return points * self.log_weight.exp()


def learn_map(
    x: Any,
    y: Any,
    module: torch.nn.Module | Literal["scale"] | None = None,
    *,
    weights: Weights | None = None,
    statistic: str | None = None,
    folds: Literal[1, 2] = 2,
    steps: int = 100,
    step_size: float = 0.05,
    n_resamples: int = 9999,
    rng: Rng = None,
) -> LearnedMap:
    """Learn a map on one half of the data so that a test tells the samples apart best.

    The test then runs on the other half, so its p-value is valid, whatever was learned. With a
    linear map and smoothed nearest neighbours this is neighbourhood components analysis [1]_, with
    k of them its extension in the paper [2]_; with a kernel and only its bandwidth it is the model
    criticism of Sutherland and co-authors [3]_.

    Parameters
    ----------
    x, y : array, tensor, list or frame
        (n_x, d) and (n_y, d) points, as in `two_sample`.
    module : torch.nn.Module, "scale" or None, optional
        The map to learn, which is not changed: each fold begins with a copy of it. It receives
        columns that are standardised on the points that it learns from, in float64, and then
        rounded to the type of its parameters. It receives both samples in one call, and must not
        depend on the order of the points. By default a linear map
        that begins with the identity: a full matrix if there are as many points to learn from as it
        has entries, otherwise one positive weight for each column. "scale" learns only the
        temperature or bandwidth of the weights, beginning with the given one.
    weights : Weights, optional
        Smoothed weights of the loss that is maximised. By default one nearest neighbour, at a
        temperature of 0.15 median distances. A temperature or bandwidth that is a tensor with a
        gradient stays as it is.
    statistic : str, optional
        The statistic of the loss. By default "weighted" for graphs, and "mmd_ratio" for kernels,
        which is the power to first order.
    folds : {1, 2}, optional
        With 2, each half is learned from and tested on the other one.
    steps, step_size : int and float, optional
        Steps of Adam, and their size.
    n_resamples : int, optional
        Random labellings of each test.
    rng : int, numpy Generator or torch Generator, optional
        The source of the random halves, of the labellings, and of torch's global generator while
        the map is learned, as for dropout. The global generator is left as it was.

    Returns
    -------
    LearnedMap
        The p-value, the maps, the tests on held-out points and a projection for a plot.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If a sample has less than eight points, if the choices do not go together, or if the module
        has no parameters that learn or does not give one row for each point.

    See Also
    --------
    two_sample : The test that runs on held-out points, adaptive over neighbourhoods.
    TwoSampleLoss : The loss that is maximised.

    Notes
    -----
    Half of the data is spent on learning. This pays where few of many columns matter, or a shape
    that distances in all columns do not see. A plain shift is found better by `two_sample`.

    References
    ----------
    .. [1] J. Goldberger and co-authors, "Neighbourhood components analysis", 2004.
    .. [2] J. Djolonga and A. Krause, "Learning implicit generative models using differentiable
       graph tests", 2017.
    .. [3] D. Sutherland and co-authors, "Generative models and model criticism via optimized
       maximum mean discrepancy", 2017.

    Examples
    --------
    >>> import numpy as np
    >>> import crossedge as ce
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(200, 50)), rng.normal(size=(200, 50))
    >>> y[:, :3] = 0.55 * y[:, :3] + 0.84 * rng.normal(size=(200, 1))  # three columns go together
    >>> found = ce.learn_map(x, y, rng=0)
    >>> bool(found.pvalue < 0.001 < ce.two_sample(x, y, rng=0).pvalue)
    True
    >>> sorted(np.argsort(-found.importance)[:3].tolist())
    [0, 1, 2]
    """
    if folds not in (1, 2):
        raise ValueError(f"folds={folds!r} is not supported: give 1 or 2")
    if module is not None and module != "scale" and not isinstance(module, torch.nn.Module):
        raise TypeError(
            f"module is of type {type(module).__name__}: give a torch.nn.Module, 'scale' or None"
        )
    if isinstance(module, torch.nn.Module) and not any(
        parameter.requires_grad for parameter in module.parameters()
    ):
        raise ValueError(
            f"module {type(module).__name__} has no parameters that learn: give one that has some, "
            "or unfreeze them with requires_grad_()"
        )
    count_of(steps, "steps")
    if isinstance(step_size, bool) or not (isinstance(step_size, Real) and 0 < step_size < np.inf):
        raise ValueError(f"step_size={step_size!r} is not supported: give a number above 0")
    if weights is not None:
        if module == "scale" and _is_cold(weights):
            raise ValueError(
                f"{weights!r} has temperature 0: module='scale' begins there and needs one above 0"
            )
        weights = check_settings(weights, statistic, True).weights  # without a scale that learns
        if module == "scale" and not scale_name(weights):
            raise ValueError(f"{weights!r} has no temperature or bandwidth that could be learned")
    samples = pool(x, y)
    for caution in samples.cautions:
        warnings.warn(caution, UserWarning, stacklevel=2)
    points, in_x = samples.values, samples.in_x
    if min(samples.n_x, samples.n_y) < FEWEST:
        raise ValueError(
            f"x has {samples.n_x} points and y has {samples.n_y}: to learn on one half and test on "
            f"the other, give at least {FEWEST} of each"
        )
    key = int(random_key(rng))
    source = np.random.default_rng(key)
    first = _half(in_x, source)
    halves = [first, ~first][:folds]

    def work() -> LearnedMap:
        found = []
        for learned_from in halves:
            task = _Task(points, in_x, learned_from, module, weights, statistic)
            found.append(task.fold(steps, step_size, n_resamples, int(source.integers(2**62))))
        best = min(range(len(found)), key=lambda place: found[place].result.log_pvalue)
        pvalue = min(1.0, folds * found[best].result.pvalue)
        importance, projection = _picture(found[best].module, points)
        return LearnedMap(
            pvalue=pvalue,
            folds=tuple(found),
            module=found[best].module,
            importance=importance,
            projection=projection,
            in_x=in_x,
            held_out=~halves[best],
            columns=samples.columns,
        )

    with torch.random.fork_rng(devices=[]):  # what a module draws follows from rng
        torch.default_generator.manual_seed(key)
        return run_interruptibly(work)


def _is_cold(weights: object) -> bool:
    return isinstance(weights, GraphWeights) and 0 in scale_values(weights.temperature)


def _half(in_x: Bools, source: np.random.Generator) -> Bools:
    """Return a random half of each sample."""
    chosen = np.zeros(len(in_x), np.bool_)
    for own in (np.flatnonzero(in_x), np.flatnonzero(~in_x)):
        chosen[source.permutation(own)[: len(own) // 2]] = True
    return chosen


class _Standardized(torch.nn.Module):
    """A module on columns that are standardised in float64 and then rounded to its own type."""

    def __init__(self, module: torch.nn.Module, points: torch.Tensor, dtype: torch.dtype) -> None:
        super().__init__()
        largest = points.abs().amax(0)
        unit = torch.where(largest > 0, largest, 1.0)  # no square leaves the range
        spread = (points / unit).std(0) * unit
        self.register_buffer("mean", (points / unit).mean(0) * unit)
        self.register_buffer("spread", torch.where(spread > 0, spread, 1.0))
        self.module, self.dtype = module, dtype

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        """Standardise by the points of the first half, and apply the module."""
        standardized = ((points - self.mean) / self.spread).to(self.dtype)  # type: ignore[operator]
        mapped: torch.Tensor = self.module(standardized)
        return mapped


def _check_mapped(mapped: object, n: int) -> None:
    """Raise TypeError or ValueError unless a module has returned (n, e) points."""
    if not isinstance(mapped, torch.Tensor):
        raise TypeError(f"module returned {type(mapped).__name__}: it must return a tensor")
    if mapped.ndim != 2 or len(mapped) != n or not mapped.numel():
        raise ValueError(
            f"module returned shape {tuple(mapped.shape)} for {n} points: it must give ({n}, e) "
            "points"
        )


@dataclass
class _Task:
    """Learning on one half."""

    points: Floats
    in_x: Bools
    learned_from: Bools
    module: torch.nn.Module | str | None
    weights: Weights | None
    statistic: str | None

    def fold(self, steps: int, step_size: float, n_resamples: int, seed: int) -> Fold:
        """Learn, and test on the other half."""
        own = self.learned_from
        points, sizes = self._pooled(own)
        module = _Standardized(self._start(len(points)), points, self._dtype())
        with torch.no_grad():
            mapped = module(points)
            _check_mapped(mapped, len(points))
            mapped = mapped.double()
            (median,) = median_distances(torch.cdist(mapped, mapped))
        weights = self.weights or NearestNeighbours(1, NEAR * (median or 1.0))
        statistic = self.statistic
        if statistic is None:
            statistic = "weighted" if weights.default_statistic == "cross" else "mmd_ratio"
        if self.module == "scale":
            x, y = module(points).split(sizes)
            learned = self._learn_scale(weights, statistic, x, y, median, steps, step_size)
            given: dict[str, Any] = {"weights": learned, "statistic": statistic}
        else:
            loss = TwoSampleLoss(weights, statistic)
            _climb(
                lambda: loss(*module(points).split(sizes)), module.parameters(), steps, step_size
            )
            learned, given = None, {}
        module.eval()
        points, sizes = self._pooled(~own)
        with torch.no_grad():
            held_out = [side.double().numpy() for side in module(points).split(sizes)]
        result = two_sample(*held_out, n_resamples=n_resamples, rng=seed, **given)
        return Fold(module, learned, result)

    def _pooled(self, chosen: Bools) -> tuple[torch.Tensor, list[int]]:
        """Return chosen points of both samples, x first, and the sizes of these.

        The module sees them in one call: what it takes from its batch must not depend on labels.
        """
        sides = [self.points[chosen & side] for side in (self.in_x, ~self.in_x)]
        return torch.from_numpy(np.concatenate(sides)), [len(side) for side in sides]

    def _dtype(self) -> torch.dtype:
        if isinstance(self.module, torch.nn.Module):
            for parameter in self.module.parameters():
                return parameter.dtype
        return torch.float32

    def _start(self, n: int) -> torch.nn.Module:
        """Return the module before learning."""
        if isinstance(self.module, torch.nn.Module):
            return copy.deepcopy(self.module)
        d = self.points.shape[1]
        if self.module == "scale":
            return torch.nn.Identity()
        if n < POINTS_PER_ENTRY * d * d:
            return ColumnWeights(d).float()
        linear = torch.nn.Linear(d, d, bias=False, dtype=torch.float32)
        with torch.no_grad():
            linear.weight.copy_(torch.eye(d))
        return linear

    def _learn_scale(
        self,
        weights: Weights,
        statistic: str,
        x: torch.Tensor,
        y: torch.Tensor,
        median: float,
        steps: int,
        step_size: float,
    ) -> Weights:
        name: Any = scale_name(weights)
        start = scale_values(getattr(weights, name)) or (median or 1.0,)
        log_scale = torch.tensor(start, dtype=torch.float64).log().requires_grad_()

        def scale() -> torch.Tensor:
            return log_scale.clamp(-LARGEST_LOG_SCALE, LARGEST_LOG_SCALE).exp()

        def loss() -> torch.Tensor:
            moved: Any = replace(weights, **{name: scale()})  # type: ignore[type-var]
            value: torch.Tensor = TwoSampleLoss(moved, statistic)(x, y)
            return value

        _climb(loss, [log_scale], steps, step_size)
        values = tuple(scale().detach().tolist())
        found: Weights = replace(  # type: ignore[type-var]
            weights, **{name: values[0] if len(values) == 1 else values}
        )
        return found


def _climb(loss: Callable[[], torch.Tensor], parameters: Any, steps: int, step_size: float) -> None:
    """Maximise a loss by Adam."""
    optimizer = torch.optim.Adam(parameters, lr=step_size)
    for _ in range(steps):
        checkpoint()
        optimizer.zero_grad()
        (-loss()).backward()  # type: ignore[no-untyped-call]
        optimizer.step()


def _picture(module: torch.nn.Module, points: Floats) -> tuple[Floats, Floats]:
    """Return the importance of the columns, and two principal coordinates of the mapped points."""
    spread = module.get_buffer("spread")
    given = torch.tensor(points, dtype=torch.float64, requires_grad=True)
    with torch.enable_grad():
        mapped = module(given)
        if mapped.requires_grad:
            sign = torch.randn(mapped.shape, generator=torch.Generator().manual_seed(0))
            (slope,) = torch.autograd.grad((mapped * sign.to(mapped)).sum(), given)
            effect = ((slope * spread) ** 2).mean(0)
        else:
            effect = torch.ones_like(spread)
    flat = mapped.detach().double().numpy()
    centred = flat - flat.mean(0)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    coordinates = np.zeros((len(flat), 2))
    coordinates[:, : min(2, len(s))] = (u * s)[:, :2]
    importance = effect.double().numpy()
    total = importance.sum()
    return importance / total if total > 0 else importance, coordinates
