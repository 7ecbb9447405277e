"""Two-sample tests as differentiable losses, to minimise until a test cannot tell samples apart."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from crossedge.autograd.distances import lp_distances
from crossedge.data.distances import Distance, check_itself, check_norm
from crossedge.data.representations import check_transform
from crossedge.losses.operators import loss_of, loss_of_matrix, remember
from crossedge.losses.settings import Standardize, check_settings
from crossedge.numerics.tolerances import NEGATIVE
from crossedge.weights import Weights
from crossedge.weights.scales import learns

PRECISIONS = torch.float16, torch.bfloat16, torch.float32, torch.float64


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
    transform : torch.nn.Module or callable, optional
        A map from the pooled (n, d) points to (n, e) points, such as a layer of a network, on which
        the loss is then computed. Gradients flow through it; its own parameters are parameters of
        the loss if it is a module.

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
    On the CPU sums are in float64, and so are distances of less than 48 columns; those of more come
    from a product of matrices in the precision of the points. Other devices compute in that
    precision. Half precision becomes float32, under autocast too. Gradients need no tape and few
    (n, n) matrices. Losses of neighbours and kernels have second derivatives, trees have none.
    None of them has third ones.

    A temperature or bandwidth that is a tensor with a gradient learns. A `torch.nn.Parameter` is a
    parameter of the loss.

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
        transform: Callable[[torch.Tensor], torch.Tensor] | None = None,
    ) -> None:
        super().__init__()
        settings = check_settings(weights, statistic, standardize)
        self.weights, self.statistic, self.standardize = weights, settings.statistic, standardize
        scale = getattr(weights, settings.scale_name) if settings.scale_name else None
        self.scale = scale if learns(scale) else None  # a parameter is registered with the module
        self.text, self.settings = remember(settings)
        if not callable(distance):
            check_norm(distance, "p >= 1 for l_p, or a callable")
        self.distance, self.transform = distance, transform
        check_transform(transform)
        if isinstance(transform, str):
            raise ValueError(
                f"transform={transform!r} has no gradient: give a torch module or a function of "
                "tensors, or transform the data beforehand"
            )

    def extra_repr(self) -> str:
        """Return the settings, for the representation of the module."""
        names = f"statistic={self.statistic.name!r}, standardize={self.standardize!r}"
        learnt = f", {self.settings.scale_name} learns" if self.scale is not None else ""
        return f"{self.settings.weights}, {names}, distance={self.distance}{learnt}"

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickled loss."""
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self.text, self.settings = remember(self.settings)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Return the loss of two samples.

        Parameters
        ----------
        x, y : torch.Tensor
            (n_x, d) and (n_y, d) points, in floating point numbers; or batches of them, (..., n_x,
            d) and (..., n_y, d).

        Returns
        -------
        torch.Tensor
            A scalar, or one number for each problem of a batch, of the wider of the two types, in
            single precision at least.

        Raises
        ------
        TypeError
            If x or y is not a dense tensor of floating point numbers of 16, 32 or 64 bits.
        ValueError
            If x or y is empty or not finite, or if their columns or devices differ. Points on other
            devices are not looked at: values that are not finite give NaN there.
        MemoryError
            If the matrices of all pairs do not fit into memory.
        """
        check_points("x", x)
        check_points("y", y)
        x, y = _alike(x, y)
        if self.transform is not None:
            n_x, n = x.shape[-2], x.shape[-2] + y.shape[-2]
            pooled = self.transform(torch.cat([x, y], -2))
            check_points("transform(points)", pooled)
            if pooled.shape[-2] != n or pooled.ndim != x.ndim:
                raise ValueError(
                    f"transform returned shape {tuple(pooled.shape)} for {n} points: it must give "
                    f"({n}, e) points"
                )
            x, y = pooled[..., :n_x, :], pooled[..., n_x:, :]
        self.settings.weights.check_size(x.shape[-2] + y.shape[-2])
        dtype = torch.promote_types(x.dtype, y.dtype)
        if dtype in (torch.float16, torch.bfloat16):
            dtype = torch.float32
        x, y, batch = x.to(dtype), y.to(dtype), x.shape[:-2]
        if self.distance == 2 and not callable(self.distance):
            return loss_of(self.settings, self.text, x, y, self._scale(x))
        if not batch:
            return self._by_distances(x, y)
        pairs = zip(x.reshape(-1, *x.shape[-2:]), y.reshape(-1, *y.shape[-2:]), strict=True)
        return torch.stack([self._by_distances(*pair) for pair in pairs]).reshape(batch)

    def _scale(self, like: torch.Tensor) -> torch.Tensor | None:
        """Return the scale where it learns, or where no compiled loops know it."""
        if self.scale is not None or like.is_cpu or not self.settings.scales:
            return self.scale
        return torch.stack([like.new_full((), one) for one in self.settings.scales])  # no transfer

    def _by_distances(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Return the loss of one problem, by a callable distance or another norm."""
        n_x, pooled = len(x), torch.cat([x, y])
        if not torch.compiler.is_compiling() and torch._C._functorch.is_batchedtensor(pooled):
            raise NotImplementedError(
                "vmap serves Euclidean distances only: give the loss batches, (..., n, d) points"
            )
        if callable(self.distance):
            distances = self.distance(pooled, pooled)
            _check_returned(distances, len(pooled))
            distances = distances.clamp(min=0)  # what rounding made negative
        else:
            distances = _lp_distances(pooled, float(self.distance))
        loss = loss_of_matrix(self.settings, self.text, distances, n_x, self._scale(x))
        return loss.to(x.dtype)


