"""Two-sample tests as differentiable losses, to minimise until a test cannot tell samples apart."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Literal

import torch

from crossedge.autograd.distances import lp_distances
from crossedge.data.distances import Distance, check_itself, check_norm
from crossedge.moments import LabelMoments
from crossedge.null import Normal, Pearson3, check_law
from crossedge.numerics.checks import check_values
from crossedge.runtime.headroom import check_room
from crossedge.statistics import WithinSums, statistic_named
from crossedge.statistics.mean_discrepancies import mmd_deviation
from crossedge.weights import DenseWeights, Weights
from crossedge.weights.family import check_weights

Standardize = bool | Literal["normal", "pearson3"]
TAILS = {law.name: law.log_tail for law in (Normal, Pearson3)}  # tails of z-scores, by law
SMOOTH_WEIGHTS_HINT = "give one, as ce.SpanningTree(temperature=1.0) or ce.GaussianKernel()"


class TwoSampleLoss(torch.nn.Module):
    """A two-sample test as a differentiable loss that is large where the samples differ.

    Parameters
    ----------
    weights : Weights
        `SpanningTree` or `NearestNeighbours` with a temperature above 0, or a kernel.
    statistic : str, optional
        As in `two_sample`; by default "cross" for graphs, "mmd" for kernels and "energy" for
        `EnergyKernel`.
    standardize : bool, "normal" or "pearson3", optional
        If true, the loss is the z-score by the exact mean and variance over all labellings; for
        "cross" it is -t, with the paper's t. If false, it is the statistic itself: -T for "cross",
        the squared distance for "mmd" and "energy". Statistics other than "cross", "weighted",
        "mmd" and "energy" are standardised already: true and false are the same for them. With
        "normal" or "pearson3" the loss is -log p, by the normal law or by the gamma law with the
        exact skewness, which costs one more product of matrices.
    distance : float or callable, optional
        As in `two_sample`.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If a temperature is 0, where a graph has no gradient, or if the choices do not go together.

    See Also
    --------
    two_sample : The tests themselves.

    Notes
    -----
    A smoothed graph sees as far as its temperature. Samples that are many temperatures apart hardly
    attract each other, and minimising the loss then only rearranges each sample by itself. Begin
    with a temperature of the order of their distance, such as "median", or give several. Equal
    points have equal gradients, so only noise can separate them.

    Examples
    --------
    >>> import torch
    >>> import crossedge as ce
    >>> generator = torch.Generator().manual_seed(0)
    >>> data = torch.randn(64, 2, generator=generator)
    >>> fake = torch.randn(64, 2, generator=generator).add(1).requires_grad_()
    >>> loss = ce.TwoSampleLoss(ce.SpanningTree(temperature=0.5))(data, fake)
    >>> loss.backward()
    >>> f"{loss:.2f}", fake.grad.shape
    ('14.72', torch.Size([64, 2]))
    """

    def __init__(
        self,
        weights: Weights,
        statistic: str | None = None,
        standardize: Standardize = True,
        *,
        distance: Distance = 2.0,
    ) -> None:
        super().__init__()
        self.weights = check_weights(weights, SMOOTH_WEIGHTS_HINT)
        levels = getattr(self.weights, "temperature", 1.0)
        if not self.weights.is_smooth or (isinstance(levels, tuple) and 0 in levels):
            raise ValueError(
                "weights has temperature 0, where a test has no gradient: give one above 0"
            )
        self.statistic = statistic_named(
            self.weights.default_statistic if statistic is None else statistic
        )
        self.statistic.check_weights(self.weights)
        if not isinstance(standardize, bool):
            if standardize not in TAILS:
                raise ValueError(
                    f"standardize={standardize!r} is unknown: "
                    "choose from True, False, 'normal', 'pearson3'"
                )
            check_law(self.statistic, standardize, "standardize")
        self.standardize = standardize
        if not callable(distance):
            check_norm(distance, "p >= 1 for l_p, or a callable")
        self.distance = distance

    def extra_repr(self) -> str:
        """Return the settings, for the representation of the module."""
        names = f"statistic={self.statistic.name!r}, standardize={self.standardize!r}"
        return f"{self.weights}, {names}, distance={self.distance}"

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Return the loss of two samples.

        Parameters
        ----------
        x, y : torch.Tensor
            (n_x, d) and (n_y, d) points, in floating point numbers.

        Returns
        -------
        torch.Tensor
            A scalar of the wider of the two types, in single precision at least.

        Raises
        ------
        TypeError
            If x or y is not a tensor of floating point numbers.
        ValueError
            If x or y is empty or not finite, or if their columns differ.
        MemoryError
            If the matrices of all pairs do not fit into memory.
        """
        # torch.compile imports torch._dynamo; where it is not loaded, do not load it
        if "torch._dynamo" in sys.modules:
            return _outside_graphs()(self, x, y)
        return self._loss(x, y)

    def _loss(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        largest = max(_largest("x", x), _largest("y", y))
        if x.shape[1] != y.shape[1]:
            raise ValueError(
                f"x has {x.shape[1]} columns and y has {y.shape[1]}: give points of one dimension"
            )
        dtype = torch.promote_types(x.dtype, y.dtype)
        if dtype in (torch.float16, torch.bfloat16):
            dtype = torch.float32
        # outside this range the power of two below would leave the range of float32
        extreme = dtype == torch.float32 and not 1e-30 < largest < 1e30
        wide = torch.float64 if extreme and largest > 0 else dtype
        x, y = x.to(wide), y.to(wide)
        n_x, n_y = len(x), len(y)
        if x.is_cpu:
            remedy = "give x and y that together have"
            check_room(n_x + n_y, self.weights.peak_matrices, remedy)
        if callable(self.distance):
            pooled = torch.cat([x, y])
            distances = self.distance(pooled, pooled)
            _check_returned(distances, n_x + n_y)
        elif self.distance == 2 and (largest == 0 or 1e-3 < largest < 1e12):
            distances = lp_distances(x, 2.0, y)
        else:  # scale by a power of two, so that no square overflows or underflows
            room = 400 if wide == torch.float64 else 0
            unit = (
                math.ldexp(1.0, max(math.frexp(largest)[1] - room, -1021)) if largest > 0 else 1.0
            )
            distances = lp_distances(x / unit, float(self.distance), y / unit) * unit
        pairs = DenseWeights.in_range(self.weights(distances.double()))
        W = pairs.matrix
        within = WithinSums(W[:n_x, :n_x].sum() / 2, W[n_x:, n_x:].sum() / 2)
        if self.statistic.studentized:
            in_x = (torch.arange(n_x + n_y, device=W.device) < n_x).to(W)[:, None]
            within = within._replace(deviation=mmd_deviation(W, in_x)[0])
        statistic, sign = self.statistic, self.statistic.sign
        moments = LabelMoments(pairs, n_x, n_y)
        if isinstance(self.standardize, str):
            assert statistic.law is not None
            tail = TAILS[self.standardize]
            loss = -statistic.law.log_pvalue(statistic, within.x, within.y, moments, tail)
        elif self.standardize and statistic.form is not None:
            loss = sign * moments.zscore(within.x, within.y, statistic.form(moments))
        else:
            loss = sign * statistic.of(within, moments)
            if statistic.form is not None:  # a linear statistic scales with the weights
                loss = loss * pairs.unit
        found: torch.Tensor = loss.to(dtype)
        return found


def _outside_graphs() -> Callable[..., torch.Tensor]:
    """Return the loss as a function that torch.compile calls but does not trace."""
    global _disabled
    if _disabled is None:
        _disabled = torch.compiler.disable(TwoSampleLoss._loss)  # type: ignore[no-untyped-call]
    return _disabled


_disabled: Callable[..., torch.Tensor] | None = None


def _largest(name: str, points: object) -> float:
    """Return the largest absolute coordinate, or raise unless the points are valid."""
    if not isinstance(points, torch.Tensor):
        raise TypeError(
            f"{name} is of type {type(points).__name__}: give a tensor (torch.as_tensor)"
        )
    if points.ndim != 2 or not points.numel():
        raise ValueError(f"{name} has shape {tuple(points.shape)}: give points, (n, d) with n > 0")
    if not points.is_floating_point():
        raise TypeError(f"{name} is {points.dtype}: give floating point numbers")
    low, high = (float(value) for value in torch.aminmax(points.detach()))
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"{name} has NaN or infinite entries: the loss needs finite points")
    return max(-low, high)


def _check_returned(distances: object, n: int) -> None:
    """Raise unless a callable distance has returned a valid (n, n) tensor of distances."""
    if not isinstance(distances, torch.Tensor):
        raise TypeError(
            f"distance returned {type(distances).__name__}: it must return a tensor, "
            "which has the gradient"
        )
    if distances.shape != (n, n):
        raise ValueError(
            f"distance returned shape {tuple(distances.shape)} for blocks of {n} and {n} points: "
            f"it must return ({n}, {n}), as torch.cdist does"
        )
    given = distances.detach()
    check_values(given)
    check_itself(float(given.diagonal().max()), float(given.max()))
    typical = given.median(1, keepdim=True).values  # the tolerance of `data.samples.differ`
    allowed = 1e-6 * torch.maximum(given, given.mT) + 1e-3 * typical
    if bool(((given - given.mT).abs() > allowed).any()):
        raise ValueError("distance is not symmetric: d(a, b) and d(b, a) must agree")
