"""Losses of others for the same generators, each written from its paper.

All take a batch of data and a batch of generated points, and return a scalar tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
Field = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
RELATIVE_TEMPERATURES = (0.02, 0.05, 0.2)  # of the mean distance, as in the paper of drifting


def stopped(field: Field) -> Loss:
    """Return the loss whose gradient moves points along a field: |x - stop(x + V)|^2.

    The field is scaled to a mean square of 1 per coordinate, as in the paper of drifting models.
    """

    def loss(real: torch.Tensor, fake: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            target = fake + scaled(field(real, fake.detach()))
        return (fake - target).square().mean()

    return loss


def scaled(field: torch.Tensor) -> torch.Tensor:
    return field / field.square().mean().sqrt().clamp_min(1e-12)


def drifting(temperatures: Sequence[float] = RELATIVE_TEMPERATURES) -> Loss:
    """Drifting models (Deng, Li, Li, Du and He, arXiv 2602.04770, Algorithm 2).

    Affinities are a softmax of minus distance / temperature over data and generated points, and
    over the rows as well; their geometric mean attracts to data and repels from generated points.
    """

    def field(real: torch.Tensor, fake: torch.Tensor) -> torch.Tensor:
        distance = relative_distances(real, fake)
        found = torch.zeros_like(fake)
        for temperature in temperatures:
            logits = -distance / temperature
            affinity = (logits.softmax(1) * logits.softmax(0)).sqrt()
            to_real, to_fake = affinity.split([len(real), len(fake)], dim=1)
            pull = to_real * to_fake.sum(1, keepdim=True)
            push = to_fake * to_real.sum(1, keepdim=True)
            found += scaled(pull @ real - push @ fake)
        return found

    return stopped(field)


def sinkhorn_drifting(
    temperatures: Sequence[float] = RELATIVE_TEMPERATURES, iterations: int = 20
) -> Loss:
    """Drifting with couplings that have both marginals (arXiv 2603.12366)."""

    def field(real: torch.Tensor, fake: torch.Tensor) -> torch.Tensor:
        distance = relative_distances(real, fake)
        to_real, to_fake = distance.split([len(real), len(fake)], dim=1)
        found = torch.zeros_like(fake)
        for temperature in temperatures:
            pull = coupling(-to_real / temperature, iterations)
            push = coupling(-to_fake / temperature, iterations)
            found += scaled(pull @ real - push @ fake)
        return found

    return stopped(field)


def relative_distances(real: torch.Tensor, fake: torch.Tensor) -> torch.Tensor:
    """Return distances from generated points to data and to the others, over their mean."""
    distance = torch.cdist(fake, torch.cat([real, fake]))
    distance /= distance.mean()
    distance[:, len(real) :].fill_diagonal_(torch.inf)
    return distance


def coupling(logits: torch.Tensor, iterations: int) -> torch.Tensor:
    """Return exp(logits) scaled so that all rows and columns sum to 1 (for square matrices)."""
    for _ in range(iterations):
        logits = logits - logits.logsumexp(0, keepdim=True)
        logits = logits - logits.logsumexp(1, keepdim=True)
    return logits.exp()


def sinkhorn_divergence(relative: float = 0.05, iterations: int = 30) -> Loss:
    """The debiased entropic transport cost (Feydy and co-authors, 2019).

    The cost is |x - y|^2 / 2, and the regularisation is relative to its mean. Potentials come from
    symmetric Sinkhorn steps without gradients, and the value by one last step with gradients.
    """

    def loss(real: torch.Tensor, fake: torch.Tensor) -> torch.Tensor:
        between = torch.cdist(fake, real).square() / 2
        epsilon = relative * float(between.detach().mean())
        costs = between, torch.cdist(fake, fake.detach()).square() / 2
        _, g = potentials(costs[0].detach(), epsilon, iterations)
        own, _ = potentials(costs[1].detach(), epsilon, iterations)
        own_real, _ = potentials(torch.cdist(real, real).square() / 2, epsilon, iterations)
        cross = soft_minimum(costs[0], g, epsilon).mean()
        self_term = soft_minimum(costs[1], own, epsilon).mean()
        return cross - self_term + (g.mean() - own_real.mean())

    return loss


def soft_minimum(cost: torch.Tensor, potential: torch.Tensor, epsilon: float) -> torch.Tensor:
    count = cost.shape[1]
    scaled_cost = (potential - cost) / epsilon
    return -epsilon * (scaled_cost.logsumexp(1) - torch.tensor(float(count)).log())


def potentials(
    cost: torch.Tensor, epsilon: float, iterations: int
) -> tuple[torch.Tensor, torch.Tensor]:
    f, g = torch.zeros(cost.shape[0]), torch.zeros(cost.shape[1])
    with torch.no_grad():
        for _ in range(iterations):
            f, g = (
                (f + soft_minimum(cost, g, epsilon)) / 2,
                (g + soft_minimum(cost.T, f, epsilon)) / 2,
            )
    return f, g


def sliced_energy(directions: int = 512) -> Loss:
    """The energy distance of projections on random lines, by sorting."""

    def loss(real: torch.Tensor, fake: torch.Tensor) -> torch.Tensor:
        lines = torch.randn(real.shape[1], directions)
        lines /= lines.norm(dim=0)
        x, y = (real @ lines), (fake @ lines)
        both = torch.cat([x, y]).sort(dim=0)
        in_x = (both.indices < len(x)).to(x.dtype)
        # twice the integral of the squared difference of the distribution functions
        gap = (in_x / len(x) - (1 - in_x) / len(y)).cumsum(0)[:-1]
        return 2 * (gap.square() * both.values.diff(dim=0)).sum(0).mean()

    return loss


def with_stopped_gradient(loss: Loss) -> Loss:
    """Return a loss that moves points against the gradient of another, at a common speed."""

    def field(real: torch.Tensor, fake: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            points = fake.detach().requires_grad_()
            (slope,) = torch.autograd.grad(loss(real, points), points)
        return -slope

    return stopped(field)