def check_points(name: str, points: object) -> None:
    """Raise TypeError or ValueError unless these are (..., n, d) points."""
    if not isinstance(points, torch.Tensor):
        raise TypeError(
            f"{name} is of type {type(points).__name__}: give a tensor (torch.as_tensor)"
        )
    if points.layout != torch.strided:
        raise TypeError(f"{name} is a sparse tensor: pass {name}.to_dense()")
    if points.ndim < 2 or not points.numel():
        raise ValueError(
            f"{name} has shape {tuple(points.shape)}: give points, (n, d) with n > 0 and d > 0"
        )
    if points.dtype not in PRECISIONS:
        raise TypeError(
            f"{name} is {points.dtype}: give floating point numbers of 16, 32 or 64 bits"
        )


def _alike(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return both with the same batch, or raise ValueError if they do not go together."""
    if x.device != y.device:
        raise ValueError(f"x is on {x.device} and y on {y.device}: move both to one device")
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(
            f"x has {x.shape[-1]} columns and y has {y.shape[-1]}: give points of one dimension"
        )
    batches = x.shape[:-2], y.shape[:-2]
    if batches[0] == batches[1]:
        return x, y
    try:
        batch = torch.broadcast_shapes(*batches)  # type: ignore[no-untyped-call]
    except RuntimeError:
        raise ValueError(
            f"x has a batch of shape {tuple(batches[0])} and y of {tuple(batches[1])}: "
            "give batches that broadcast"
        ) from None
    return x.expand(*batch, *x.shape[-2:]), y.expand(*batch, *y.shape[-2:])


def _lp_distances(pooled: torch.Tensor, p: float) -> torch.Tensor:
    """Return the (n, n) l_p distances, scaled by a power of two on the way."""
    if not pooled.is_cpu:
        return lp_distances(pooled, p)
    if torch.compiler.is_compiling():  # a compiler cannot look at values
        return lp_distances(pooled.double(), p)
    largest = float(pooled.detach().abs().max())
    if not math.isfinite(largest):
        raise ValueError("x or y has NaN or infinite entries: the loss needs finite points")
    wide = pooled.double()
    if largest == 0 or 1e-3 < largest < 1e12:
        return lp_distances(wide, p)
    unit = math.ldexp(1.0, max(math.frexp(largest)[1] - 400, -1021))
    return lp_distances(wide / unit, p) * unit


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
    if torch.compiler.is_compiling():  # a compiler cannot look at values
        return
    given = distances.detach()
    least, most = float(given.min()), float(given.max())
    if not (least >= -NEGATIVE * most and most < math.inf):  # false where they are NaN
        worst = most if least >= 0 else least
        raise ValueError(f"distance returned {worst:g}: give finite values of at least 0")
    check_itself(float(given.diagonal().max()), most)
    typical = given.median(1, keepdim=True).values  # the tolerance of `data.samples.differ`
    allowed = 1e-6 * torch.maximum(given, given.mT) + 1e-3 * typical
    if bool(((given - given.mT).abs() > allowed).any()):
        raise ValueError("distance is not symmetric: d(a, b) and d(b, a) must agree")
